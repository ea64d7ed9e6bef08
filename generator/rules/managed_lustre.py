"""New Azure Managed Lustre file systems: sizes, their number, their subnet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from .. import catalog
from ..catalog.azure_facts import SubnetOfSize
from ..plan.file_systems.managed_lustre import ManagedLustre
from ..plan.file_systems.registry import of_kind
from ..problems.problem import Problem, Related
from .base import DefinitionRule, Path, Site
from .figures import figures
from .wording import given, quoted

_LUSTRE = "https://learn.microsoft.com/azure/azure-managed-lustre/amlfs-prerequisites"
_SUBNET: Path = ("network", "subnets", ManagedLustre.subnet.role)


class LustreSize(DefinitionRule):
    id = "E0601"
    summary = "Managed Lustre is not available in this size."
    why = "The capacity of a tier is a multiple of its step, between a minimum and a maximum."
    fix = "Choose a size that the hint names."
    source = _LUSTRE

    def check(self, site: Site) -> Iterator[Problem]:
        for asked, lustre in of_kind(site.definition, ManagedLustre):
            tier = catalog.file_systems().amlfs.tiers[lustre.sku]
            step, least, most, size = tier.step_tib, tier.min_tib, tier.max_tib, lustre.size_tib
            if least <= size <= most and size % step == 0:
                continue
            lower = min(max(size // step * step, least), most)
            upper = min(max(-(-size // step) * step, least), most)
            text = (
                f"mount {quoted(lustre.path)}: tier {lustre.tier_mb_per_s_per_tib} has {least} to {most} TiB in steps "
                f"of {step} TiB, not {size} TiB"
            )
            hint = f"size_tib: {upper}" if lower == upper else f"size_tib: {lower} or {upper}"
            yield self.problem((*asked.definition_path, "size_tib"), text, hint)


class SecondLustre(DefinitionRule):
    id = "E0608"
    summary = "More than one new Managed Lustre file system is asked for."
    why = "Each needs a subnet of its own; a deployment has one."
    fix = "Create one larger file system, or mount the second one as existing."
    source = _LUSTRE

    def check(self, site: Site) -> Iterator[Problem]:
        found = [(asked.definition_path, lustre.path) for asked, lustre in of_kind(site.definition, ManagedLustre)]
        for path, point in found[1:]:
            problem = self.problem(
                (*path, "type"),
                f"mount {quoted(point)} is a second new Managed Lustre file system; only one is possible",
            )
            yield replace(problem, related=(Related("the first one", (*found[0][0], "type")),))


class LargeLustre(DefinitionRule):
    id = "W0616"
    summary = "Managed Lustre of this size needs a feature of the subscription."
    why = "More than 128 TiB are refused until the subscription has the feature Large Cluster."
    fix = "Ask Azure support for the feature, then silence this rule with the reason."
    source = _LUSTRE

    def check(self, site: Site) -> Iterator[Problem]:
        most = figures().lustre.large_tib
        for asked, lustre in of_kind(site.definition, ManagedLustre):
            if lustre.size_tib > most:
                text = (
                    f"mount {quoted(lustre.path)}: {lustre.size_tib} TiB need the subscription feature Large Cluster; "
                    f"up to {most} TiB do not"
                )
                yield self.problem((*asked.definition_path, "size_tib"), text)


def _capacity_tib(site: Site) -> int:
    """Capacity of the new Managed Lustre file systems together."""
    return sum(lustre.size_tib for _, lustre in of_kind(site.definition, ManagedLustre))


class LustreSubnetTooSmall(DefinitionRule):
    id = "E0309"
    summary = "The Lustre subnet is too small for the capacity."
    why = "Managed Lustre takes addresses in proportion to its capacity and cannot move to another subnet later."
    fix = "Leave the subnet out and let CycleForge plan it, or choose the prefix that the message names."
    source = _LUSTRE

    def check(self, site: Site) -> Iterator[Problem]:
        network = site.layout.subnets.get(ManagedLustre.subnet.role) if site.layout else None
        size = _capacity_tib(site)
        row = _subnet_row(size)
        if network is None or row is None or not given(site, _SUBNET):
            return
        if ManagedLustre.subnet.longest_prefix >= network.prefixlen > row.prefix:
            text = f"the lustre subnet {network} is too small for {size} TiB, which ask for /{row.prefix}"
            yield self.problem(_SUBNET, text)


def _subnet_row(size_tib: int) -> SubnetOfSize | None:
    return next((row for row in catalog.file_systems().amlfs_subnet_prefix.rows if size_tib <= row.max_tib), None)


class LustreSubnetUnknown(DefinitionRule):
    id = "W0310"
    summary = "It is not published how large the Lustre subnet must be for this capacity."
    why = "Microsoft's table ends at 400 TiB; the subnet cannot be changed later."
    fix = (
        "Ask the service for the size (az amlfs get-subnets-size), give network.subnets.lustre, and silence this rule."
    )
    source = _LUSTRE

    def check(self, site: Site) -> Iterator[Problem]:
        size = _capacity_tib(site)
        last = catalog.file_systems().amlfs_subnet_prefix.rows[-1].max_tib
        if size > last:
            asked, _ = next(of_kind(site.definition, ManagedLustre))
            text = f"no figure is published for the subnet of {size} TiB Managed Lustre; the table ends at {last} TiB"
            yield self.problem((*asked.definition_path, "size_tib"), text)
