"""Prefixes and subnets: their form and ranges, their size, that they do not overlap, and which roles use them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Network, IPv6Network
from itertools import combinations

from .. import catalog
from ..definition.model.network import ComputeSubnet, ExistingSubnet
from ..definition.model.slurm import Slurm
from ..plan.addresses import compute_addresses
from ..plan.network import prefix_lengths
from ..plan.subnet_kinds import SubnetRole
from ..plan.subnets import Layout, compute_name, kind_of_role, parse_network, place_subnets
from ..problems.problem import Problem
from ..words.counts import counted, listed
from .base import ClusterRule, DefinitionRule, Path, Site, choose_from, first_given, given, quoted, value_at
from .roles import roles

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
            longest = kind_of_role(role).longest_prefix
            if network.prefixlen > longest and given(site, _subnet_path(site, role)):
                yield self.problem(
                    _subnet_path(site, role), f"the {role} subnet {network} is smaller than /{longest}, its minimum"
                )


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
        path = first_given(site, _SPACE, ("network", "subnets"), ("network",), ("name",))
        needing = f"{listed(missing)} subnet{'s' * (len(missing) > 1)}"
        text = f"the address space {layout.address_space} has no room for the {needing}"
        yield self.problem(path, text, self._hint(layout))

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
        free, need = usable_addresses(compute), compute_addresses(site.definition, compute_name(role))
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


def prefix(text: str) -> IPv4Network | None:
    """The network when the text is exactly how Azure writes it; None otherwise."""
    network = parse_network(text) if len(text) <= 18 else None
    return network if network is not None and str(network) == text else None


def own_prefixes(site: Site) -> Iterator[tuple[Path, str]]:
    """Address space and subnets of a new network, as far as they are used."""
    network = site.definition.network
    if network.existing is not None:
        return
    yield ("network", "address_space"), network.address_space
    for role in network.subnets.declared_keys:
        text = getattr(network.subnets, role)
        if text is not None:
            yield ("network", "subnets", role), text
    for index, subnet in enumerate(network.compute_subnets):
        yield ("network", "compute_subnets", index, "prefix"), subnet.prefix


_FOREIGN: tuple[tuple[Path, str], ...] = (
    (("network", "hub", "address_spaces"), "hub prefix"),
    (("network", "hub", "reachable"), "reachable prefix"),
    (("network", "allowed_sources"), "allowed source"),
)


def foreign_prefixes(site: Site) -> Iterator[tuple[Path, str, str]]:
    """Prefixes of others, the hub's and the allowed sources, each with what it is called."""
    for path, label in _FOREIGN:
        found = value_at(site, path)
        yield from (
            ((*path, index), text, label) for index, text in enumerate(found if isinstance(found, list) else ())
        )


def existing_prefixes(site: Site) -> Iterator[tuple[Path, str]]:
    existing = site.definition.network.existing
    for role in existing.subnets.declared_keys if existing else ():
        subnet = getattr(existing.subnets, role) if existing else None
        if subnet is not None and subnet.prefix is not None:
            yield ("network", "existing", "subnets", role, "prefix"), subnet.prefix
    for index, more in enumerate(existing.compute_subnets if existing else ()):
        if more.prefix is not None:
            yield ("network", "existing", "compute_subnets", index, "prefix"), more.prefix


class NotAPrefix(DefinitionRule):
    id = "E0301"
    summary = "A prefix is not valid."
    why = "Azure expects the network address and its length, without host bits: 10.50.0.0/20."
    fix = "Write <network address>/<length>; the hint names the network that contains the address."
    source = _VNET_FAQ

    def check(self, site: Site) -> Iterator[Problem]:
        foreign = ((path, text) for path, text, _ in foreign_prefixes(site))
        for path, text in (*own_prefixes(site), *foreign, *existing_prefixes(site)):
            if prefix(text) is None:
                fault, hint = self._fault(text)
                yield self.problem(path, f"{quoted(text)} {fault}", hint)

    def _fault(self, text: str) -> tuple[str, str | None]:
        example = "for example 10.50.0.0/20"
        if len(text) > 49:
            return "is not a prefix", example
        try:
            loose = IPv4Network(text, strict=False)
        except ValueError:
            try:
                IPv6Network(text, strict=False)
            except ValueError:
                return "is not a prefix", example
            return "is an IPv6 prefix; CycleCloud clusters use IPv4", example
        if "/" not in text:
            return (
                "is an address without a length",
                f"write {text}/32 for this address alone" if loose.prefixlen == 32 else None,
            )
        if parse_network(text) is None:
            return "has bits set beyond its length", f"the network is {loose}"
        return "is not written as a network address and a length", f"write {loose}"


