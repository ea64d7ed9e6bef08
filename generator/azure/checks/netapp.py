"""NetApp Files: quota, zones, and the names of exports."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ...plan.types import Plan
from ..check import Check, Finding
from ..findings import netapp
from ..reader import Reader
from ..requests.services import NETAPP_PATH, NETAPP_POOLS, NETAPP_REGION, NETAPP_USAGES
from .own import own_resources

_LIMITS = "https://learn.microsoft.com/azure/azure-netapp-files/azure-netapp-files-resource-limits"


class _OfNetApp(Check):
    path = ("storage",)

    def needed(self, plan: Plan) -> bool:
        """Whether there is a volume."""
        return bool(netapp.volumes(plan))


class NetAppQuota(_OfNetApp):
    id = "E4704"
    summary = "The capacity pools of NetApp Files are beyond the subscription's quota in the region."
    why = "Pool and volume are refused."
    fix = "Open a support request (Quotas, Azure NetApp Files limits), or use smaller volumes."
    source = _LIMITS
    question = "whether NetApp Files has quota left"

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """All pools together, beside what others use."""
        account = netapp.volumes(plan)[0].account_name
        usages, pools = reader.together(
            [
                partial(reader.pages, NETAPP_USAGES(region=plan.location)),
                partial(reader.find_pages, NETAPP_POOLS(group=plan.resource_group, account=account)),
            ]
        )
        yield from (self.finding(*found) for found in netapp.over_quota(plan, usages, pools))


class NetAppZone(_OfNetApp):
    id = "E4705"
    summary = "NetApp Files is not available in the zone that the definition names."
    why = "The volume is refused."
    fix = "Name a zone that the message names, or none: then Azure chooses."
    source = "https://learn.microsoft.com/azure/azure-netapp-files/use-availability-zones"
    question = "in which zones NetApp Files is available"

    def needed(self, plan: Plan) -> bool:
        """Whether a zone is named."""
        return any(mount.zone for mount in netapp.volumes(plan))

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """Each volume with a zone."""
        region = reader.get(NETAPP_REGION(region=plan.location))
        yield from (self.finding(*found) for found in netapp.missing_zones(plan, region))


class ExportTaken(_OfNetApp):
    id = "E4706"
    summary = "Another volume in the delegated subnet has the name of an export."
    why = "Names of exports are unique in a subnet, so the volume is refused."
    fix = "Set azure.prefix, with which the names begin."
    source = "https://learn.microsoft.com/azure/azure-netapp-files/azure-netapp-files-create-volumes"
    question = "whether the names of the exports are free"

    def needed(self, plan: Plan) -> bool:
        """In an existing network; a new one has no other volumes."""
        return super().needed(plan) and netapp.subnet_id(plan) is not None

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """Each volume."""
        mounts, subnet, ours = netapp.volumes(plan), netapp.subnet_id(plan) or "", own_resources(plan, reader)
        calls = [NETAPP_PATH(region=plan.location, body=netapp.path_body(mount, subnet)) for mount in mounts]
        answers = reader.together([partial(reader.post, call) for call in calls])
        for mount, answer in zip(mounts, answers, strict=True):
            yield from (self.finding(*found) for found in netapp.taken_path(plan, mount, answer, ours))
