"""Managed Lustre: sold in region and zone, room in the subnet and the limit."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import ClassVar

from ...plan.file_systems.managed_lustre import ManagedLustre
from ...plan.types import Plan
from ...problems.problem import KeyPath
from ..check import Check, Finding
from ..findings import managed_lustre as lustre
from ..reader import Reader
from ..refusals import Refused
from ..requests.services import LUSTRE_SKUS, LUSTRE_SUBNET, LUSTRE_SUBNET_SIZE, LUSTRE_USAGES
from .own import own_resources

_AMLFS = "https://learn.microsoft.com/azure/azure-managed-lustre/amlfs-prerequisites"


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
