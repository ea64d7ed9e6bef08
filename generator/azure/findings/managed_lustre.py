"""Managed Lustre: whether the region sells the tier in the zone, the subnet is large enough, and one more may exist.

Sources: Azure/azure-rest-api-specs, specification/storagecache/resource-manager/Microsoft.StorageCache/StorageCache/
examples/2026-01-01/: Skus_List.json, getRequiredAmlFSSubnetsSize.json (addresses, not a prefix length),
checkAmlFSSubnets.json (its 400 has no `error`), AscResourceUsages_Get.json.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from ... import catalog
from ...plan.file_systems.managed_lustre import ManagedLustre
from ...plan.subnets import parse_network
from ...plan.types import Plan
from ...words.counts import listed
from .answers import Found, Item, OddAnswer, below, folded, listed_below, number, said, same, texts_below
from .machines import mount_path

if TYPE_CHECKING:
    from ...plan.types import SubnetPlan

TYPE = "Microsoft.StorageCache/amlFilesystems"


def file_systems(plan: Plan) -> tuple[ManagedLustre, ...]:
    """Those that the deployment creates."""
    return tuple(mount for mount in plan.all_mounts if isinstance(mount, ManagedLustre))


def not_sold(plan: Plan, skus: Iterable[Item]) -> Iterator[Found]:
    """Tiers that the region does not have, not for this subscription, or not in the zone."""
    offers = [each for each in skus if same(each.get("resourceType"), "amlFilesystems")]
    if not offers:
        raise OddAnswer("the list of Managed Lustre's tiers is empty")
    for mount in file_systems(plan):
        path = mount_path(plan, mount.path)
        here = [each for each in offers if same(each.get("name"), mount.sku) and _is_here(each, plan.location)]
        if not here:
            regions = sorted({folded(place) for each in offers for place in texts_below(each, "locations")})
            text = f"{plan.location} does not sell Managed Lustre {mount.sku} for {mount.path}"
            yield Found((*path, "tier"), text, f"regions that have it: {', '.join(regions)}" if regions else "")
            continue
        reason = next((each for offer in here for each in listed_below(offer, "restrictions")), None)
        if reason is not None:
            text = f"{mount.sku} for {mount.path} is restricted for this subscription: {said(reason.get('reasonCode'))}"
            yield Found((*path, "tier"), text, "open a support request, or choose another tier or region")
        zones = sorted({zone for offer in here for zone in _zones(offer, plan.location)})
        if mount.zone is not None and zones and mount.zone not in zones:
            text = f"{mount.path} wants zone {mount.zone}; {plan.location} sells {mount.sku} in {listed(zones)}"
            yield Found((*path, "zone"), text, f"zone: {zones[0]}")


def _is_here(offer: Item, region: str) -> bool:
    places = [*texts_below(offer, "locations"), *(each.get("location") for each in listed_below(offer, "locationInfo"))]
    return any(same(place, region) for place in places)


def _zones(offer: Item, region: str) -> list[str]:
    infos = (each for each in listed_below(offer, "locationInfo") if same(each.get("location"), region))
    return [zone for info in infos for zone in texts_below(info, "zones")]


def too_many(plan: Plan, usages: Iterable[Item], ours: Collection[tuple[str, str]]) -> Iterator[Found]:
    """More file systems than the subscription may have in the region."""
    mounts = file_systems(plan)
    usage = next((each for each in usages if same(below(each, "name", "value"), "AmlFilesystem")), None)
    if usage is None:
        raise OddAnswer("the limits of Managed Lustre do not name file systems")
    new = [mount for mount in mounts if not is_ours(mount, ours)]
    limit = number(usage, "limit", what="Managed Lustre's limit")
    used = number(usage, "currentValue", what="Managed Lustre's limit")
    if new and used + len(new) > limit:
        text = f"{len(new)} more Managed Lustre are needed in {plan.location}; {used} of {limit} exist"
        path = mount_path(plan, new[0].path)
        yield Found(path, text, "open a support request (type: service and subscription limits (quotas))")


def is_ours(mount: ManagedLustre, ours: Collection[tuple[str, str]]) -> bool:
    """Whether it exists already, from an earlier run."""
    return (folded(TYPE), folded(mount.resource_name)) in ours


def size_body(mount: ManagedLustre) -> dict[str, object]:
    """What asks how many addresses a file system takes."""
    return {"storageCapacityTiB": mount.size_tib, "sku": {"name": mount.sku}}


def needed_addresses(answer: Item) -> int:
    """How many addresses a file system takes."""
    return number(answer, "filesystemSubnetSize", what="the addresses of Managed Lustre")


def small_subnet(plan: Plan, needed: Iterable[tuple[ManagedLustre, int]]) -> Iterator[Found]:
    """A new subnet with too few addresses for all file systems in it."""
    subnet = plan.network.subnet("lustre")
    space = parse_network(subnet.prefix) if subnet is not None and subnet.prefix else None
    if subnet is None or space is None or not plan.network.is_new:
        return
    wanted = sum(count for _, count in needed)
    has = space.num_addresses - int(catalog.limits()["reserved_addresses_per_subnet"]["value"])
    if has < wanted:
        text = f"Managed Lustre needs {wanted} addresses; the subnet {space} has {has}"
        yield Found(("network", "subnets", "lustre"), text, "give it a shorter prefix, such as /24")


def check_body(mount: ManagedLustre, subnet_id: str, location: str) -> dict[str, object]:
    """What asks whether an existing subnet will do."""
    return {"filesystemSubnet": subnet_id, "location": location, **size_body(mount)}


def subnet_id(plan: Plan) -> str | None:
    """Id of the existing subnet; None in a new network."""
    subnet: SubnetPlan | None = plan.network.subnet("lustre")
    return f"{plan.network.vnet_id}/subnets/{subnet.name}" if subnet is not None and plan.network.vnet_id else None


def refused_subnet(mount: ManagedLustre, body: object) -> Iterator[Found]:
    """What the service says of an existing subnet that it would not take; OddAnswer where it says nothing of it."""
    about = body.get("filesystemSubnet") if isinstance(body, dict) else None
    if not isinstance(about, dict) or "status" not in about:
        raise OddAnswer("the service says nothing of the subnet")
    if not same(about["status"], "Ok"):
        why = said(about.get("message") or about["status"])
        text = f"Managed Lustre would not take the subnet for {mount.path}: {why}"
        yield Found(("network", "existing", "subnets", "lustre"), text, "use a larger, empty subnet")
