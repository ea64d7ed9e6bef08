"""Managed Lustre: whether the region sells the tier in the zone, the subnet is large enough, and one more may exist.

Sources: Azure/azure-rest-api-specs, specification/storagecache/resource-manager/Microsoft.StorageCache/StorageCache/
examples/2026-01-01/: Skus_List.json, getRequiredAmlFSSubnetsSize.json (addresses, not a prefix length),
checkAmlFSSubnets.json (its 400 has no `error`), AscResourceUsages_Get.json.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import ClassVar

from ... import catalog
from ...plan.deployment import Plan
from ...plan.file_systems.managed_lustre import ManagedLustre
from ...plan.subnets import parse_network
from ...problems.problem import KeyPath
from ...words.counts import listed
from ..answers import Item, OddAnswer, below, folded, listed_below, number, said, same, texts_below
from ..check import Check, Finding
from ..reader import Reader
from ..refusals import Refused
from ..requests.services import LUSTRE_SKUS, LUSTRE_SUBNET, LUSTRE_SUBNET_SIZE, LUSTRE_USAGES
from .names import own_resources
from .networks import existing_subnet_id

_TYPE = "Microsoft.StorageCache/amlFilesystems"
_AMLFS = "https://learn.microsoft.com/azure/azure-managed-lustre/amlfs-prerequisites"


def _file_systems(plan: Plan) -> tuple[ManagedLustre, ...]:
    return tuple(mount for mount in plan.all_mounts if isinstance(mount, ManagedLustre))


def _is_ours(mount: ManagedLustre, ours: Collection[tuple[str, str]]) -> bool:
    """Whether it exists already, from an earlier run."""
    return (folded(_TYPE), folded(mount.resource_name)) in ours


class _OfLustre(Check):
    path: ClassVar[KeyPath] = ("storage", "mounts")

    def needed(self, plan: Plan) -> bool:
        return bool(_file_systems(plan))


class LustreNotSold(_OfLustre):
    id = "E4701"
    summary = "The region does not sell the tier of Managed Lustre, not in this zone, or not to this subscription."
    why = "The file system is refused, often after the rest of the deployment has been made."
    fix = "Choose another tier, zone or region."
    source = _AMLFS
    question = "whether the region sells Managed Lustre's tier in the zone"

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        offers = [each for each in reader.pages(LUSTRE_SKUS()) if same(each.get("resourceType"), "amlFilesystems")]
        if not offers:
            raise OddAnswer("the list of Managed Lustre's tiers is empty")
        for mount in _file_systems(plan):
            yield from self._judged(mount, plan.place_of_mount(mount.path), plan.location, offers)

    def _judged(self, mount: ManagedLustre, path: KeyPath, region: str, offers: Sequence[Item]) -> Iterator[Finding]:
        here = [each for each in offers if same(each.get("name"), mount.sku) and _is_here(each, region)]
        if not here:
            regions = sorted({folded(place) for each in offers for place in texts_below(each, "locations")})
            text = f"{region} does not sell Managed Lustre {mount.sku} for {mount.path}"
            hint = f"regions that have it: {', '.join(regions)}" if regions else None
            yield self.finding((*path, "tier"), text, hint)
            return
        reason = next((each for offer in here for each in listed_below(offer, "restrictions")), None)
        if reason is not None:
            text = f"{mount.sku} for {mount.path} is restricted for this subscription: {said(reason.get('reasonCode'))}"
            yield self.finding((*path, "tier"), text, "open a support request, or choose another tier or region")
        zones = sorted({zone for offer in here for zone in _zones(offer, region)})
        if mount.zone is not None and zones and mount.zone not in zones:
            text = f"{mount.path} wants zone {mount.zone}; {region} sells {mount.sku} in {listed(zones)}"
            yield self.finding((*path, "zone"), text, f"zone: {zones[0]}")


def _is_here(offer: Item, region: str) -> bool:
    places = [*texts_below(offer, "locations"), *(each.get("location") for each in listed_below(offer, "locationInfo"))]
    return any(same(place, region) for place in places)


def _zones(offer: Item, region: str) -> list[str]:
    infos = (each for each in listed_below(offer, "locationInfo") if same(each.get("location"), region))
    return [zone for info in infos for zone in texts_below(info, "zones")]


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
        usage = next((each for each in usages if same(below(each, "name", "value"), "AmlFilesystem")), None)
        if usage is None:
            raise OddAnswer("the limits of Managed Lustre do not name file systems")
        new = [mount for mount in _file_systems(plan) if not _is_ours(mount, ours)]
        limit = number(usage, "limit", what="Managed Lustre's limit")
        used = number(usage, "currentValue", what="Managed Lustre's limit")
        if new and used + len(new) > limit:
            text = f"{len(new)} more Managed Lustre are needed in {plan.location}; {used} of {limit} exist"
            hint = "open a support request (type: service and subscription limits (quotas))"
            yield self.finding(plan.place_of_mount(new[0].path), text, hint)


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
        mounts, subnet = _file_systems(plan), existing_subnet_id(plan, "lustre")
        if subnet is None:
            calls = [partial(reader.post, LUSTRE_SUBNET_SIZE(body=_size_body(mount))) for mount in mounts]
            what = "the addresses of Managed Lustre"
            counts = [number(answer, "filesystemSubnetSize", what=what) for answer in reader.together(calls)]
            yield from self._small(plan, sum(counts))
            return
        # It is in use by the file system itself once that is made.
        ours = own_resources(plan, reader)
        new = [mount for mount in mounts if not _is_ours(mount, ours)]
        for found in reader.together([partial(self._existing, plan, reader, mount, subnet) for mount in new]):
            yield from found

    def _small(self, plan: Plan, wanted: int) -> Iterator[Finding]:
        """A new subnet with too few addresses for all file systems in it."""
        subnet = plan.network.subnet("lustre")
        space = parse_network(subnet.prefix) if subnet is not None and subnet.prefix else None
        if space is None or not plan.network.is_new:
            return
        has = space.num_addresses - int(catalog.limits().reserved_addresses_per_subnet.value)
        if has < wanted:
            text = f"Managed Lustre needs {wanted} addresses; the subnet {space} has {has}"
            yield self.finding(("network", "subnets", "lustre"), text, "give it a shorter prefix, such as /24")

    def _existing(self, plan: Plan, reader: Reader, mount: ManagedLustre, subnet: str) -> list[Finding]:
        body = {"filesystemSubnet": subnet, "location": plan.location, **_size_body(mount)}
        try:
            answer: object = reader.post(LUSTRE_SUBNET(body=body))
        except Refused as refused:
            if refused.status != 400:
                raise
            answer = refused.body
        if not answer:  # a subnet that will do gets an answer without a body
            return []
        about = answer.get("filesystemSubnet") if isinstance(answer, dict) else None
        if not isinstance(about, dict) or "status" not in about:
            raise OddAnswer("the service says nothing of the subnet")
        if same(about["status"], "Ok"):
            return []
        why = said(about.get("message") or about["status"])
        text = f"Managed Lustre would not take the subnet for {mount.path}: {why}"
        return [self.finding(("network", "existing", "subnets", "lustre"), text, "use a larger, empty subnet")]


def _size_body(mount: ManagedLustre) -> dict[str, object]:
    """What asks how many addresses a file system takes."""
    return {"storageCapacityTiB": mount.size_tib, "sku": {"name": mount.sku}}
