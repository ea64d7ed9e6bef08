"""What only deleting asks: policies that hold at a scope, tags of one resource."""

from __future__ import annotations

from typing import Any

from .answers import Parts, answer
from .exchange import Asked, RefusedError
from .resources import unlocked
from .state import Caller, State

_ASSIGNMENTS = "Microsoft.Authorization/policyAssignments"


@answer("policy assignments")
def policy_assignments(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    """Those of the scope and above it.

    Source: https://learn.microsoft.com/rest/api/policy-authorization/policy-assignments/list-for-resource-group
    """
    scope = parts["scope"].lower()
    if "/resourcegroups/" in scope and "/".join(scope.split("/")[:5]) not in state.resources:
        raise RefusedError(404, "ResourceGroupNotFound", f"Resource group '{scope.split('/')[4]}' could not be found.")
    return [each for each in state.of_type(_ASSIGNMENTS) if scope.startswith(each["properties"]["scope"].lower())]


@answer("change tags")
def change_tags(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    """Merge: https://learn.microsoft.com/rest/api/resources/tags/update-at-scope"""
    resource = state.resource(parts["scope"])
    if resource is None or asked.body["operation"] != "Merge":
        raise RefusedError(404, "ResourceNotFound", f"The Resource '{parts['scope']}' was not found.")
    unlocked(state, resource["id"], {"ReadOnly"})
    resource["tags"] = (resource.get("tags") or {}) | asked.body["properties"]["tags"]
    return {
        "id": f"{resource['id']}/providers/Microsoft.Resources/tags/default",
        "properties": {"tags": resource["tags"]},
    }