def private_ranges() -> list[IPv4Network]:
    """Ranges that nobody reaches over the internet."""
    return [IPv4Network(text) for text in catalog.limits().private_ranges.value]


class NotPrivate(DefinitionRule):
    id = "W0302"
    summary = "The network uses public addresses."
    why = "Hosts on the internet that own these addresses cannot be reached from the cluster."
    fix = "Choose a range within 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16."
    source = "https://www.rfc-editor.org/rfc/rfc1918"

    def check(self, site: Site) -> Iterator[Problem]:
        private = private_ranges()
        for path, text in own_prefixes(site):
            network = prefix(text)
            if network is None or refused_range(network) or any(network.subnet_of(range_) for range_ in private):
                continue
            if path[1] == "address_space":
                yield self.problem(path, f"the address space {text} is not a private range of RFC 1918")


def refused_range(network: IPv4Network) -> str | None:
    """Why Azure refuses these addresses in a virtual network; None when it does not."""
    for text, reason in catalog.rule_figures().address_ranges.refused.items():
        if network.overlaps(IPv4Network(text)):
            return f"{text} ({reason})"
    return None


class RefusedRange(DefinitionRule):
    id = "E0303"
    summary = "The network contains addresses that Azure refuses."
    why = "Loopback, link-local, multicast and Azure's own service address cannot be part of a virtual network."
    fix = "Choose a range within 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16."
    source = _VNET_FAQ

    def check(self, site: Site) -> Iterator[Problem]:
        for path, text in own_prefixes(site):
            network = prefix(text)
            reason = refused_range(network) if network else None
            if reason:
                yield self.problem(path, f"{text} contains {reason}, which Azure refuses")


class OutsideAddressSpace(DefinitionRule):
    id = "E0304"
    summary = "A subnet is outside the address space."
    why = "Azure creates subnets only within the address space of their network."
    fix = "Choose a prefix within network.address_space, or enlarge the address space."
    source = _VNET_FAQ

    def check(self, site: Site) -> Iterator[Problem]:
        network = site.definition.network
        space = prefix(network.address_space)
        for path, text in own_prefixes(site):
            subnet = prefix(text)
            if space is None or subnet is None or path == ("network", "address_space") or subnet.subnet_of(space):
                continue
            _, _, key, *_ = path
            name = (
                f"compute subnet {quoted(network.compute_subnets[key].name)}"
                if isinstance(key, int)
                else f"{key} subnet"
            )
            yield self.problem(path, f"the {name} {text} is outside the address space {space}")


class PrefixTwice(DefinitionRule):
    id = "W0312"
    summary = "Two prefixes of one list overlap."
    why = (
        "One of them is superfluous, or one of them is wrong. Azure refuses a firewall rule with both, so "
        "the deployment uses the wider one."
    )
    fix = "Remove the narrower prefix, or correct it."
    source = _VNET_FAQ

    def check(self, site: Site) -> Iterator[Problem]:
        seen: dict[str, list[IPv4Network]] = {}
        for path, text, label in foreign_prefixes(site):
            network, before = prefix(text), seen.setdefault(label, [])
            if network is None:
                continue
            other = next((each for each in before[:256] if each.overlaps(network)), None)
            if other is not None:
                yield self.problem(path, f"the {label} {text} overlaps {other}")
            before.append(network)


