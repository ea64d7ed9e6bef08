"""Ids of Azure's resources: type, name, and where a resource is."""

from __future__ import annotations

from ..records import record


@record
class Resource:
    """One resource; `group` is None for what belongs to a subscription."""

    id: str
    type: str
    """For example `Microsoft.Network/virtualNetworks/subnets`; empty where the id is not one."""
    name: str
    """With the names of what it is in: `vnet/subnet`."""
    group: str | None


def resource(text: str) -> Resource:
    """The parts of an id. One that is bound to another resource is named by itself: a role, a lock, a setting.

    Source: https://learn.microsoft.com/azure/azure-resource-manager/templates/template-functions-resource#resourceid
    """
    parts = [part for part in text.split("/") if part]
    folded = [part.lower() for part in parts]
    group = parts[3] if len(parts) > 3 and folded[2] == "resourcegroups" else None
    if "providers" not in folded:
        if group is not None:
            return Resource(text, "Microsoft.Resources/resourceGroups", group, group)
        kind = "Microsoft.Resources/subscriptions" if folded[:1] == ["subscriptions"] else ""
        return Resource(text, kind, parts[-1] if parts else "", None)
    start = len(folded) - 1 - folded[::-1].index("providers")
    rest = parts[start + 1 :]
    kinds, names = rest[1::2], rest[2::2]
    return Resource(text, "/".join((*rest[:1], *kinds)), "/".join(names), group)
