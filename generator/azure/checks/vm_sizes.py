"""VM sizes: offered to this subscription, in the region and in the zones, able to do what is asked of them."""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.types import Plan
from ..check import Check, Finding
from ..findings.machines import machines
from ..findings.vm_sizes import Offered, lacking, not_offered, offered, other_figures, wrong_zones
from ..reader import Reader
from ..requests.compute import SIZES

_SKUS = "https://learn.microsoft.com/rest/api/compute/resource-skus/list"


class _OfSizes(Check):
    question = "whether the VM sizes can be used in the region"
    path = ("location",)

    def needed(self, plan: Plan) -> bool:
        """Whether there are VMs."""
        return any(machines(plan))

    @staticmethod
    def sizes(plan: Plan, reader: Reader) -> Offered:
        """What the region says of the plan's sizes."""
        return offered(reader.pages(SIZES(region=plan.location)), {each.vm_size for each in machines(plan)})


class SizeNotOffered(_OfSizes):
    id = "E4301"
    summary = "The region does not offer a VM size, or not to this subscription."
    why = "Azure refuses the server, or every node of the partition when the first job needs one (SkuNotAvailable)."
    fix = (
        "Choose another size or region; where the subscription has no access (NotAvailableForSubscription), a support "
        "request gives it."
    )
    source = _SKUS

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """Each use of such a size."""
        yield from (self.finding(*found) for found in not_offered(plan, self.sizes(plan, reader)))


class ZoneNotOffered(_OfSizes):
    id = "E4302"
    summary = "A zone that the definition names does not have the VM size for this subscription."
    why = "Azure refuses every VM there. Zones have other numbers in other subscriptions."
    fix = "Name a zone that the message names, or none."
    source = _SKUS
    question = "in which zones the VM sizes can be had"

    def needed(self, plan: Plan) -> bool:
        """Whether a zone is named."""
        return any(each.zones for each in machines(plan))

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """Each such zone."""
        yield from (self.finding(*found) for found in wrong_zones(plan, self.sizes(plan, reader)))


class SizeLacksAbility(_OfSizes):
    id = "E4303"
    summary = "A VM size cannot do what the definition asks of it: encryption at host, spot, Trusted Launch."
    why = "Azure refuses VMs of the size with this setting."
    fix = "Choose another size, or take the setting out."
    source = _SKUS
    question = "whether the VM sizes can do what is asked of them"

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """Each ability that Azure denies."""
        yield from (self.finding(*found) for found in lacking(plan, self.sizes(plan, reader)))


class OtherFigures(_OfSizes):
    id = "W4304"
    summary = "A VM size has another number of vCPUs than the plan counts with."
    why = "Slurm would offer jobs more processors than a node has, or fewer; node checks would drain the nodes."
    fix = "Correct the block in custom_vm_sizes: `cycleforge list vm-sizes --from FILE` writes it."
    source = _SKUS
    question = "whether the VM sizes have the vCPUs that the plan counts with"

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """Each size."""
        yield from (self.finding(*found) for found in other_figures(plan, self.sizes(plan, reader)))
