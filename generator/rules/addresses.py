"""Whether the subnets of a new network are large enough and apart from each other."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network
from itertools import combinations

from .. import catalog
from ..plan.addresses import compute_addresses
from ..plan.network import prefix_lengths
from ..plan.subnet_kinds import SubnetRole
from ..plan.subnets import Layout, compute_name, kind_of_role, place_subnets
from ..problems.problem import Problem
from ..words.counts import counted, listed
from .base import DefinitionRule, Path, Site
from .wording import first_given, given

_VNET_FAQ = "https://learn.microsoft.com/azure/virtual-network/virtual-networks-faq"
_SPACE: Path = ("network", "address_space")


def _subnet_path(site: Site, role: SubnetRole) -> Path:
    name = compute_name(role)
    names = [each.name for each in site.definition.network.compute_subnets]
    if name is None or name not in names:
        return ("network", "subnets", role)
    return ("network", "compute_subnets", names.index(name), "prefix")


def usable_addresses(subnet: IPv4Network) -> int:
    """Addresses of an Azure subnet that network cards can get.

    Azure keeps the first four and the last one. Source: https://learn.microsoft.com/azure/virtual-network/virtual-networks-faq
    """
    return max(0, subnet.num_addresses - catalog.limits().reserved_addresses_per_subnet.value)


def needed_compute_addresses(site: Site, role: SubnetRole = "compute") -> int:
    """Network cards that may be in a compute subnet: of schedulers, login nodes and nodes of all partitions in it."""
    return compute_addresses(site.definition, compute_name(role))


class SubnetsOverlap(DefinitionRule):
    id = "E0305"
    summary = "Two subnets overlap."
    why = "An address belongs to one subnet only; Azure refuses the second one."
    fix = "Give the subnets prefixes that do not overlap, or leave one out and let CycleForge plan it."
    source = _VNET_FAQ

    def check(self, site: Site) -> Iterator[Problem]:
        if site.layout is None:
            return
        for (one, first), (two, second) in combinations(site.layout.subnets.items(), 2):
            if first.overlaps(second):
                path = first_given(site, _subnet_path(site, two), _subnet_path(site, one), _SPACE)
                planned = (
                    compute_name(two) is not None and one == "compute" and not given(site, _subnet_path(site, one))
                )
                hint = "give network.subnets.compute a prefix of its own" if planned else None
                yield self.problem(path, f"the {two} subnet {second} overlaps the {one} subnet {first}", hint)
        for role in site.layout.without_room:
            place, others = _planned_place(site, role), site.layout.subnets.items()
            if place is None:
                continue
            for one, first in others:
                if first.overlaps(place) and given(site, _subnet_path(site, one)):
                    text = f"the {one} subnet {first} covers the place {place} of the {role} subnet"
                    hint = f"give network.subnets.{role} too, or move the {one} subnet"
                    yield self.problem(_subnet_path(site, one), text, hint)


def _planned_place(site: Site, role: SubnetRole) -> IPv4Network | None:
    """Where the subnet would be if it were alone; None when the address space is too small even then."""
    if site.layout is None:
        return None
    lengths = prefix_lengths(site.definition)
    return place_subnets(site.layout.address_space, (role,), {}, lengths).subnets.get(role)


class SubnetTooSmall(DefinitionRule):
    id = "E0306"
    summary = "A subnet is smaller than its service accepts."
    why = "Azure Bastion, NetApp Files, Managed Lustre, MySQL and Azure itself refuse subnets below their minimum."
    fix = "Choose a shorter prefix for the subnet, or leave it out and let CycleForge plan it."
    source = "https://learn.microsoft.com/azure/bastion/configuration-settings"

    def check(self, site: Site) -> Iterator[Problem]:
        for role, network in (site.layout.subnets if site.layout else {}).items():
            longest = longest_prefix(role)
            if network.prefixlen > longest and given(site, _subnet_path(site, role)):
                yield self.problem(
                    _subnet_path(site, role), f"the {role} subnet {network} is smaller than /{longest}, its minimum"
                )


def longest_prefix(role: SubnetRole) -> int:
    """Prefix length of the smallest subnet that the role's service accepts."""
    return kind_of_role(role).longest_prefix


