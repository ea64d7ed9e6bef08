"""What the deployer may do. Roles are those of Azure's own list, deny assignments as its documentation shows them."""

from __future__ import annotations

from typing import Any

import pytest

from generator.azure.checks.rights import EVERYONE, concerns, denied, excludes_services, missing, unsure_roles
from tests.bed.arm.state import CONTRIBUTOR, OWNER, READER
from tests.bed.plans import SMALL
from tests.preflight.command import Run

READS = "00000000-1111-2222-3333-444444444444"
ONE, OTHER = "acdd72a7-3385-48ef-bd42-f606fba81ae7", "b24988ac-6180-42a0-ab88-20f7382dd24c"
# https://learn.microsoft.com/azure/role-based-access-control/delegate-role-assignments-examples
CONDITION = f"""((!(ActionMatches{{'Microsoft.Authorization/roleAssignments/write'}})) OR
(@Request[Microsoft.Authorization/roleAssignments:RoleDefinitionId] ForAnyOfAnyValues:GuidEquals {{{ONE}}} AND
@Request[Microsoft.Authorization/roleAssignments:PrincipalType] StringEqualsIgnoreCase {{'ServicePrincipal'}}))"""


def test_an_owner_may_and_a_contributor_may_not_assign_roles(run: Run) -> None:
    caller, scope = run.arm.state.caller, run.arm.state.scope
    assert run.found() == []
    caller.roles = [(scope, CONTRIBUTOR)]
    code, out, _ = run()
    assert code == 1
    lacking = "this login has no right to Microsoft.Authorization/roleAssignments/write"
    assert f"error E4101: the server's role Reader: {lacking}" in out
    assert f'az role assignment create --assignee {caller.object_id} --role "User Access Administrator"' in out
    administrator = OWNER | {"actions": ["*/read", "Microsoft.Authorization/*"]}
    caller.roles = [(scope, CONTRIBUTOR), (scope, administrator)]
    assert run.found() == []


def test_the_right_to_read_is_not_enough(run: Run) -> None:
    run.arm.state.caller.roles = [(run.arm.state.scope, READER)]
    result = run.json()
    messages = [row["message"] for row in result["problems"] if row["rule"] == "E4101"]
    assert any("Microsoft.Resources/deployments/write" in message for message in messages)
    assert any("Microsoft.Network/natGateways/write" in message for message in messages)


def test_a_group_that_is_there_is_asked_itself(run: Run) -> None:
    """Rights on it may be more, or less by a custom role, than those on the subscription."""
    state = run.arm.state
    group = f"{state.scope}/resourceGroups/research"
    text = "\n".join(("azure: {resource_group: {existing: research}}", SMALL))
    state.put(group, location="southcentralus")
    subscription = OWNER | {"actions": ["*/read", "Microsoft.Resources/deployments/*", "Microsoft.Authorization/*"]}
    state.caller.roles = [(state.scope, subscription), (group, OWNER)]
    assert run.found(text=text) == []
    state.caller.roles = [(state.scope, subscription), (group, CONTRIBUTOR | {"notActions": ["Microsoft.Compute/*"]})]
    problems = run.json(text=text)["problems"]
    assert {row["rule"] for row in problems} == {"E4101", "E4803"}, "and Azure, which validates the deployment, says so"
    assert "Microsoft.Compute/virtualMachines/write" in problems[0]["message"]
    assert group in problems[0]["message"]


def denial(scope: str, principal: str, **more: Any) -> dict[str, Any]:
    fields = {
        "denyAssignmentName": "keep out", "scope": scope, "isSystemProtected": True, "doNotApplyToChildScopes": False,
        "permissions": [{"actions": ["Microsoft.Network/*"], "notActions": ["*/read"]}],
        "principals": [{"id": principal, "type": "ServicePrincipal"}], "excludePrincipals": [],
    }  # fmt: skip
    return {"id": f"{scope}/providers/x", "name": "one", "properties": fields | more}


