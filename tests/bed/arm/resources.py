"""Resources of any type: read, listed, created, deleted, with locks and provisioning states.

Sources: https://github.com/cloud-and-ai-microsoft/resource-provider-contract/blob/master/v1.0/resource-api-reference.md
(status of PUT, GET and DELETE), https://learn.microsoft.com/azure/azure-resource-manager/management/async-operations,
https://learn.microsoft.com/azure/azure-resource-manager/management/lock-resources
"""

from __future__ import annotations

import copy
from typing import Any

from . import born
from .attached import accompany, leaving, unused
from .exchange import Answer, Asked, NotInTableError, RefusedError
from .rights import require
from .state import Caller, State, kind_of
from .table import Kind, kind_row

GROUP = "Microsoft.Resources/resourceGroups"


def answer(state: State, asked: Asked, caller: Caller) -> Answer:
    """For a path that is the id of a resource, or the list of a type."""
    before, providers, rest = asked.path.rpartition("/providers/")
    parts = rest.split("/") if providers else []
    if not providers or not before.lower().startswith("/subscriptions/") or len(parts) < 2:
        raise NotInTableError(f"{asked.line}: the table has no such path")
    if len(parts) % 2 == 0:
        return _listed(state, asked, caller, before, parts)
    kind, _ = kind_of(asked.path)
    row = kind_row(asked, kind, asked.method)
    action = {"GET": "read", "HEAD": "read", "PUT": "write", "PATCH": "write", "DELETE": "delete"}[asked.method]
    require(state, caller, f"{row.type}/{action}", asked.path)
    group_exists(state, asked.path)
    if asked.method == "GET":
        return Answer(200, _with_peerings(state, found(state, asked.path, row.type)))
    if asked.method == "DELETE":
        return _deleted(state, asked, row)
    return _put(state, asked, row)


def _with_peerings(state: State, resource: dict[str, Any]) -> dict[str, Any]:
    """A network names its peerings, also those that were written by themselves.

    Source: https://learn.microsoft.com/rest/api/virtualnetwork/virtual-networks/get
    """
    if resource.get("type", "").lower() != "microsoft.network/virtualnetworks":
        return resource
    own = [each for each in state.below(resource["id"]) if each["type"].lower().endswith("/virtualnetworkpeerings")]
    if not own:
        return resource
    listed = resource["properties"].get("virtualNetworkPeerings") or []
    return resource | {"properties": resource["properties"] | {"virtualNetworkPeerings": [*listed, *own]}}


def found(state: State, resource_id: str, kind: str) -> dict[str, Any]:
    """The resource, or the error of one that is not there."""
    resource = state.resource(resource_id)
    if resource is not None:
        return resource
    group = resource_id.split("/")[4] if "/resourcegroups/" in resource_id.lower() else ""
    under = f" under resource group '{group}'" if group else ""
    raise RefusedError(
        404,
        "ResourceNotFound",
        f"The Resource '{kind}/{resource_id.rpartition('/')[2]}'{under} was not found. For more details please go to "
        "https://aka.ms/ARMResourceNotFoundFix",
    )


def group_exists(state: State, resource_id: str) -> None:
    """A resource needs its group."""
    parts = resource_id.split("/")
    if len(parts) > 4 and parts[3].lower() == "resourcegroups" and "/".join(parts[:5]).lower() not in state.resources:
        raise RefusedError(404, "ResourceGroupNotFound", f"Resource group '{parts[4]}' could not be found.")


def page(state: State, asked: Asked, items: list[Any]) -> Answer:
    """A list, `page_size` at a time.

    Source: https://learn.microsoft.com/rest/api/azure/#async-operations-throttling-and-paging
    """
    start = int(asked.query.get("$skiptoken", "0"))
    body: dict[str, Any] = {"value": items[start : start + state.page_size]}
    if start + state.page_size < len(items):
        options = {name: value for name, value in asked.query.items() if name != "$skiptoken"}
        text = "&".join(f"{name}={_quoted(value)}" for name, value in options.items())
        body["nextLink"] = f"{asked.base}{asked.path}?{text}&$skiptoken={start + state.page_size}"
    return Answer(200, body)


def _quoted(value: str) -> str:
    from urllib.parse import quote

    return quote(value, safe="")


def _listed(state: State, asked: Asked, caller: Caller, before: str, parts: list[str]) -> Answer:
    kind = "/".join([parts[0], *parts[1::2]])
    row = kind_row(asked, kind, "LIST" if asked.method == "GET" else asked.method)
    require(state, caller, f"{row.type}/read", before)
    group_exists(state, asked.path)
    parent = "/".join([before, "providers", *parts[:-1]]) if len(parts) > 2 else before
    if len(parts) > 2 and state.resource(parent) is None:
        text = f"Failed to perform 'read' on resource(s) of type '{row.type}', because the parent resource '{parent}' "
        raise RefusedError(404, "ParentResourceNotFound", f"{text}could not be found.")
    within = [each for each in state.below(parent) if each["type"].lower() == row.type.lower()]
    embedded = (state.resource(parent) or {}).get("properties", {}).get(parts[-1]) if len(parts) > 2 else None
    return page(state, asked, within + [each for each in embedded or [] if each not in within])


