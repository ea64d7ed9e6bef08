"""Whether the VM sizes are offered to this subscription, in this region and in the zones that are named.

Source: https://learn.microsoft.com/rest/api/compute/resource-skus/list: only the filter by location exists, and the
list of a region has many pages. A restriction of the type `Location` that names the region forbids the size, one of
the type `Zone` takes its zones away. A size may have no zones and still be there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ...definition.skus import Sku, skus_of
from ...errors import CannotRead
from ...plan.types import Plan
from ...words.counts import listed
from .answers import Found, Item, OddAnswer, folded, same
from .machines import Machines, machines

Offered = Mapping[str, Sku]
"""VM sizes of the region by their folded names."""
_REASONS = {
    "notavailableforsubscription": (
        "this subscription has no access to it",
        "open a support request (type: service and subscription limits (quotas), Compute-VM), choose another region "
        "or another size",
    ),
    "quotaid": (
        "subscriptions of this offer type do not get it",
        "use a subscription of another offer, such as pay-as-you-go or an enterprise agreement",
    ),
}
"""https://learn.microsoft.com/rest/api/compute/resource-skus/list#resourceskurestrictionsreasoncode"""


def offered(answer: Iterable[Item], names: Iterable[str]) -> Offered:
    """The wanted sizes of a region's list; the others are not looked at, whatever is odd in them."""
    wanted = {folded(name) for name in names}
    listed_sizes = [each for each in answer if same(each.get("resourceType"), "virtualMachines")]
    if not listed_sizes:
        raise OddAnswer("the list of VM sizes is empty")
    try:
        found = skus_of(each for each in listed_sizes if folded(each.get("name")) in wanted)
    except CannotRead as error:
        raise OddAnswer(str(error)) from error
    return {folded(sku.name): sku for sku in found}


def not_offered(plan: Plan, sizes: Offered) -> Iterator[Found]:
    """Sizes that the region does not have, or has not for this subscription."""
    for each in machines(plan):
        sku = sizes.get(folded(each.vm_size))
        if sku is None:
            look = f"az vm list-skus -l {plan.location} --resource-type virtualMachines --all -o table"
            yield Found(each.path, f"{plan.location} does not offer {each.vm_size} ({each.title})", look)
            continue
        reason = next((each.reason for each in sku.restrictions if _forbids(each.regions, each.zones, plan)), None)
        if reason is not None:
            why, way_out = _REASONS.get(folded(reason), (f"Azure says {reason}", "choose another size or region"))
            yield Found(each.path, f"{each.vm_size} ({each.title}) cannot be used in {plan.location}: {why}", way_out)


def _forbids(regions: tuple[str, ...], zones: tuple[str, ...], plan: Plan) -> bool:
    """Whether a restriction is about the whole region."""
    return not zones and (not regions or any(same(region, plan.location) for region in regions))


def wrong_zones(plan: Plan, sizes: Offered) -> Iterator[Found]:
    """Zones that the definition names and in which this subscription does not get the size."""
    for each in machines(plan):
        sku = sizes.get(folded(each.vm_size))
        if sku is None or not each.zones:
            continue
        usable = usable_zones(sku, plan.location)
        for zone, path in each.zones:
            if zone not in usable:
                where = f"in zone {listed(usable)}" if usable else "in no zone"
                text = f"{each.title} wants zone {zone}, but {plan.location} offers {each.vm_size} {where}"
                yield Found(path, text, "name one of these zones, or none" if usable else "take the zone out")


def usable_zones(sku: Sku, region: str) -> list[str]:
    """Zones of a region in which a size can be had: those of the offer without the restricted ones."""
    has = {zone for offer in sku.offers if same(offer.region, region) for zone in offer.zones}
    lost = {
        zone
        for each in sku.restrictions
        if not each.regions or any(same(place, region) for place in each.regions)
        for zone in each.zones
    }
    return sorted(has - lost)


def lacking(plan: Plan, sizes: Offered) -> Iterator[Found]:
    """Abilities that the definition asks for and that Azure says a size has not."""
    for each in machines(plan):
        sku = sizes.get(folded(each.vm_size))
        for ability, path in _abilities(plan, each, sku) if sku is not None else ():
            yield Found(path, f"{each.vm_size} ({each.title}) does not support {ability}")


def _abilities(plan: Plan, each: Machines, sku: Sku) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    figures = sku.figures
    if plan.security.encryption_at_host and figures.encryption_at_host is False:
        yield "encryption at host", ("security", "encryption_at_host")
    if each.spot and figures.low_priority is False:
        yield "spot", (*each.path[:-1], "spot")
    is_node = each.path[0] == "slurm"
    if plan.security.trusted_launch and is_node and figures.trusted_launch is False:
        yield "Trusted Launch", ("security", "trusted_launch")


def other_figures(plan: Plan, sizes: Offered) -> Iterator[Found]:
    """vCPUs of a size that differ from those that the plan counts with."""
    for each in machines(plan):
        sku = sizes.get(folded(each.vm_size))
        actual = sku.figures.vcpus if sku is not None else None
        if actual is not None and each.vcpus is not None and actual != each.vcpus:
            text = f"{each.vm_size} has {actual} vCPUs in {plan.location}; the plan counts with {each.vcpus}"
            yield Found(each.path, text, "correct custom_vm_sizes, or see `cycleforge list vm-sizes --from`")
