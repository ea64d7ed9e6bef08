"""What a caller may do: its roles' permissions at a scope and above, less deny assignments.

Sources: https://learn.microsoft.com/azure/role-based-access-control/overview#how-azure-rbac-determines-if-a-user-has-access-to-a-resource
and, for the wildcard, https://learn.microsoft.com/azure/role-based-access-control/role-definitions#actions
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from .exchange import RefusedError

if TYPE_CHECKING:
    from .state import Caller, State


def matches(pattern: str, action: str) -> bool:
    """`*` stands for any characters; case does not count."""
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), action, re.IGNORECASE) is not None


def _covers(scope: str, target: str) -> bool:
    above, below = scope.lower().rstrip("/"), target.lower().rstrip("/")
    return below == above or below.startswith(f"{above}/")


def grants(permission: dict[str, Any], action: str) -> bool:
    """Whether one role gives it: named among its actions, and not among its notActions."""
    return any(matches(each, action) for each in permission.get("actions", [])) and not any(
        matches(each, action) for each in permission.get("notActions", [])
    )


def permissions_at(caller: Caller, scope: str) -> list[dict[str, Any]]:
    """The permissions of its roles that hold at a scope."""
    return [permission for at, permission in caller.roles if _covers(at, scope)]


def denials_at(state: State, scope: str) -> list[dict[str, Any]]:
    """Deny assignments that hold there."""
    return [each for each in state.deny_assignments if _covers(each["properties"]["scope"], scope)]


def _denied(caller: Caller, denial: dict[str, Any], action: str) -> bool:
    fields = denial["properties"]
    everyone = "00000000-0000-0000-0000-000000000000"
    of = {each["id"] for each in fields.get("principals", [])}
    spared = {each["id"] for each in fields.get("excludePrincipals", [])}
    concerned = (caller.object_id in of or everyone in of) and caller.object_id not in spared
    return concerned and any(grants(each, action) for each in fields["permissions"])


def allowed(state: State, caller: Caller, action: str, scope: str) -> bool:
    """Whether a caller may take an action at a scope."""
    if any(_denied(caller, each, action) for each in denials_at(state, scope)):
        return False
    return any(grants(each, action) for each in permissions_at(caller, scope))


def require(state: State, caller: Caller, action: str, scope: str) -> None:
    """Refuse what the caller may not do.

    Source of the text: https://learn.microsoft.com/azure/role-based-access-control/troubleshooting
    """
    if allowed(state, caller, action, scope):
        return
    who = f"The client '{caller.client_id}' with object id '{caller.object_id}'"
    denial = next((each for each in denials_at(state, scope) if _denied(caller, each, action)), None)
    if denial is not None:
        name = denial["properties"].get("denyAssignmentName", denial["name"])
        raise RefusedError(
            403,
            "DenyAssignmentAuthorizationFailed",
            f"{who} has permission to perform action '{action}' on scope '{scope}'; however, the access is denied "
            f"because of the deny assignment with name '{name}'"
            f" and Id '{denial['name']}' at scope '{denial['properties']['scope']}'.",
        )
    raise RefusedError(
        403,
        "AuthorizationFailed",
        f"{who} does not have authorization to perform action '{action}' over scope '{scope}' or the scope is "
        "invalid. If access was recently granted, please refresh your credentials.",
    )
