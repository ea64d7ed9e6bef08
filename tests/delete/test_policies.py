"""Policies that forbid to delete: found before anything is changed, evaluated as Azure documents it."""

from __future__ import annotations

from typing import Any

import pytest

from generator.azure.deletion.policies import concerns
from generator.azure.deletion.seen import Denial, Thing
from tests.delete.place import Place

VM = Thing("/x", "Microsoft.Compute/virtualMachines", "vm", {"Env": "Prod"}, "eastus")
TYPE = {"field": "type", "equals": "microsoft.compute/virtualMACHINES"}


@pytest.mark.parametrize(("rule", "expected"), [
    (TYPE, True),
    ({"field": "type", "notEquals": VM.type}, False),
    ({"not": TYPE}, False),
    ({"allOf": [TYPE, {"field": "tags.env", "equals": "prod"}]}, True),
    ({"allOf": [TYPE, {"field": "tags['env']", "equals": "test"}]}, False),
    ({"anyOf": [{"field": "name", "in": ["other"]}, {"field": "location", "in": ["westus", "EASTUS"]}]}, True),
    ({"field": "type", "in": "[parameters('types')]"}, True),
    ({"field": "type", "notIn": "[parameters('types')]"}, False),
    ({"field": "tags.owner", "exists": "false"}, True),
    ({"field": "tags.env", "exists": False}, False),
    ({"field": "type", "like": "Microsoft.Compute/*"}, True),
    ({"field": "type", "like": "Microsoft.Network/*"}, False),
    ({"field": "type", "match": "Microsoft.Compute/*"}, None),
    ({"field": "Microsoft.Compute/virtualMachines/sku.name", "equals": "x"}, None),
    ({"anyOf": [{"value": "[utcNow()]", "equals": "x"}, TYPE]}, True),
    ({"allOf": [{"value": "[utcNow()]", "equals": "x"}, {"not": TYPE}]}, False),
    ({"not": {"value": "[utcNow()]", "equals": "x"}}, None),
    ("nonsense", None),
])  # fmt: skip
def test_what_a_rule_is_about(rule: Any, expected: bool | None) -> None:
    denial = Denial("/a", "a", rule, {"types": [VM.type]}, spares_groups=False)
    assert concerns(denial, VM) is expected


def assigned(place: Place, *, effect: str = "denyAction", **fields: Any) -> None:
    """An initiative of the organisation with one policy, whose effect is a parameter, assigned to the subscription."""
    at = f"{place.state.scope}/providers/Microsoft.Authorization"
    details = {"actionNames": ["delete"], "cascadeBehaviors": {"resourceGroup": fields.pop("cascade", "deny")}}
    rule = {"if": fields.pop("rule", TYPE), "then": {"effect": "[parameters('effect')]", "details": details}}
    policy = {"mode": "Indexed", "policyRule": rule, "parameters": {"effect": {"defaultValue": "Disabled"}}}
    place.state.put(f"{at}/policyDefinitions/keep", properties=policy)
    member = {"policyDefinitionId": f"{at}/policyDefinitions/keep",
              "parameters": {"effect": {"value": "[parameters('what')]"}}}  # fmt: skip
    initiative = {"policyDefinitions": [member], "parameters": {"what": {"defaultValue": "Audit"}}}
    place.state.put(f"{at}/policySetDefinitions/all", properties=initiative)
    assignment = {"scope": place.state.scope, "policyDefinitionId": f"{at}/policySetDefinitions/all",
                  "displayName": "Machines stay", "parameters": {"what": {"value": effect}}}  # fmt: skip
    place.state.put(f"{at}/policyAssignments/stay", properties=assignment | fields)


def test_a_policy_that_forbids_it_is_named_before_anything_is_changed(place: Place) -> None:
    place.deployed("minimal", "node-1")
    assigned(place)
    code, out, _ = place("minimal", "--yes", "minimal")
    assert (code, "the policy 'Machines stay' forbids to delete Microsoft.Compute/virtualMachines" in out) == (1, True)
    assert "policyAssignments/stay" in out
    assert place.arm.changes == place.arm.posts == []


@pytest.mark.parametrize("fields", [
    {"effect": "audit"},
    {"cascade": "allow"},
    {"enforcementMode": "DoNotEnforce"},
    {"notScopes": ["/subscriptions/11111111-2222-3333-4444-555555555555/resourceGroups/minimal-rg"]},
    {"rule": {"field": "type", "equals": "Microsoft.Web/sites"}},
], ids=["audits", "spares groups", "not enforced", "not here", "of other types"])  # fmt: skip
def test_a_policy_that_does_not_forbid_it_is_no_obstacle(place: Place, fields: dict[str, Any]) -> None:
    place.deployed("minimal")
    assigned(place, **fields)
    assert place("minimal", "--print")[0] == 0


def test_a_policy_that_only_azure_can_read_counts_as_one_that_forbids(place: Place) -> None:
    place.deployed("minimal")
    assigned(place, rule={"field": "type", "match": "Microsoft.Compute/*"})
    assert place("minimal", "--print")[0] == 1
