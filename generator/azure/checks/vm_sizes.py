"""Whether the VM sizes are offered to this subscription, in the region and in the zones, and can do what is asked.

Source: https://learn.microsoft.com/rest/api/compute/resource-skus/list: only the filter by location exists, and the
list of a region has many pages. A restriction of the type `Location` that names the region forbids the size, one of
the type `Zone` takes its zones away. A size may have no zones and still be there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ...definition.skus import Sku, skus_of
from ...errors import CannotRead
from ...plan.deployment import Plan
from ...plan.fleet import Machines
from ...problems.problem import KeyPath
from ...words.counts import listed
from ..answers import Item, OddAnswer, folded, same
from ..check import Check, Finding
from ..reader import Reader
from ..requests.compute import SIZES

_SKUS = "https://learn.microsoft.com/rest/api/compute/resource-skus/list"
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


class _OfSizes(Check):
    question = "whether the VM sizes can be used in the region"
    path = ("location",)

    def needed(self, plan: Plan) -> bool:
        return bool(plan.fleet)

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        sizes = offered(reader.pages(SIZES(region=plan.location)), {each.vm_size for each in plan.fleet})
        return self.judged(plan, sizes)

    def judged(self, plan: Plan, sizes: Offered) -> Iterator[Finding]:
        for each in plan.fleet:
            sku = sizes.get(folded(each.vm_size))
            if sku is not None:
                yield from self.of_size(plan, each, sku)

    def of_size(self, plan: Plan, each: Machines, sku: Sku) -> Iterator[Finding]:
        raise NotImplementedError


class SizeNotOffered(_OfSizes):
    id = "E4301"
    summary = "The region does not offer a VM size, or not to this subscription."
    why = "Azure refuses the server, or every node of the partition when the first job needs one (SkuNotAvailable)."
    fix = (
        "Choose another size or region; where the subscription has no access (NotAvailableForSubscription), a support "
        "request gives it."
    )
    source = _SKUS

    def judged(self, plan: Plan, sizes: Offered) -> Iterator[Finding]:
        for each in plan.fleet:
            sku = sizes.get(folded(each.vm_size))
            if sku is None:
                look = f"az vm list-skus -l {plan.location} --resource-type virtualMachines --all -o table"
                yield self.finding(each.path, f"{plan.location} does not offer {each.vm_size} ({each.label})", look)
            else:
                yield from self.of_size(plan, each, sku)

    def of_size(self, plan: Plan, each: Machines, sku: Sku) -> Iterator[Finding]:
        whole = (one for one in sku.restrictions if not one.zones)
        here = (one.reason for one in whole if not one.regions or _has(one.regions, plan.location))
        reason = next(here, None)
        if reason is not None:
            why, way_out = _REASONS.get(folded(reason), (f"Azure says {reason}", "choose another size or region"))
            text = f"{each.vm_size} ({each.label}) cannot be used in {plan.location}: {why}"
            yield self.finding(each.path, text, way_out)


def _has(regions: Iterable[str], region: str) -> bool:
    return any(same(each, region) for each in regions)


class ZoneNotOffered(_OfSizes):
    id = "E4302"
    summary = "A zone that the definition names does not have the VM size for this subscription."
    why = "Azure refuses every VM there. Zones have other numbers in other subscriptions."
    fix = "Name a zone that the message names, or none."
    source = _SKUS
    question = "in which zones the VM sizes can be had"

    def needed(self, plan: Plan) -> bool:
        return any(each.zones for each in plan.fleet)

    def of_size(self, plan: Plan, each: Machines, sku: Sku) -> Iterator[Finding]:
        usable = usable_zones(sku, plan.location)
        where = f"in zone {listed(usable)}" if usable else "in no zone"
        hint = "name one of these zones, or none" if usable else "take the zone out"
        for zone, path in each.zones:
            if zone not in usable:
                text = f"{each.label} wants zone {zone}, but {plan.location} offers {each.vm_size} {where}"
                yield self.finding(path, text, hint)


def usable_zones(sku: Sku, region: str) -> list[str]:
    """Zones of a region in which a size can be had: those of the offer without the restricted ones."""
    has = {zone for offer in sku.offers if same(offer.region, region) for zone in offer.zones}
    here = (each for each in sku.restrictions if not each.regions or _has(each.regions, region))
    return sorted(has - {zone for each in here for zone in each.zones})


class SizeLacksAbility(_OfSizes):
    id = "E4303"
    summary = "A VM size cannot do what the definition asks of it: encryption at host, spot, Trusted Launch."
    why = "Azure refuses VMs of the size with this setting."
    fix = "Choose another size, or take the setting out."
    source = _SKUS
    question = "whether the VM sizes can do what is asked of them"

    def of_size(self, plan: Plan, each: Machines, sku: Sku) -> Iterator[Finding]:
        for ability, path in _lacking(plan, each, sku):
            yield self.finding(path, f"{each.vm_size} ({each.label}) does not support {ability}")


def _lacking(plan: Plan, each: Machines, sku: Sku) -> Iterator[tuple[str, KeyPath]]:
    figures = sku.figures
    if plan.security.encryption_at_host and figures.encryption_at_host is False:
        yield "encryption at host", ("security", "encryption_at_host")
    if each.spot and figures.low_priority is False:
        yield "spot", (*each.place, "spot")
    if plan.security.trusted_launch and each.is_node and figures.trusted_launch is False:
        yield "Trusted Launch", ("security", "trusted_launch")


class OtherFigures(_OfSizes):
    id = "W4304"
    summary = "A VM size has another number of vCPUs than the plan counts with."
    why = "Slurm would offer jobs more processors than a node has, or fewer; node checks would drain the nodes."
    fix = "Correct the block in custom_vm_sizes: `cycleforge list vm-sizes --from FILE` writes it."
    source = _SKUS
    question = "whether the VM sizes have the vCPUs that the plan counts with"

    def of_size(self, plan: Plan, each: Machines, sku: Sku) -> Iterator[Finding]:
        actual = sku.figures.vcpus
        if actual is not None and each.hardware.vcpus is not None and actual != each.hardware.vcpus:
            text = f"{each.vm_size} has {actual} vCPUs in {plan.location}; the plan counts with {each.hardware.vcpus}"
            yield self.finding(each.path, text, "correct custom_vm_sizes, or see `cycleforge list vm-sizes --from`")