def _put(state: State, asked: Asked, row: Kind) -> Answer:
    existed = state.resource(asked.path) is not None
    unlocked(state, asked.path, {"ReadOnly"})
    resource = create(state, asked.path, asked.body, patch=asked.method == "PATCH")
    if asked.method not in row.long:
        return Answer(200 if existed else 201, resource)
    if "properties" in resource:
        resource["properties"]["provisioningState"] = "Updating" if existed else "Creating"
    begun = copy.deepcopy(resource)

    def finish() -> Answer:
        resource["properties"]["provisioningState"] = "Succeeded"
        return Answer(200, {"status": "Succeeded"})

    return Answer(200 if existed else 201, begun, polling(state, asked, state.begin(finish).id, "Azure-AsyncOperation"))


def polling(state: State, asked: Asked, operation: str, *headers: str) -> dict[str, str]:
    """The headers that tell where to ask for the end of an operation."""
    version = asked.query["api-version"]
    at = f"{asked.base}{state.scope}/providers/Microsoft.Resources/locations/eastus"
    address = {
        "Azure-AsyncOperation": f"{at}/operationStatuses/{operation}?api-version={version}",
        "Location": f"{at}/operationResults/{operation}?api-version={version}",
    }
    return {header: address[header] for header in headers} | {"Retry-After": state.retry_after}


def create(state: State, resource_id: str, body: Any, *, patch: bool = False) -> dict[str, Any]:
    """Write a resource with what Azure adds to it."""
    kind, name = kind_of(resource_id)
    before = state.resources.get(resource_id.lower())
    fields = copy.deepcopy(dict(body or {}))
    if patch and before is not None:
        fields = born.merged(before, fields)
    resource: dict[str, Any] = {"id": resource_id, "name": name, "type": kind} | fields
    resource["id"], resource["name"], resource["type"] = resource_id, name, kind
    resource.setdefault("properties", {})
    resource["properties"]["provisioningState"] = "Succeeded"
    born.complete(state, resource, before)
    state.resources[resource_id.lower()] = resource
    accompany(state, resource)
    return resource


def unlocked(state: State, resource_id: str, levels: set[str]) -> None:
    """Refuse what a lock at this scope or above forbids.

    Source of the text: https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/error-resource-locked ;
    locks of children forbid the deletion of the parent.
    """
    target = resource_id.lower()
    for lock in state.of_type("Microsoft.Authorization/locks"):
        scope = lock["id"].lower().rpartition("/providers/microsoft.authorization/locks")[0]
        above = target == scope or target.startswith(f"{scope}/")
        if (
            lock["properties"]["level"] in levels
            and (above or scope.startswith(f"{target}/"))
            and target != lock["id"].lower()
        ):
            what = "delete" if "CanNotDelete" in levels else "write"
            at = lock["id"].rpartition("/providers/Microsoft.Authorization/locks")[0]
            raise RefusedError(
                409,
                "ScopeLocked",
                f"The scope '{resource_id}' cannot perform {what} operation because following scope(s) are locked: "
                f"'{at}'. Please remove the lock and try again.",
            )


def remove(state: State, resource_id: str) -> None:
    """Take a resource away, with what is below it and what goes with it; a group's records are below it, too.

    Source: https://learn.microsoft.com/azure/azure-resource-manager/management/delete-resource-group
    """
    for record in [key for key in state.runs if key.startswith(f"{resource_id.lower()}/")]:
        del state.runs[record]
    gone = state.resources.get(resource_id.lower())
    for each in leaving(state, gone) if gone is not None else []:
        state.resources.pop(each.lower(), None)
    for below in list(state.below(resource_id)):
        state.resources.pop(below["id"].lower(), None)
    if state.resources.pop(resource_id.lower(), None) is not None:
        return
    parent_id, kind, name = resource_id.rsplit("/", 2)
    listed = (state.resources.get(parent_id.lower()) or {"properties": {}})["properties"].get(kind)
    if isinstance(listed, list):
        listed[:] = [each for each in listed if each["name"].lower() != name.lower()]


def _deleted(state: State, asked: Asked, row: Kind) -> Answer:
    if state.resource(asked.path) is None:
        return Answer(204)
    unlocked(state, asked.path, {"CanNotDelete", "ReadOnly"})
    resource = state.resources.get(asked.path.lower())
    if resource is not None:
        unused(state, resource)
    if "DELETE" not in row.long:
        remove(state, asked.path)
        return Answer(200, resource)
    if resource is not None:
        resource["properties"]["provisioningState"] = "Deleting"

    def finish() -> Answer:
        remove(state, asked.path)
        return Answer(204)

    headers = polling(state, asked, state.begin(finish).id, "Azure-AsyncOperation", "Location")
    return Answer(202, None, headers)