class OverlapsHub(DefinitionRule):
    id = "E0311"
    summary = "The network overlaps the hub or a network behind it."
    why = "Azure refuses to peer networks that overlap, and routes to overlapping networks behind the gateway are lost."
    fix = "Choose an address space that neither the hub nor a network behind its gateway uses."
    source = "https://learn.microsoft.com/azure/virtual-network/virtual-network-peering-overview"

    def check(self, site: Site) -> Iterator[Problem]:
        network = site.definition.network
        space = prefix(network.address_space) if network.existing is None else None
        for index, text in enumerate(network.hub.address_spaces if network.hub else ()):
            other = prefix(text)
            if space is not None and other is not None and space.overlaps(other):
                path = first_given(site, _SPACE, ("network", "hub", "address_spaces", index))
                yield self.problem(path, f"the address space {space} overlaps the hub prefix {text}")


_NAME = re.compile(r"[a-z](?:[a-z0-9-]{0,38}[a-z0-9])?")


def _given(site: Site) -> Iterator[tuple[Path, ComputeSubnet | ExistingSubnet]]:
    """The further compute subnets with their paths, of the new network or the existing one."""
    network = site.definition.network
    base: Path = ("network",) if network.existing is None else ("network", "existing")
    found: Sequence[ComputeSubnet | ExistingSubnet] = (
        network.compute_subnets if network.existing is None else network.existing.compute_subnets
    )
    for index, subnet in enumerate(found):
        yield (*base, "compute_subnets", index), subnet


class UnknownComputeSubnet(ClusterRule):
    id = "E0344"
    summary = "A role names a subnet that compute_subnets does not have."
    why = "CycleCloud would look for a subnet that nobody creates or knows, and no node of the role would start."
    fix = "Add it to network.compute_subnets, or to network.existing.compute_subnets for a network that exists."
    source = "https://learn.microsoft.com/azure/cyclecloud/cluster-references/node-nodearray-reference"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        names = [subnet.name for _, subnet in _given(site)]
        for node in roles(site):
            wanted = node.settings.subnet
            if wanted is not None and wanted not in names:
                text = f"{node.label}: compute_subnets has no subnet {quoted(wanted)}"
                yield self.problem((*node.path, "subnet"), text, choose_from(wanted, names))


class BadComputeSubnet(DefinitionRule):
    id = "E0345"
    summary = "A further compute subnet cannot be what it is said to be."
    why = (
        "Its name becomes part of names in Azure and is what roles write. Security rules and exports of file systems "
        "are made from its prefix, also where the subnet exists already."
    )
    fix = "Write each subnet once, with its prefix, and for a new network a short name of a-z, 0-9 and hyphens."
    source = _VNET_FAQ

    def check(self, site: Site) -> Iterator[Problem]:
        existing = site.definition.network.existing
        seen: set[str] = set()
        taken = {existing.subnets.compute.name.lower()} if existing is not None else set()
        for path, subnet in _given(site):
            shown = f"the compute subnet {quoted(subnet.name)}"
            if existing is None and not _NAME.fullmatch(subnet.name):
                text = f"{shown} has a name that is not 1 to 40 of a-z, 0-9 and hyphens, a letter first"
                yield self.problem((*path, "name"), text, "for example name: gpu")
            if subnet.name.lower() in taken:
                yield self.problem((*path, "name"), f"{shown} is already the subnet of all other nodes", "leave it out")
            if subnet.name.lower() in seen:
                yield self.problem((*path, "name"), f"{shown} is listed twice")
            if subnet.prefix is None:
                yield self.problem(path, f"{shown} has no prefix", "prefix: 10.20.8.0/22, as Azure shows it")
            seen.add(subnet.name.lower())


class UnusedComputeSubnet(ClusterRule):
    id = "W0354"
    summary = "No role has nodes in a further compute subnet."
    why = "It is created, or opened to the nodes, for nothing."
    fix = "Write its name in `subnet` of a partition, the scheduler or the login nodes, or remove it."
    source = _VNET_FAQ

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        used = {node.settings.subnet for node in roles(site)}
        for path, subnet in _given(site):
            if subnet.name not in used:
                yield self.problem((*path, "name"), f"no nodes are in the compute subnet {quoted(subnet.name)}")
