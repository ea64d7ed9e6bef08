"""What Azure adds to a resource that it creates: addresses, principals, endpoints, ids of parts.

Sources: the read-only properties of each type, as https://learn.microsoft.com/azure/templates/ and
Azure/bicep-types-azure:generated/<provider>/<version>/types.md list them. Values are made from the id, so that the same
resource always gets the same ones.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .state import State

_NAMESPACE = uuid.UUID("3c5e0e53-55a8-4f6f-9c8e-8f9f5f0d8f11")
Completion = Callable[["State", dict[str, Any]], None]


def made(kind: str, resource_id: str) -> str:
    """A GUID that follows from an id."""
    return str(uuid.uuid5(_NAMESPACE, f"{kind} {resource_id.lower()}"))


def merged(base: Any, change: Any) -> Any:
    """A PATCH: objects key by key, the rest replaced."""
    if not (isinstance(base, dict) and isinstance(change, dict)):
        return change
    return base | {key: merged(base.get(key), value) for key, value in change.items()}


def complete(state: State, resource: dict[str, Any], before: dict[str, Any] | None) -> None:
    """Add what Azure adds."""
    identity = resource.get("identity")
    if isinstance(identity, dict) and "SystemAssigned" in str(identity.get("type")):
        identity |= {"principalId": made("principal", resource["id"]), "tenantId": state.tenant}
    completion = _OF_TYPE.get(resource["type"].lower())
    if completion is not None:
        completion(state, resource)
    if before is not None:  # parts that only Azure and others write stay
        for key in ("virtualNetworkPeerings",):
            if key in before["properties"] and key not in resource["properties"]:
                resource["properties"][key] = before["properties"][key]


def _group(_: State, resource: dict[str, Any]) -> None:
    resource["type"] = "Microsoft.Resources/resourceGroups"


def _identity(state: State, resource: dict[str, Any]) -> None:
    for kind in ("principal", "client"):
        resource["properties"][f"{kind}Id"] = made(kind, resource["id"])
    resource["properties"]["tenantId"] = state.tenant


def _network(_: State, resource: dict[str, Any]) -> None:
    for key in ("subnets", "virtualNetworkPeerings"):
        for part in resource["properties"].get(key) or []:
            part["id"] = f"{resource['id']}/{key}/{part['name']}"
            part["type"] = f"{resource['type']}/{key}"
            part.setdefault("properties", {})["provisioningState"] = "Succeeded"


def _rules(_: State, resource: dict[str, Any]) -> None:
    for part in resource["properties"].get("securityRules") or []:
        part["id"] = f"{resource['id']}/securityRules/{part['name']}"


def _storage(_: State, resource: dict[str, Any]) -> None:
    name = resource["name"]
    endpoints = {kind: f"https://{name}.{kind}.core.windows.net/" for kind in ("blob", "file", "queue", "table", "dfs")}
    resource["properties"] |= {"primaryEndpoints": endpoints, "primaryLocation": resource.get("location")}


def _machine(_: State, resource: dict[str, Any]) -> None:
    resource["properties"]["vmId"] = made("vm", resource["id"])
    profile = resource["properties"].get("storageProfile", {})
    scope = resource["id"].partition("/providers/")[0]
    named = [(profile.get("osDisk"), "OsDisk_1")]
    named += [(each, f"disk{place + 2}") for place, each in enumerate(profile.get("dataDisks") or [])]
    for disk, kind in named:
        if disk:
            disk.setdefault("name", f"{resource['name']}_{kind}_{made(kind, resource['id']).replace('-', '')}")
            disk.setdefault("managedDisk", {})["id"] = f"{scope}/providers/Microsoft.Compute/disks/{disk['name']}"


def _nic(_: State, resource: dict[str, Any]) -> None:
    octet = 4 + int(made("nic", resource["id"])[:2], 16) % 200
    for part in resource["properties"].get("ipConfigurations") or []:
        part["id"] = f"{resource['id']}/ipConfigurations/{part['name']}"
        part["properties"].setdefault("privateIPAddress", f"10.60.0.{octet}")


def _address(_: State, resource: dict[str, Any]) -> None:
    octet = 1 + int(made("address", resource["id"])[:2], 16) % 250
    resource["properties"]["ipAddress"] = f"192.0.2.{octet}"
    settings = resource["properties"].get("dnsSettings")
    if settings:
        settings["fqdn"] = f"{settings['domainNameLabel']}.{resource.get('location')}.cloudapp.azure.com"


def _database(_: State, resource: dict[str, Any]) -> None:
    resource["properties"] |= {
        "fullyQualifiedDomainName": f"{resource['name']}.mysql.database.azure.com", "state": "Ready",
    }  # fmt: skip


def _lustre(_: State, resource: dict[str, Any]) -> None:
    resource["properties"] |= {
        "clientInfo": {"mgsAddress": "10.60.8.4", "mountCommand": "mount -t lustre 10.60.8.4@tcp:/lustrefs /lustre",
                       "lustreVersion": "2.16.1"},
        "health": {"state": "Available"},
    }  # fmt: skip


def _volume(_: State, resource: dict[str, Any]) -> None:
    target = {"mountTargetId": made("mount", resource["id"]), "ipAddress": "10.60.9.4"}
    resource["properties"] |= {"mountTargets": [target], "fileSystemId": made("volume", resource["id"])}


def _bastion(_: State, resource: dict[str, Any]) -> None:
    resource["properties"]["dnsName"] = f"bst-{made('bastion', resource['id'])}.bastion.azure.com"


def _endpoint(_: State, resource: dict[str, Any]) -> None:
    """Its interface is a resource of its own, in no template."""
    scope, name = resource["id"].partition("/providers/")[0], resource["name"]
    nic = f"{scope}/providers/Microsoft.Network/networkInterfaces/{name}.nic.{made('nic', resource['id'])}"
    resource["properties"]["networkInterfaces"] = [{"id": nic}]


def _role(_: State, resource: dict[str, Any]) -> None:
    resource["properties"]["scope"] = resource["id"].rpartition("/providers/Microsoft.Authorization/")[0]


def _link(_: State, resource: dict[str, Any]) -> None:
    resource["properties"]["virtualNetworkLinkState"] = "Completed"


_OF_TYPE: dict[str, Completion] = {
    "microsoft.resources/resourcegroups": _group,
    "microsoft.authorization/roleassignments": _role,
    "microsoft.managedidentity/userassignedidentities": _identity,
    "microsoft.network/virtualnetworks": _network,
    "microsoft.network/networksecuritygroups": _rules,
    "microsoft.network/networkinterfaces": _nic,
    "microsoft.network/publicipaddresses": _address,
    "microsoft.network/bastionhosts": _bastion,
    "microsoft.network/privateendpoints": _endpoint,
    "microsoft.network/privatednszones/virtualnetworklinks": _link,
    "microsoft.storage/storageaccounts": _storage,
    "microsoft.compute/virtualmachines": _machine,
    "microsoft.dbformysql/flexibleservers": _database,
    "microsoft.storagecache/amlfilesystems": _lustre,
    "microsoft.netapp/netappaccounts/capacitypools/volumes": _volume,
}
