"""The accounting database: sizes, version, name and password that Azure accepts."""

from __future__ import annotations

import re
import string
import subprocess

import pytest

from generator import catalog
from generator.definition.model.slurm import NewDatabase
from generator.plan.accounting import AccountingPlan, mysql_sizes
from generator.plan.parameters import RANDOM_TEXT, secret_plans
from tests.bed.parts import GPU
from tests.bed.plans import plan_from, slurm_of
from tests.bicep.variants import main_bicep
from tests.readme.test_readme import rendered
from tests.rules.annotations import findings_of

NEW = "slurm: {accounting: {type: new}}"
CASE = """\
name: case
location: southcentralus
slurm:
  accounting: {{type: new, sku: {sku}, storage_gib: {storage}}}
  partitions:
    - {{name: htc, vm_size: Standard_D4ads_v5, max_nodes: 2}}
"""


def accounting(*changes: str) -> AccountingPlan:
    found = slurm_of(plan_from(*changes, NEW)).accounting
    assert found is not None
    return found


def test_a_cluster_with_gpus_gets_no_burstable_database() -> None:
    assert (accounting().sku, accounting().tier) == ("Standard_B2ms", "Burstable")
    of_gpus = accounting(GPU)
    assert (of_gpus.sku, of_gpus.tier, of_gpus.max_iops) == ("Standard_D2ads_v5", "GeneralPurpose", 3200)


def test_the_default_version_is_in_support() -> None:
    version = NewDatabase(type="new").version
    assert accounting().version == version
    assert not catalog.out_of_support(catalog.support().mysql.versions[version])
    assert f"version: '{version}'" in main_bicep(plan_from(NEW))


def test_only_a_name_that_the_definition_gives_is_used_as_it_stands() -> None:
    """The name is that of a host in a domain of Azure, so each exists once on earth."""
    assert "name: 'minimal-db-${unique}'" in main_bicep(plan_from(NEW))
    named = plan_from("slurm: {accounting: {type: new, server_name: my-own}}")
    assert "name: 'my-own'" in main_bicep(named)


@pytest.mark.parametrize("sku", sorted(mysql_sizes()))
def test_every_size_of_the_list_is_accepted_with_the_storage_of_its_tier(sku: str) -> None:
    most = catalog.mysql().storage.max_by_tier[mysql_sizes()[sku].tier]
    assert findings_of(CASE.format(sku=sku, storage=most)) == []


@pytest.mark.parametrize(
    "sku", ["Standard_D2s_v5", "Standard_B1s", "Standard_E2as_v5", "Standard_D96ds_v4", "GP_Gen5_2"]
)
def test_a_size_of_a_series_that_is_not_in_the_list_is_refused(sku: str) -> None:
    assert [each.rule_id for each in findings_of(CASE.format(sku=sku, storage=32))] == ["E1004"]


def kinds(password: str) -> int:
    """How many of the four kinds of characters a password has."""
    symbols = set(string.punctuation)
    return sum(
        any(test(sign) for sign in password)
        for test in (str.islower, str.isupper, str.isdigit, lambda sign: sign in symbols)
    )


@pytest.mark.parametrize("attempt", range(5))
def test_the_password_of_the_readme_satisfies_every_service(attempt: int) -> None:
    """Whatever the names: no three letters or digits of it are in a row, and a part of a name has at least three.

    MySQL flexible server: 8 to 128 characters of three of four kinds, no part of the name. Windows: 12 to 123.
    """
    del attempt
    text = rendered(plan_from(NEW, "server: {jumpbox: {}}"))
    assert f"\n{RANDOM_TEXT}\n" in text
    done = subprocess.run(["bash", "-c", RANDOM_TEXT], capture_output=True, text=True, check=True)
    password = done.stdout.rstrip("\n")
    assert len(password) == 53
    for secret in secret_plans("ccadmin", has_server=True, has_jumpbox=True, has_accounting=True):
        assert secret.min_length <= len(password) <= secret.max_length
    assert kinds(password) == 4
    assert not re.search(r"[^\W_]{3}", password)
    assert not set(password) & set(" #'\"\\$`")


def test_what_chance_leaves_out_the_end_brings() -> None:
    end = RANDOM_TEXT.split("%s")[1].split("\\n")[0]
    assert (end, kinds(end)) == ("A-a-1", 4)


def test_the_rules_of_the_passwords_are_said_where_they_are_asked_for() -> None:
    text = rendered(plan_from(NEW), ".envrc.template")
    assert "at least three of lower case, upper case, digits and symbols" in text
    assert text.count("no three characters in a row that the user's name has too") == 2
    assert "at least three of lower case" in main_bicep(plan_from(NEW))
    assert catalog.rule_figures().mysql.user_max == 32
