"""The single requests of the table: the subscription, its providers, permissions, groups, long operations, documents.

`@answer("name")` enters a function in `ANSWERS`, which rows name. It gets the state, the request, who asks and the
parts of the path; it returns an `Answer`, or data for a 200; a list is answered in pages.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from . import rights
from .exchange import Answer, Asked, RefusedError
from .resources import GROUP, create, page, polling, remove, unlocked
from .state import Caller, State

Parts = dict[str, str]
Function = Callable[[State, Asked, Caller, Parts], Any]
ANSWERS: dict[str, Function] = {}


def answer(name: str) -> Callable[[Function], Function]:
    """Enter a function in the table."""

    def entered(function: Function) -> Function:
        ANSWERS[name] = function
        return function

    return entered


# ---- the subscription


def _subscription(state: State) -> dict[str, Any]:
    return {
        "id": state.scope, "subscriptionId": state.subscription, "tenantId": state.subscription_tenant,
        "displayName": "Stand-in", "state": state.subscription_state, "authorizationSource": "RoleBased",
        "subscriptionPolicies": {
            "locationPlacementId": "Public_2014-09-01", "quotaId": state.quota_id, "spendingLimit": "Off",
        },
    }  # fmt: skip


@answer("subscription")
def subscription(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    return _subscription(state)


@answer("subscriptions")
def subscriptions(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    return [_subscription(state)] if caller.roles else []


@answer("tenants")
def tenants(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    return [{"id": f"/tenants/{state.tenant}", "tenantId": state.tenant, "displayName": "Stand-in"}]


@answer("locations")
def locations(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    return [each | {"id": f"{state.scope}/locations/{each['name']}"} for each in state.locations]


# ---- providers


def _provider(state: State, namespace: str) -> dict[str, Any]:
    for name, fields in state.providers.items():
        if name.lower() == namespace.lower():
            whole = {"id": f"{state.scope}/providers/{name}", "namespace": name,
                     "registrationPolicy": "RegistrationRequired"}  # fmt: skip
            return whole | fields
    raise RefusedError(404, "InvalidResourceNamespace", f"The resource namespace '{namespace}' is invalid.")


@answer("provider")
def provider(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    found = _provider(state, parts["namespace"])
    fields = state.providers[found["namespace"]]
    if fields["registrationState"] == "Registering" and fields.setdefault("_polls", 1) <= 0:
        fields["registrationState"] = found["registrationState"] = "Registered"
    fields["_polls"] = fields.get("_polls", 1) - 1
    return {key: value for key, value in found.items() if not key.startswith("_")}


@answer("providers")
def providers(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    found = [_provider(state, name) for name in state.providers]
    return [{key: value for key, value in each.items() if not key.startswith("_")} for each in found]


@answer("register provider")
def register_provider(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    """200 with the state Registering; the polls that follow find it registered."""
    name = _provider(state, parts["namespace"])["namespace"]
    rights.require(state, caller, f"{name}/register/action", state.scope)
    state.providers[name] |= {"registrationState": "Registering", "_polls": state.polls - 1}
    return _provider(state, name) | {"registrationState": "Registering"}


# ---- rights


@answer("permissions")
def permissions(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    found = rights.permissions_at(caller, parts["scope"])
    empty: dict[str, Any] = {"notActions": [], "dataActions": [], "notDataActions": []}
    return [empty | each for each in found]


@answer("deny assignments")
def deny_assignments(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    return rights.denials_at(state, parts["scope"])


@answer("role assignments")
def role_assignments(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    scope = parts["scope"].lower()
    found = [
        each
        for each in state.of_type("Microsoft.Authorization/roleAssignments")
        if each["properties"]["scope"].lower().startswith(scope)
    ]
    wanted = asked.query.get("$filter", "")
    if wanted in ("", "atScope()"):
        return found
    principal = re.fullmatch(r"(?:principalId eq|assignedTo\()\s?'([0-9a-fA-F-]+)'\)?", wanted)
    if principal is None:
        raise RefusedError(400, "BadRequest", f"The filter '{wanted}' is not known.")
    return [each for each in found if each["properties"]["principalId"] == principal[1]]


# ---- groups


def _group(state: State, name: str) -> dict[str, Any]:
    found = state.resources.get(f"{state.scope}/resourceGroups/{name}".lower())
    if found is None:
        raise RefusedError(404, "ResourceGroupNotFound", f"Resource group '{name}' could not be found.")
    return found


@answer("groups")
def groups(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    return state.of_type(GROUP)


@answer("group")
def group(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    return _group(state, parts["group"])


@answer("group there")
def group_there(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    there = f"{state.scope}/resourceGroups/{parts['group']}".lower() in state.resources
    return Answer(204 if there else 404)


@answer("put group")
def put_group(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    path = f"{state.scope}/resourceGroups/{parts['group']}"
    before = state.resources.get(path.lower())
    if before is not None and before["location"] != asked.body["location"]:
        raise RefusedError(
            409,
            "InvalidResourceGroupLocation",
            f"Invalid resource group location '{asked.body['location']}'. The Resource group already exists in "
            f"location '{before['location']}'.",
        )
    unlocked(state, path, {"ReadOnly"})
    return Answer(201 if before is None else 200, create(state, path, asked.body))


@answer("patch group")
def patch_group(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    before = _group(state, parts["group"])
    unlocked(state, before["id"], {"ReadOnly"})
    return create(state, before["id"], asked.body, patch=True)


@answer("delete group")
def delete_group(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    """202, and 404 for the group once it is gone; what is in it goes with it."""
    there = _group(state, parts["group"])
    unlocked(state, there["id"], {"CanNotDelete", "ReadOnly"})
    there["properties"]["provisioningState"] = "Deleting"

    def finish() -> Answer:
        remove(state, there["id"])
        return Answer(200)

    return Answer(202, None, polling(state, asked, state.begin(finish).id, "Location"))


@answer("resources of group")
def resources_of_group(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    return _top(state.below(_group(state, parts["group"])["id"]), asked)


@answer("resources")
def resources(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    return _top(state.below(state.scope), asked)


_HIDDEN = (
    "microsoft.resources/resourcegroups",
    "microsoft.resources/deployments",
    "microsoft.authorization/roleassignments",
    "microsoft.authorization/locks",
)


def _top(found: Any, asked: Asked) -> list[dict[str, Any]]:
    """Tracked resources without their properties, as the list has them: those with a location."""
    kept = [each for each in found if each["type"].lower() not in _HIDDEN and "location" in each]
    wanted = asked.query.get("$filter", "")
    if wanted:
        kept = [each for each in kept if _fits(each, wanted)]
    return [{key: value for key, value in each.items() if key != "properties"} for each in kept]


def _fits(resource: dict[str, Any], wanted: str) -> bool:
    """Source of the filter: https://learn.microsoft.com/rest/api/resources/resources/list; names come in any case.

    `az resource list` sends `tagname` and `resourceGroup`: `_list_resources_odata_filter_builder` in
    Azure/azure-cli:src/azure-cli/azure/cli/command_modules/resource/custom.py
    """
    tag = re.fullmatch(r"tagName eq '([^']+)'(?: and tagValue eq '([^']*)')?", wanted, re.IGNORECASE)
    if tag is not None:
        value = (resource.get("tags") or {}).get(tag[1])
        return value is not None and tag[2] in (None, value)
    for part in wanted.split(" and "):
        found = re.fullmatch(r"(resourceType|resourceGroup|name|location) eq '([^']+)'", part)
        if found is None:
            raise RefusedError(
                400, "InvalidFilterInQueryString", f"Invalid $filter '{wanted}' specified in the query string."
            )
        if found[1] == "resourceGroup" and f"/resourcegroups/{found[2]}/".lower() in str(resource["id"]).lower():
            continue
        key = {"resourceType": "type"}.get(found[1], found[1])
        if str(resource.get(key, "")).lower() != found[2].lower():
            return False
    return True


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


# ---- long operations


def _operation(state: State, parts: Parts) -> Any:
    found = state.operations.get(parts["operation"])
    if found is None:
        raise RefusedError(404, "NotFound", "The operation was not found.")
    return found


@answer("operation status")
def operation_status(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    """Azure-AsyncOperation: https://learn.microsoft.com/azure/azure-resource-manager/management/async-operations"""
    operation = _operation(state, parts)
    result = operation.polled()
    body: dict[str, Any] = {"id": asked.path, "name": operation.id}
    if result is None:
        return Answer(200, body | {"status": "InProgress"}, {"Retry-After": state.retry_after})
    if result.status >= 400:
        return Answer(200, body | {"status": "Failed", "error": result.body["error"]})
    return Answer(200, body | {"status": "Succeeded"} | (result.body if isinstance(result.body, dict) else {}))


@answer("operation result")
def operation_result(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    """Location: 202 until the result itself is there."""
    result = _operation(state, parts).polled()
    if result is None:
        return Answer(202, None, polling(state, asked, parts["operation"], "Location"))
    return result


# ---- what is only read


@answer("document")
def document(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    """What `State.documents` has for the path."""
    key = re.sub(r"^/subscriptions/[^/]+", "", asked.path.lower()).rstrip("/")
    if key not in state.documents:
        raise RefusedError(404, "NotFound", f"There is nothing at {asked.path}.")
    found = state.documents[key]
    return found(state, asked) if callable(found) else found


def answered(state: State, asked: Asked, found: Any) -> Answer:
    """What a function returned, as an answer."""
    if isinstance(found, Answer):
        return found
    return page(state, asked, found) if isinstance(found, list) else Answer(200, found)
