"""Ids of Azure's resources: their parts, and how two of them compare."""

from __future__ import annotations

from msgspec import Struct

from ..plan.deployment import Plan


class Resource(Struct, frozen=True):
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


def same_id(one: str, other: str) -> bool:
    """Return True when two ids name the same resource; Azure writes them in any case."""
    return one.casefold().rstrip("/") == other.casefold().rstrip("/")


def within(scope: str, other: str) -> bool:
    """Return True when an id is the scope or below it."""
    return same_id(scope, other) or other.casefold().startswith(f"{scope.casefold().rstrip('/')}/")


def name_of(resource_id: str) -> str:
    """Return the last part of an id, without the names of what it is in."""
    return resource_id.rstrip("/").rpartition("/")[2]


def server_id(plan: Plan, subscription: str) -> str:
    """Return the id of the server's VM, of this deployment or of another one; empty without a server."""
    if plan.server is None:
        return plan.existing_server.vm_id if plan.existing_server else ""
    group = f"/subscriptions/{subscription}/resourceGroups/{plan.resource_group}"
    return f"{group}/providers/Microsoft.Compute/virtualMachines/{plan.server.vm_name}"


def network_id(plan: Plan, subscription: str) -> str:
    """Return the id of the network, also of one that is yet to be created."""
    own = plan.network
    group = f"/subscriptions/{subscription}/resourceGroups/{own.vnet_resource_group}"
    return own.vnet_id or f"{group}/providers/Microsoft.Network/virtualNetworks/{own.vnet_name}"