def test_a_deny_assignment_counts_above_the_role_of_an_owner(run: Run) -> None:
    state = run.arm.state
    state.deny_assignments = [denial(state.scope, EVERYONE)]
    code, out, _ = run()
    assert code == 1
    assert "error E4102: " in out
    assert "the deny assignment 'keep out' takes Microsoft.Network/virtualNetworks/write" in out
    state.deny_assignments = [denial(state.scope, EVERYONE, excludePrincipals=[{"id": state.caller.object_id}])]
    assert run.found() == []
    state.deny_assignments = [denial(state.scope, READS, principals=[{"id": READS, "type": "Group"}])]
    assert set(run.found()) == {"E4102?"}


def test_a_condition_must_name_the_roles(run: Run) -> None:
    state = run.arm.state
    delegated = OWNER | {"condition": CONDITION, "conditionVersion": "2.0"}
    state.caller.roles = [(state.scope, delegated)]
    code, out, _ = run()
    assert code == 0, "a warning"
    assert f"warning W4103: the condition of the login's right to assign roles does not name {OTHER}" in out
    assert ONE not in out
    state.caller.roles = [(state.scope, delegated), (state.scope, OWNER)]
    assert run.found() == []


@pytest.mark.parametrize(
    ("permission", "expected"),
    [
        ({"actions": ["*"]}, ()),
        ({"actions": ["microsoft.network/*/WRITE"]}, ()),
        ({"actions": ["*"], "notActions": ["Microsoft.Network/virtualNetworks/*"]}, ("a",)),
        ({"actions": None, "notActions": None}, ("a",)),
        ({"actions": ["Microsoft.Network/virtualNetworks/read"]}, ("a",)),
    ],
)
def test_what_a_role_gives(permission: dict[str, Any], expected: tuple[str, ...]) -> None:
    action = "Microsoft.Network/virtualNetworks/write"
    assert missing([permission], [action]) == ((action,) if expected else ())


def test_exceptions_of_one_role_do_not_bind_another() -> None:
    action = "Microsoft.Network/virtualNetworks/write"
    assert missing([{"actions": ["*"], "notActions": ["*"]}, {"actions": ["*/write"]}], [action]) == ()


def test_a_deny_assignment_may_stay_at_its_scope() -> None:
    here, action = denial("/subscriptions/s", EVERYONE, doNotApplyToChildScopes=True), "Microsoft.Network/x/write"
    assert denied(here, [action, "Microsoft.Network/x/read"], "/subscriptions/S/") == (action,)
    assert denied(here, [action], "/subscriptions/s/resourceGroups/g") == ()


@pytest.mark.parametrize(
    ("principal", "kind", "groups", "expected"),
    [
        ("me", "User", None, "yes"),
        ("other", "User", None, "no"),
        ("team", "Group", None, "not known"),
        ("team", "Group", ("team",), "yes"),
        ("team", "Group", ("another",), "no"),
    ],
)
def test_whom_a_deny_assignment_concerns(
    principal: str, kind: str, groups: tuple[str, ...] | None, expected: str
) -> None:
    assignment = denial("/s", "", principals=[{"id": principal, "type": kind}])
    assert concerns(assignment, "me", groups) == expected
    if expected == "yes":
        spared = denial("/s", "", principals=[{"id": "me"}], excludePrincipals=[{"id": principal, "type": kind}])
        assert concerns(spared, "me", groups) == "no"


def test_conditions_are_read_and_not_evaluated() -> None:
    assert unsure_roles(CONDITION, [ONE, OTHER]) == (OTHER,)
    assert unsure_roles(CONDITION.replace("GuidEquals", "GuidNotEquals"), [ONE]) == (ONE,)
    assert not excludes_services(CONDITION)
    assert excludes_services(CONDITION.replace("ServicePrincipal", "User"))
