"""Network security groups as Azure applies them, to the resources that a rendered deployment leads to.

A packet passes if the groups on its way allow it: outbound those of the source's network interface and subnet, inbound
those of the destination's. In each group the rule with the lowest priority that matches decides; behind the rules of
the deployment come Azure's own. Connections are tracked, so that answers need no rule.
https://learn.microsoft.com/azure/virtual-network/network-security-groups-overview
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from .bicep.values import Resource

PROBE = IPv4Address("168.63.129.16")
"""Virtual address of the host, from which health probes come."""
SERVICES = {
    "AzureCloud": IPv4Address("192.0.2.1"),
    "AzureMonitor": IPv4Address("192.0.2.2"),
    "GatewayManager": IPv4Address("192.0.2.3"),
}
"""Service tags, each with an address that stands for all of the service's; they belong to the internet as well."""
_GROUP, _NETWORK, _CARD = (
    f"Microsoft.Network/{kind}" for kind in ("networkSecurityGroups", "virtualNetworks", "networkInterfaces")
)


@dataclass(frozen=True)
class Host:
    """Something with an address; `card` is the security group of its network interface, if that has one."""

    address: IPv4Address
    card: str | None = None


@dataclass(frozen=True)
class _Rule:
    allow: bool
    protocol: str
    sources: tuple[str, ...]
    destinations: tuple[str, ...]
    ports: tuple[str, ...]


def _default(source: str, destination: str, *, allow: bool) -> _Rule:
    return _Rule(allow, "*", (source,), (destination,), ("*",))


# https://learn.microsoft.com/azure/virtual-network/network-security-groups-overview#default-security-rules
_DEFAULTS = {
    "Inbound": (
        _default("VirtualNetwork", "VirtualNetwork", allow=True),
        _default("AzureLoadBalancer", "*", allow=True),
        _default("*", "*", allow=False),
    ),
    "Outbound": (
        _default("VirtualNetwork", "VirtualNetwork", allow=True),
        _default("*", "Internet", allow=True),
        _default("*", "*", allow=False),
    ),
}


class SecurityGroups:
    """All groups of a deployment, and where they stand.

    `connected`: prefixes that the tag VirtualNetwork covers beside the network's own, which are those of peers and of
    what their gateways announce. A default route there, or to a firewall, is `0.0.0.0/0`.
    """

    def __init__(self, resources: Iterable[Resource], connected: Iterable[str] = ()) -> None:
        found = list(resources)
        self._groups = {each.id: _directions(each) for each in found if each.type == _GROUP}
        networks = [each.properties for each in found if each.type == _NETWORK]
        self._subnets = {
            IPv4Network(subnet["properties"]["addressPrefix"]): subnet["properties"]["networkSecurityGroup"]["id"]
            for network in networks
            for subnet in network["subnets"]
        }
        own = [prefix for network in networks for prefix in network["addressSpace"]["addressPrefixes"]]
        self._virtual_network = [IPv4Network(text) for text in (*own, *connected)]
        cards = (each.properties.get("networkSecurityGroup") for each in found if each.type == _CARD)
        self.cards = [card["id"] for card in cards if card]
        """The groups of network interfaces."""
        self._found: dict[tuple[str, str, IPv4Address, IPv4Address], list[_Rule]] = {}

    def allow(self, source: Host, destination: Host, protocol: str, port: int) -> bool:
        """Whether the source can open a connection, or send a first datagram."""
        ways = (("Outbound", source), ("Inbound", destination))
        return all(
            _verdict(self._between(group, direction, source, destination), protocol, port)
            for direction, host in ways
            for group in self._passed(host)
        )

    def _passed(self, host: Host) -> list[str]:
        groups = [group for prefix, group in self._subnets.items() if host.address in prefix]
        return [*groups, *([host.card] if host.card else [])]

    def _between(self, group: str, direction: str, source: Host, destination: Host) -> list[_Rule]:
        key = (group, direction, source.address, destination.address)
        if key not in self._found:
            self._found[key] = [
                rule
                for rule in self._groups[group][direction]
                if any(self._covers(text, source.address) for text in rule.sources)
                and any(self._covers(text, destination.address) for text in rule.destinations)
            ]
        return self._found[key]

    def _covers(self, text: str, address: IPv4Address) -> bool:
        if text[0].isdigit():
            return address in IPv4Network(text)
        # https://learn.microsoft.com/azure/virtual-network/service-tags-overview
        if text in SERVICES:
            return address == SERVICES[text]
        is_virtual_network = address == PROBE or any(address in prefix for prefix in self._virtual_network)
        known = {
            "*": True,
            "VirtualNetwork": is_virtual_network,
            "Internet": not is_virtual_network and not _is_private(address),
            "AzureLoadBalancer": address == PROBE,
        }
        if text not in known:
            raise AssertionError(f"no meaning is known for the service tag {text}")
        return known[text]


def _verdict(rules: list[_Rule], protocol: str, port: int) -> bool:
    """What the first rule decides that matches; the last one of Azure matches everything."""
    return next(
        rule.allow
        for rule in rules
        if rule.protocol in ("*", protocol) and any(_holds(text, port) for text in rule.ports)
    )


def _is_private(address: IPv4Address) -> bool:
    """RFC 1918; Azure routes such addresses nowhere unless a network has them."""
    return any(address in IPv4Network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"))


def _directions(group: Resource) -> dict[str, tuple[_Rule, ...]]:
    rules = [rule["properties"] for rule in group.properties["securityRules"]]
    result = {}
    for direction, defaults in _DEFAULTS.items():
        same = sorted((rule for rule in rules if rule["direction"] == direction), key=lambda rule: rule["priority"])
        priorities = [rule["priority"] for rule in same]
        assert len(set(priorities)) == len(priorities), f"{group.name}: two {direction} rules have one priority"
        result[direction] = (*(_rule(rule) for rule in same), *defaults)
    return result


def _rule(properties: dict[str, Any]) -> _Rule:
    def entries(singular: str, plural: str) -> tuple[str, ...]:
        one, several = properties.get(singular), properties.get(plural)
        assert (one is None) != (several is None), f"either {singular} or {plural}: {properties}"
        assert one is not None or len(several or ()) > 1, properties
        return (one,) if one is not None else tuple(several or ())

    assert properties["sourcePortRange"] == "*"
    return _Rule(
        properties["access"] == "Allow",
        properties["protocol"],
        entries("sourceAddressPrefix", "sourceAddressPrefixes"),
        entries("destinationAddressPrefix", "destinationAddressPrefixes"),
        entries("destinationPortRange", "destinationPortRanges"),
    )


def _holds(text: str, port: int) -> bool:
    first, _, last = text.partition("-")
    return text == "*" or int(first) <= port <= int(last or first)
