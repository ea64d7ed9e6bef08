"""What a deployment would change, by comparing with the state.

Source: https://learn.microsoft.com/rest/api/resources/deployments/what-if (fields) and
https://learn.microsoft.com/azure/azure-resource-manager/bicep/deploy-what-if (kinds of change, and that values which
are known only at run time show as changes)
"""

from __future__ import annotations

import copy
from typing import Any

from tests.bed.bicep.values import Late

from . import born
from .expansion import Expanded, Expansion
from .resources import GROUP
from .state import State, kind_of


def changes(state: State, found: Expansion, *, only_ids: bool) -> list[dict[str, Any]]:
    """One entry for each resource, and one for each other resource in the groups that are concerned."""
    listed = [_change(state, each, only_ids) for each in found.resources]
    named = {each.id.lower() for each in found.resources}
    ids = [each.id.lower() for each in found.resources]
    groups = {"/".join(each.split("/")[:5]) for each in ids if "/resourcegroups/" in each}
    for group in sorted(groups):
        for resource in state.below(group):
            if resource["id"].lower() not in named and _is_top(resource):
                listed.append({"resourceId": resource["id"], "changeType": "Ignore", "before": shown(resource)})
    return listed


def _is_top(resource: dict[str, Any]) -> bool:
    return resource["type"].count("/") == 1 and "location" in resource


def _change(state: State, each: Expanded, only_ids: bool) -> dict[str, Any]:
    entry: dict[str, Any] = {"resourceId": str(each.id), "deploymentId": each.deployment, "symbolicName": each.symbol}
    if each.unsupported is not None or each.body is None:
        reason = each.unsupported or "The properties of the resource are known only while the deployment runs."
        return entry | {"changeType": "Unsupported", "unsupportedReason": reason}
    if only_ids:
        return entry | {"changeType": "Deploy"}
    before = state.resource(each.id)
    after = shown(_completed(state, each, before))
    if before is None:
        return entry | {"changeType": "Create", "after": after}
    now = shown(before)
    delta = difference(now, after)
    kind = "Modify" if delta else "NoChange"
    return entry | {"changeType": kind, "before": now, "after": after, "delta": delta}


def _completed(state: State, each: Expanded, before: dict[str, Any] | None) -> dict[str, Any]:
    kind, name = kind_of(each.id)
    body = _texts(copy.deepcopy(each.body or {}))
    resource: dict[str, Any] = {"id": str(each.id), "name": name, "type": kind, "properties": {}} | body
    born.complete(state, resource, before)
    return resource


def _texts(value: Any) -> Any:
    """What is not known yet is shown as the expression."""
    if isinstance(value, Late):
        return f"[{value}]"
    if isinstance(value, dict):
        return {key: _texts(item) for key, item in value.items()}
    return [_texts(item) for item in value] if isinstance(value, list) else value


def shown(resource: dict[str, Any]) -> dict[str, Any]:
    """A resource without what only tells of its state."""
    found = copy.deepcopy(resource)
    found.get("properties", {}).pop("provisioningState", None)
    if not found.get("properties") and found["type"] == GROUP:
        found.pop("properties", None)
    for key in ("subnets", "virtualNetworkPeerings"):
        for part in found.get("properties", {}).get(key) or []:
            part.get("properties", {}).pop("provisioningState", None)
    return found


def difference(before: Any, after: Any) -> list[dict[str, Any]]:
    """The properties that differ, each with its path from the resource."""
    found: list[dict[str, Any]] = []
    _compare(before, after, "", found)
    return found


def _entry(path: str, kind: str, before: Any = None, after: Any = None, children: Any = None) -> dict[str, Any]:
    return {"path": path, "propertyChangeType": kind, "before": before, "after": after, "children": children}


def _compare(before: dict[str, Any], after: dict[str, Any], path: str, found: list[dict[str, Any]]) -> None:
    for key in sorted(before.keys() | after.keys()):
        at = f"{path}.{key}" if path else key
        if key not in after:
            found.append(_entry(at, "Delete", before=before[key]))
        elif key not in before:
            found.append(_entry(at, "Create", after=after[key]))
        elif before[key] != after[key]:
            _changed(before[key], after[key], at, found)


def _changed(old: Any, new: Any, at: str, found: list[dict[str, Any]]) -> None:
    if isinstance(old, dict) and isinstance(new, dict):
        _compare(old, new, at, found)
    elif isinstance(old, list) and isinstance(new, list):
        found.append(_entry(at, "Array", children=_items(old, new)))
    else:
        found.append(_entry(at, "Modify", before=old, after=new))


def _items(old: list[Any], new: list[Any]) -> list[dict[str, Any]]:
    children: list[dict[str, Any]] = []
    for place in range(max(len(old), len(new))):
        at = str(place)
        if place >= len(new):
            children.append(_entry(at, "Delete", before=old[place]))
        elif place >= len(old):
            children.append(_entry(at, "Create", after=new[place]))
        elif old[place] != new[place]:
            if isinstance(old[place], dict) and isinstance(new[place], dict):
                children.append(_entry(at, "Modify", children=difference(old[place], new[place])))
            else:
                children.append(_entry(at, "Modify", before=old[place], after=new[place]))
    return children
