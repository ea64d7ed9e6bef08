"""NetApp Files: capacity that the subscription may use in the region, zones, and the export's name in a subnet.

Sources: Azure/azure-rest-api-specs, specification/netapp/resource-manager/Microsoft.NetApp/NetApp/examples/2025-06-01/:
Usages_List.json, RegionInfo.json, CheckFilePathAvailability.json.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from ...plan.file_systems.base import GIB_PER_TIB
from ...plan.file_systems.netapp import NetAppVolume
from ...plan.types import Plan
from ...words.counts import listed
from .answers import Found, Item, OddAnswer, below, folded, listed_below, number, said, same
from .machines import mount_path

_BYTES = GIB_PER_TIB * 2**30
_POOLS = "Microsoft.NetApp/netAppAccounts/capacityPools"
_VOLUMES = f"{_POOLS}/volumes"


def volumes(plan: Plan) -> tuple[NetAppVolume, ...]:
    """Those that the deployment creates."""
    return tuple(mount for mount in plan.all_mounts if isinstance(mount, NetAppVolume))


def over_quota(plan: Plan, usages: Iterable[Item], own_pools: Iterable[Item]) -> Iterator[Found]:
    """Capacity pools beyond the TiB of the subscription in the region; own pools are in use already."""
    usage = next((each for each in usages if same(below(each, "name", "value"), "totalTibsPerSubscription")), None)
    if usage is None:
        raise OddAnswer("the limits of NetApp Files do not name the TiB of the subscription")
    limit = number(usage, "properties", "limit", what="NetApp Files' limit")
    used = number(usage, "properties", "currentValue", what="NetApp Files' limit")
    own = sum(number(each, "properties", "size", what="a capacity pool") for each in own_pools) // _BYTES
    need, others = sum(mount.pool_tib for mount in volumes(plan)), max(0, used - own)
    if others + need > limit:
        text = (
            f"NetApp Files needs {need} TiB in {plan.location}; the limit is {limit} TiB, {others} TiB in use by others"
        )
        path = (*mount_path(plan, volumes(plan)[0].path), "size_tib")
        yield Found(path, text, "open a support request (Quotas, Azure NetApp Files limits), or use a smaller volume")


def missing_zones(plan: Plan, region: Item) -> Iterator[Found]:
    """Zones in which NetApp Files is not available. That it is there does not say that capacity is left."""
    known = {
        str(each.get("availabilityZone")): each.get("isAvailable")
        for each in listed_below(region, "availabilityZoneMappings")
    }
    usable = sorted(zone for zone, available in known.items() if available is True)
    for mount in volumes(plan):
        if mount.zone is not None and mount.zone not in usable:
            has = f"it has NetApp Files in zone {listed(usable)}" if usable else "it has NetApp Files in no zone"
            text = f"{mount.path} wants zone {mount.zone} of {plan.location}; {has}"
            hint = f"zone: {usable[0]}, or none: then Azure chooses" if usable else "take the zone out"
            yield Found((*mount_path(plan, mount.path), "zone"), text, hint)


def subnet_id(plan: Plan) -> str | None:
    """Id of an existing delegated subnet, in which names of exports are unique; None in a new network."""
    subnet = plan.network.subnet("netapp")
    return f"{plan.network.vnet_id}/subnets/{subnet.name}" if subnet is not None and plan.network.vnet_id else None


def path_body(mount: NetAppVolume, subnet: str) -> dict[str, object]:
    """What asks whether the name of an export is free."""
    found: dict[str, object] = {"name": (mount.export_path or "").strip("/"), "subnetId": subnet}
    return found | {"availabilityZone": mount.zone} if mount.zone else found


def taken_path(plan: Plan, mount: NetAppVolume, answer: Item, ours: Collection[tuple[str, str]]) -> Iterator[Found]:
    """An export whose name another volume of the subnet has."""
    free = answer.get("isAvailable")
    if not isinstance(free, bool):
        raise OddAnswer("the answer about the name of an export does not say whether it is free")
    own = f"{mount.account_name}/{mount.resource_name}/{mount.resource_name}"
    if not free and (folded(_VOLUMES), folded(own)) not in ours:
        why = said(answer.get("message") or answer.get("reason"))
        text = f"the export {mount.export_path} cannot be had in the subnet: {why}"
        yield Found(mount_path(plan, mount.path), text, "set azure.prefix: names of exports begin with it")
