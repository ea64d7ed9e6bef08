"""NetApp Files: capacity that the subscription may use in the region, zones, and the export's name in a subnet.

Sources: Azure/azure-rest-api-specs, specification/netapp/resource-manager/Microsoft.NetApp/NetApp/examples/2025-06-01/:
Usages_List.json, RegionInfo.json, CheckFilePathAvailability.json.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ...plan.deployment import Plan
from ...plan.file_systems.base import GIB_PER_TIB
from ...plan.file_systems.netapp import NetAppVolume
from ...words.counts import listed
from ..answers import OddAnswer, below, folded, listed_below, number, said, same
from ..check import Check, Finding
from ..reader import Reader
from ..requests.services import NETAPP_PATH, NETAPP_POOLS, NETAPP_REGION, NETAPP_USAGES
from .names import own_resources
from .networks import existing_subnet_id

_BYTES = GIB_PER_TIB * 2**30
_VOLUMES = "Microsoft.NetApp/netAppAccounts/capacityPools/volumes"


def _volumes(plan: Plan) -> tuple[NetAppVolume, ...]:
    return tuple(mount for mount in plan.all_mounts if isinstance(mount, NetAppVolume))


class _OfNetApp(Check):
    path = ("storage",)

    def needed(self, plan: Plan) -> bool:
        return bool(_volumes(plan))


class NetAppQuota(_OfNetApp):
    id = "E4704"
    summary = "The capacity pools of NetApp Files are beyond the subscription's quota in the region."
    why = "Pool and volume are refused."
    fix = "Open a support request (Quotas, Azure NetApp Files limits), or use smaller volumes."
    source = "https://learn.microsoft.com/azure/azure-netapp-files/azure-netapp-files-resource-limits"
    question = "whether NetApp Files has quota left"

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """All pools together; own pools of an earlier run are in use already."""
        volumes = _volumes(plan)
        usages, pools = reader.together(
            [
                partial(reader.pages, NETAPP_USAGES(region=plan.location)),
                partial(reader.find_pages, NETAPP_POOLS(group=plan.resource_group, account=volumes[0].account_name)),
            ]
        )
        usage = next((each for each in usages if same(below(each, "name", "value"), "totalTibsPerSubscription")), None)
        if usage is None:
            raise OddAnswer("the limits of NetApp Files do not name the TiB of the subscription")
        limit = number(usage, "properties", "limit", what="NetApp Files' limit")
        used = number(usage, "properties", "currentValue", what="NetApp Files' limit")
        own = sum(number(each, "properties", "size", what="a capacity pool") for each in pools) // _BYTES
        need, others = sum(mount.pool_tib for mount in volumes), max(0, used - own)
        if others + need > limit:
            text = (
                f"NetApp Files needs {need} TiB in {plan.location}; the limit is {limit} TiB, {others} TiB in use by "
                "others"
            )
            hint = "open a support request (Quotas, Azure NetApp Files limits), or use a smaller volume"
            yield self.finding((*plan.place_of_mount(volumes[0].path), "size_tib"), text, hint)


class NetAppZone(_OfNetApp):
    id = "E4705"
    summary = "NetApp Files is not available in the zone that the definition names."
    why = "The volume is refused."
    fix = "Name a zone that the message names, or none: then Azure chooses."
    source = "https://learn.microsoft.com/azure/azure-netapp-files/use-availability-zones"
    question = "in which zones NetApp Files is available"

    def needed(self, plan: Plan) -> bool:
        return any(mount.zone for mount in _volumes(plan))

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """That the service is there does not say that capacity is left."""
        region = reader.get(NETAPP_REGION(region=plan.location))
        known = {
            str(each.get("availabilityZone")): each.get("isAvailable")
            for each in listed_below(region, "availabilityZoneMappings")
        }
        usable = sorted(zone for zone, available in known.items() if available is True)
        has = f"it has NetApp Files in zone {listed(usable)}" if usable else "it has NetApp Files in no zone"
        hint = f"zone: {usable[0]}, or none: then Azure chooses" if usable else "take the zone out"
        for mount in _volumes(plan):
            if mount.zone is not None and mount.zone not in usable:
                text = f"{mount.path} wants zone {mount.zone} of {plan.location}; {has}"
                yield self.finding((*plan.place_of_mount(mount.path), "zone"), text, hint)


class ExportTaken(_OfNetApp):
    id = "E4706"
    summary = "Another volume in the delegated subnet has the name of an export."
    why = "Names of exports are unique in a subnet, so the volume is refused."
    fix = "Set azure.prefix, with which the names begin."
    source = "https://learn.microsoft.com/azure/azure-netapp-files/azure-netapp-files-create-volumes"
    question = "whether the names of the exports are free"

    def needed(self, plan: Plan) -> bool:
        """In an existing network; a new one has no other volumes."""
        return super().needed(plan) and existing_subnet_id(plan, "netapp") is not None

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        mounts, subnet = _volumes(plan), existing_subnet_id(plan, "netapp") or ""
        ours = own_resources(plan, reader)
        calls = [NETAPP_PATH(region=plan.location, body=_path_body(mount, subnet)) for mount in mounts]
        answers = reader.together([partial(reader.post, call) for call in calls])
        for mount, answer in zip(mounts, answers, strict=True):
            free = answer.get("isAvailable")
            if not isinstance(free, bool):
                raise OddAnswer("the answer about the name of an export does not say whether it is free")
            own = f"{mount.account_name}/{mount.resource_name}/{mount.resource_name}"
            if not free and (folded(_VOLUMES), folded(own)) not in ours:
                why = said(answer.get("message") or answer.get("reason"))
                text = f"the export {mount.export_path} cannot be had in the subnet: {why}"
                hint = "set azure.prefix: names of exports begin with it"
                yield self.finding(plan.place_of_mount(mount.path), text, hint)


def _path_body(mount: NetAppVolume, subnet: str) -> dict[str, object]:
    """What asks whether the name of an export is free."""
    found: dict[str, object] = {"name": (mount.export_path or "").strip("/"), "subnetId": subnet}
    return found | {"availabilityZone": mount.zone} if mount.zone else found