class NoRoom(DefinitionRule):
    id = "E0307"
    summary = "The address space has no room for all subnets."
    why = (
        "Half of the address space goes to the nodes; server, endpoints, Bastion and file systems share the other half."
    )
    fix = "Enlarge network.address_space, or give prefixes of single subnets in network.subnets."
    source = _VNET_FAQ

    def check(self, site: Site) -> Iterator[Problem]:
        layout = site.layout
        missing = [role for role in layout.without_room if not self._is_covered(site, role)] if layout else []
        if layout is None or not missing:
            return
        names, noun = listed(missing), "subnets" if len(missing) > 1 else "subnet"
        path = first_given(site, _SPACE, ("network", "subnets"), ("network",), ("name",))
        yield self.problem(
            path, f"the address space {layout.address_space} has no room for the {names} {noun}", self._hint(layout)
        )

    def _is_covered(self, site: Site, role: SubnetRole) -> bool:
        """Whether a prefix of the definition is in the way, which E0305 reports."""
        place = _planned_place(site, role)
        subnets = site.layout.subnets.items() if site.layout else ()
        return place is not None and any(
            place.overlaps(each) and given(site, _subnet_path(site, one)) for one, each in subnets
        )

    def _hint(self, layout: Layout) -> str | None:
        space = layout.address_space
        if space.prefixlen > 20:
            return f"address_space: {IPv4Network((int(space.network_address), 20), strict=False)}"
        return f"address_space: {space.supernet()}" if space.prefixlen > 8 else None


class TooFewAddresses(DefinitionRule):
    id = "E0308"
    summary = "The compute subnet has fewer addresses than the cluster may use."
    why = "Azure keeps five addresses of every subnet; a node that gets none does not start."
    fix = (
        "Enlarge network.address_space (half of it is the compute subnet), give a larger compute subnet, or lower "
        "max_nodes."
    )
    source = _VNET_FAQ

    def check(self, site: Site) -> Iterator[Problem]:
        for role, subnet in (site.layout.subnets if site.layout else {}).items():
            if role == "compute" or compute_name(role) is not None:
                yield from self._of(site, role, subnet)

    def _of(self, site: Site, role: SubnetRole, compute: IPv4Network) -> Iterator[Problem]:
        free, need = usable_addresses(compute), needed_compute_addresses(site, role)
        if need <= free:
            return
        bits = (need + catalog.limits().reserved_addresses_per_subnet.value - 1).bit_length()
        if given(site, _subnet_path(site, role)):
            path, hint = _subnet_path(site, role), f"a prefix of /{32 - bits} or shorter"
        else:
            path = first_given(site, _SPACE, ("slurm", "partitions"))
            start = int(compute.network_address)
            hint = f"address_space: {IPv4Network((start, max(8, 31 - bits)), strict=False)}"
        text = f"the {role} subnet {compute} has {counted(free, 'address')} for nodes, the cluster may use {need}"
        yield self.problem(path, text, hint)


class UnusedPrefix(DefinitionRule):
    id = "W0324"
    summary = "A prefix is given for a subnet that this deployment does not need."
    why = "The subnet is not created, so the prefix is ignored."
    fix = "Remove the prefix, or add what needs the subnet."
    source = _VNET_FAQ

    def check(self, site: Site) -> Iterator[Problem]:
        if site.layout is None:
            return
        for role in site.definition.network.subnets.declared_keys:
            wanted = role in site.layout.subnets or role in site.layout.without_room
            if not wanted and given(site, _subnet_path(site, role)):
                yield self.problem(_subnet_path(site, role), f"nothing in this deployment needs the {role} subnet")
