"""docs/security.md names every rule of the scanners that a deployment does not meet, and no other, with a reason."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial

import pytest

from generator.plan.deployment import Plan
from tests.azure.scanners import RULES, Scanned, unmet
from tests.bed.bicep.deployment import resources_of
from tests.bed.bicep.values import Resource
from tests.bed.plans import plan_from
from tests.bicep.variants import EVERYTHING, HARDENED, VARIANTS, rendered_files
from tests.command import ROOT
from tests.definitions import build

PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
ROWS = {
    found[0]: (found[1], found[2], found[3])
    for found in re.findall(r"^\| (CKV_AZURE_\d+|AZR-\d+) \| (.+?) \| (.+?) \| (.+?) \|$", PAGE, re.MULTILINE)
}
"""id → name, key that meets it (`–`: none), reason."""
KEYS: dict[str, Callable[[], Plan]] = {
    "`security.encryption_at_host`": partial(plan_from, HARDENED),
    "`storage.locker.redundancy`": partial(plan_from, EVERYTHING, "storage: {locker: {redundancy: Standard_GRS}}"),
}
"""What a row names as the way to meet its rule → a deployment that has it."""


def _shipped(name: str) -> Plan:
    plan = build.checked(name).plan
    assert plan is not None, name
    return plan


DEPLOYMENTS: dict[str, Callable[[], Plan]] = {name: partial(_shipped, name) for name in build.NAMES} | {
    name: VARIANTS[name]
    for name in ("public", "existing_network", "everything", "own_image", "existing_server_behind_a_hub", "hardened")
}


@cache
def resources(name: str) -> list[Resource]:
    """What Azure receives; a deployment that cannot be evaluated fails the test that asks."""
    return resources_of(rendered_files(DEPLOYMENTS[name]()))


def failing(rule: Scanned) -> list[str]:
    """The deployments with a resource that does not meet a rule."""
    return [name for name in DEPLOYMENTS if any(unmet(rule, resources(name)))]


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_every_deployment_is_evaluated(name: str) -> None:
    assert len([each for each in resources(name) if not each.is_deployment]) > 10


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_is_met_or_on_the_page(rule: Scanned) -> None:
    where = failing(rule)
    assert (rule.id in ROWS) == bool(where), f"{rule.id} {rule.name} is unmet in {where}"
    assert any(each.type == rule.type for name in DEPLOYMENTS for each in resources(name)), "nothing to look at"
    if where:
        name, _, reason = ROWS[rule.id]
        assert name == rule.name
        assert len(reason) > 20


@pytest.mark.parametrize("key", KEYS)
def test_a_key_on_the_page_meets_its_rules(key: str) -> None:
    found = resources_of(rendered_files(KEYS[key]()))
    rules = [rule for rule in RULES if rule.id in ROWS and ROWS[rule.id][1] == key]
    assert rules
    assert [rule.id for rule in rules if any(unmet(rule, found))] == []


def test_the_page_names_only_rules_and_keys_that_are_known() -> None:
    assert set(ROWS) <= {rule.id for rule in RULES}
    assert {key for _, key, _ in ROWS.values()} == {"–", *KEYS}
    assert len({rule.id for rule in RULES}) == len(RULES)
    assert all(rule.source.startswith("https://") for rule in RULES)
