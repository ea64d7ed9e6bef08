"""Resources that come with others, go with them, or keep them from being deleted.

Sources: https://learn.microsoft.com/azure/virtual-machines/delete (disks and interfaces of a machine),
https://learn.microsoft.com/azure/private-link/private-endpoint-overview (the interface of an endpoint),
https://learn.microsoft.com/troubleshoot/azure/virtual-network/delete-vnet (InUseSubnetCannotBeDeleted, NicInUse),
https://learn.microsoft.com/azure/azure-resource-manager/management/delete-resource-group (order)
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .exchange import RefusedError

if TYPE_CHECKING:
    from .state import State

MACHINE = "microsoft.compute/virtualmachines"
_NETWORK = "microsoft.network/"
_IN_USE = {
    f"{_NETWORK}networkinterfaces": "NicInUse",
    f"{_NETWORK}publicipaddresses": "PublicIPAddressCannotBeDeleted",
    f"{_NETWORK}networksecuritygroups": "InUseNetworkSecurityGroupCannotBeDeleted",
    f"{_NETWORK}virtualnetworks": "InUseSubnetCannotBeDeleted",
}
_EMPTY_FIRST = (
    f"{_NETWORK}privatednszones",
    "microsoft.netapp/netappaccounts",
    "microsoft.netapp/netappaccounts/capacitypools",
)


def accompany(state: State, resource: dict[str, Any]) -> None:
    """Create what comes with a resource and is in no template."""
    kind = resource["type"].lower()
    place = resource.get("location")
    if kind == MACHINE:
        for disk_id in _disks(resource):
            if disk_id.lower() not in state.resources:
                fields = {"provisioningState": "Succeeded", "diskState": "Attached"}
                tags = resource.get("tags") or {}
                state.put(disk_id, location=place, tags=tags, properties=fields, managedBy=resource["id"])
    if kind == f"{MACHINE}/extensions" and resource["name"] == "cycleforge-bootstrap":
        state.boot(state, resource)
    if kind == f"{_NETWORK}privateendpoints":
        for each in resource["properties"]["networkInterfaces"]:
            if each["id"].lower() not in state.resources:
                state.put(each["id"], location=place, properties={"privateEndpoint": {"id": resource["id"]}})


def _disks(machine: dict[str, Any]) -> list[str]:
    profile = machine["properties"].get("storageProfile", {})
    disks = [profile.get("osDisk") or {}, *(profile.get("dataDisks") or [])]
    found = [each.get("managedDisk", {}).get("id", "") for each in disks]
    return [each for each in found if each]


def leaving(state: State, resource: dict[str, Any]) -> list[str]:
    """Ids of what is deleted with a resource; a disk that stays is told that nobody has it."""
    kind = resource["type"].lower()
    if kind == f"{_NETWORK}privateendpoints":
        return [each["id"] for each in resource["properties"].get("networkInterfaces", [])]
    if kind != MACHINE:
        return []
    profile = resource["properties"].get("storageProfile", {})
    disks = [profile.get("osDisk") or {}, *(profile.get("dataDisks") or [])]
    pairs = [(each.get("managedDisk", {}).get("id", ""), each.get("deleteOption")) for each in disks]
    for each in resource["properties"].get("networkProfile", {}).get("networkInterfaces") or []:
        pairs.append((each.get("id", ""), each.get("properties", {}).get("deleteOption")))
    for resource_id, option in pairs:
        disk = state.resources.get(resource_id.lower())
        if disk is not None and option != "Delete" and "managedBy" in disk:
            del disk["managedBy"]
            disk["properties"]["diskState"] = "Unattached"
    return [resource_id for resource_id, option in pairs if resource_id and option == "Delete"]


def unused(state: State, resource: dict[str, Any]) -> None:
    """Refuse to delete what something else holds, or what must be emptied before."""
    kind, own = resource["type"].lower(), resource["id"].lower()
    children = _nested(state, own) if kind in _EMPTY_FIRST else []
    if children:
        raise RefusedError(
            409,
            "CannotDeleteResource",
            "Cannot delete resource while nested resources exist. Some existing nested resource IDs include: "
            f"'{children[0]['id']}'. Please delete all nested resources before deleting this resource.",
        )
    code = _IN_USE.get(kind)
    holder = _holder(state, kind, own) if code else None
    if code and holder:
        raise RefusedError(
            400,
            code,
            f"{resource['name']} is in use by {holder} and cannot be deleted. In order to delete it, delete or "
            "detach all that uses it.",
        )


def _nested(state: State, own: str) -> list[dict[str, Any]]:
    """Children; locks and roles are none."""
    return [each for each in state.below(own) if "/providers/" not in each["id"].lower()[len(own) :]]


def _holder(state: State, kind: str, own: str) -> str | None:
    wanted = f"{own}/subnets/" if kind.endswith("/virtualnetworks") else own
    for key, other in state.resources.items():
        if key == own or key.startswith(f"{own}/"):
            continue
        if kind.endswith("/networkinterfaces") and other["type"].lower() not in (
            MACHINE,
            f"{_NETWORK}privateendpoints",
        ):
            continue
        text = json.dumps(other.get("properties", {})).lower()
        if f'"{wanted}"' in text or (wanted.endswith("/subnets/") and f'"{wanted}' in text):
            return str(other["id"])
    return None
