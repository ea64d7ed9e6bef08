"""Policies and the machines that only CycleCloud creates."""

from __future__ import annotations

from typing import Any

import pytest

from generator.azure.answers import OddAnswer
from generator.azure.checks.node_policies import MACHINE, SCALE_SET, denials, nodes
from tests.bed.arm import Arm
from tests.bed.plans import plan_from
from tests.preflight.asked import found_by, report_of

PLAN = plan_from()
IS_SCALE_SET, IS_MACHINE = ("type", "equals", SCALE_SET), ("type", "equals", MACHINE)
HOST, KEY = "securityProfile.encryptionAtHost", "storageProfile.osDisk.managedDisk.diskEncryptionSet.id"
DENIED: dict[str, list[tuple[str, str, Any]]] = {
    "another region": [("location", "notIn", ["westeurope"])],
    "no tag": [("tags.cost-centre", "equals", None)],
    "another size": [IS_MACHINE, ("properties.hardwareProfile.vmSize", "notIn", ["Standard_D2s_v5"])],
    "no encryption at host": [IS_MACHINE, (f"properties.{HOST}", "notEquals", True)],
    "no own key": [IS_MACHINE, (f"properties.{KEY}", "equals", None)],
}


def messages(arm: Arm) -> list[tuple[bool, str]]:
    assert arm.refused == arm.changes == []
    return [(each.is_known, each.message) for each in report_of(PLAN).findings if each.rule_id == "E4901"]


@pytest.mark.parametrize("case", DENIED)
def test_what_the_plan_knows_is_denied(arm: Arm, case: str) -> None:
    """The scheduler is a machine; of an array CycleCloud makes scale sets or machines."""
    arm.state.policies = {"landing-zone": DENIED[case]}
    found = [each for each in report_of(PLAN).findings if each.rule_id == "E4901"]
    arrays = {("slurm", "login", "vm_size"), ("slurm", "partitions", 0, "vm_size")}
    sure = {each.path for each in found if each.is_known}
    assert sure == {("slurm", "scheduler", "vm_size")} | (set() if IS_MACHINE in DENIED[case] else arrays)
    assert {each.path for each in found} - sure == (arrays if IS_MACHINE in DENIED[case] else set())
    assert all("/policyAssignments/landing-zone" in each.message for each in found)
    arm.state.policies = {}
    assert found_by(arm, PLAN) == []


def test_what_is_denied_of_scale_sets_alone_may_be_denied(arm: Arm) -> None:
    arm.state.policies = {"sizes": [IS_SCALE_SET, ("sku.name", "notIn", ["Standard_D2s_v5"])]}
    assert {each for each, _ in messages(arm)} == {False}
    assert all(f"where CycleCloud makes {SCALE_SET} of it" in text for _, text in messages(arm))


def test_a_policy_that_looks_at_more_is_not_known(arm: Arm) -> None:
    arm.state.policies = {"x": [IS_SCALE_SET, ("properties.upgradePolicy.mode", "notEquals", "Automatic")]}
    assert {each for each, _ in messages(arm)} == {False}
    assert all("what only CycleCloud knows, properties.upgradepolicy.mode of" in text for _, text in messages(arm))


def test_what_cannot_be_asked_is_not_known(arm: Arm) -> None:
    arm.state.providers["Microsoft.PolicyInsights"]["registrationState"] = "NotRegistered"
    found = [each for each in report_of(PLAN).findings if each.rule_id == "E4901"]
    assert found
    assert {(each.is_known, each.hint) for each in found} == {
        (False, "az provider register --namespace Microsoft.PolicyInsights")
    }


def test_an_answer_of_another_form_is_not_known() -> None:
    (node, *_) = nodes(PLAN)
    with pytest.raises(OddAnswer):
        denials(node, [{"fieldRestrictions": []}])
    error = {"contentEvaluationResult": {"policyEvaluations": [{"evaluationResult": "Error", "policyInfo": {}}]}}
    assert denials(node, [error])[1]
    nothing = {"contentEvaluationResult": {"policyEvaluations": [{"evaluationResult": "NonCompliant"}]}}
    sure, (unsure,) = denials(node, [nothing])
    assert (sure, "fields that it does not name of " in unsure) == ([], True)


def test_the_group_is_asked_where_it_is_there(arm: Arm) -> None:
    group = f"{arm.state.scope}/resourceGroups/{PLAN.resource_group}"
    assert messages(arm) == []
    assert not any(group in each for each in arm.posts)
    arm.state.put(group, location=PLAN.location, tags={"cycleforge": PLAN.name})
    assert messages(arm) == []
    assert f"POST {group}/providers/Microsoft.PolicyInsights/checkPolicyRestrictions" in arm.posts
