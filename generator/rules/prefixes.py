"""Whether prefixes are prefixes: syntax, host bits, private and forbidden ranges."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Network

from .. import catalog
from ..plan.subnets import parse_network
from ..problems.problem import Problem
from .base import DefinitionRule, Path, Site
from .figures import figures
from .wording import given, quoted

_VNET_FAQ = "https://learn.microsoft.com/azure/virtual-network/virtual-networks-faq"


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


def foreign_prefixes(site: Site) -> Iterator[tuple[Path, str]]:
    """Prefixes of others: the hub's and the allowed sources."""
    network = site.definition.network
    for index, text in enumerate(network.hub.address_spaces if network.hub else ()):
        yield ("network", "hub", "address_spaces", index), text
    for index, text in enumerate(network.hub.reachable if network.hub else ()):
        yield ("network", "hub", "reachable", index), text
    for index, text in enumerate(network.allowed_sources):
        yield ("network", "allowed_sources", index), text


def existing_prefixes(site: Site) -> Iterator[tuple[Path, str]]:
    """Prefixes that are said of the subnets of an existing network."""
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
        for path, text in (*own_prefixes(site), *foreign_prefixes(site), *existing_prefixes(site)):
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
    for text, reason in figures().address_ranges.refused.items():
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


_OVERLAP_LISTS = (
    (("network", "hub", "address_spaces"), "hub prefix"),
    (("network", "hub", "reachable"), "reachable prefix"),
    (("network", "allowed_sources"), "allowed source"),
)


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
        for path, label in _OVERLAP_LISTS:
            seen: list[IPv4Network] = []
            for index, text in enumerate(_prefixes_at(site, path)):
                network = prefix(text)
                if network is None:
                    continue
                other = next((each for each in seen[:256] if each.overlaps(network)), None)
                if other is not None:
                    yield self.problem((*path, index), f"the {label} {text} overlaps {other}")
                seen.append(network)


def _prefixes_at(site: Site, path: tuple[str, ...]) -> list[str]:
    """A list of prefixes by its path; empty where its section is not there."""
    section: object = site.definition
    for key in path:
        section = getattr(section, key, None)
    return section if isinstance(section, list) else []


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
                path: Path = ("network", "address_space")
                if not given(site, path):
                    path = ("network", "hub", "address_spaces", index)
                yield self.problem(path, f"the address space {space} overlaps the hub prefix {text}")
