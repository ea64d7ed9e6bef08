"""Managed Lustre and NetApp Files: sold in region and zone, room in subnet and quota."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import ClassVar

from ...plan.file_systems.managed_lustre import ManagedLustre
from ...plan.types import Plan
from ...problems.problem import KeyPath
from ..check import Check, Finding
from ..meaning import lustre, netapp
from ..reader import Reader
from ..refusals import Refused
from ..requests.services import (
    LUSTRE_SKUS,
    LUSTRE_SUBNET,
    LUSTRE_SUBNET_SIZE,
    LUSTRE_USAGES,
    NETAPP_PATH,
    NETAPP_POOLS,
    NETAPP_REGION,
    NETAPP_USAGES,
)
from .own import listed, own_resources

_AMLFS = "https://learn.microsoft.com/azure/azure-managed-lustre/amlfs-prerequisites"
_LIMITS = "https://learn.microsoft.com/azure/azure-netapp-files/azure-netapp-files-resource-limits"


class _OfLustre(Check):
    path: ClassVar[KeyPath] = ("storage", "mounts")

    def needed(self, plan: Plan) -> bool:
        """Whether there is one."""
        return bool(lustre.file_systems(plan))


class LustreNotSold(_OfLustre):
    id = "E4701"
    summary = "The region does not sell the tier of Managed Lustre, not in this zone, or not to this subscription."
    why = "The file system is refused, often after the rest of the deployment has been made."
    fix = "Choose another tier, zone or region."
    source = _AMLFS
    question = "whether the region sells Managed Lustre's tier in the zone"

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """Each file system."""
        yield from (self.finding(*found) for found in lustre.not_sold(plan, reader.pages(LUSTRE_SKUS())))


class LustreLimit(_OfLustre):
    id = "E4702"
    summary = "The subscription may have no more Managed Lustre file systems in the region."
    why = "The file system is refused."
    fix = "Open a support request for the quota, or delete one that is not needed."
    source = _AMLFS
    question = "whether one more Managed Lustre may exist"

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """Those of an earlier run count as ours."""
        usages, ours = reader.pages(LUSTRE_USAGES(region=plan.location)), own_resources(plan, reader)
        yield from (self.finding(*found) for found in lustre.too_many(plan, usages, ours))


class LustreSubnet(_OfLustre):
    id = "E4703"
    summary = "The subnet does not suit Managed Lustre: it is too small, or the service would not take it."
    why = "The file system is refused, often after the rest of the deployment has been made."
    fix = "Give it a subnet of its own with the addresses that the message names."
    source = _AMLFS
    question = "whether the subnet suits Managed Lustre"
    path = ("network",)

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """A new subnet by its size, an existing one by asking the service."""
        mounts, subnet = lustre.file_systems(plan), lustre.subnet_id(plan)
        if subnet is not None:
            # It is in use by the file system itself once that is made.
            ours = own_resources(plan, reader)
            new = [mount for mount in mounts if not lustre.is_ours(mount, ours)]
            for found in reader.together([partial(self._existing, plan, reader, mount, subnet) for mount in new]):
                yield from found
            return
        calls = [partial(reader.post, LUSTRE_SUBNET_SIZE(body=lustre.size_body(mount))) for mount in mounts]
        counts = [lustre.needed_addresses(answer) for answer in reader.together(calls)]
        yield from (self.finding(*found) for found in lustre.small_subnet(plan, zip(mounts, counts, strict=True)))

    def _existing(self, plan: Plan, reader: Reader, mount: ManagedLustre, subnet: str) -> list[Finding]:
        try:
            said: object = reader.post(LUSTRE_SUBNET(body=lustre.check_body(mount, subnet, plan.location)))
        except Refused as refused:
            if refused.status != 400:
                raise
            said = refused.body
        # A subnet that will do gets an answer without a body.
        return [self.finding(*found) for found in lustre.refused_subnet(mount, said)] if said else []


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
                partial(listed, reader, NETAPP_POOLS(group=plan.resource_group, account=account)),
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
