"""The way out of a new network: a route to someone's firewall, and what cannot be beside it."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network
from urllib.parse import urlsplit

from ..plan.access_kinds.registry import kind_of
from ..plan.network import route_plan
from ..problems.problem import Problem
from .azure_names import ID_FORM
from .base import DefinitionRule, Path, Site
from .figures import figures
from .prefixes import prefix, private_ranges
from .resource_ids import resource_id_fault
from .wording import given, quoted

_ROUTES = "https://learn.microsoft.com/azure/virtual-network/virtual-networks-udr-overview"
_PEERING = "https://learn.microsoft.com/azure/virtual-network/virtual-network-manage-peering"


def address(text: str) -> IPv4Address | None:
    """The address when the text is one, written as Azure writes it; None otherwise."""
    try:
        found = IPv4Address(text)
    except ValueError:
        return None
    return found if str(found) == text else None


def address_fault(site: Site, text: str) -> str | None:
    """What is wrong with the address of a host outside of the new network; None when nothing is."""
    found = address(text)
    if found is None:
        return "is not an IPv4 address"
    for range_, reason in figures().address_ranges.refused.items():
        if found in IPv4Network(range_):
            return f"cannot be a host of a network: {range_} is {reason}"
    own = prefix(site.definition.network.address_space)
    if own is not None and found in own:
        return f"is inside {own}, the network that the deployment creates: nothing has this address yet"
    return None


class TwoWaysOut(DefinitionRule):
    id = "E0338"
    summary = "Two ways out of the network exclude each other."
    why = (
        "A subnet has one default route. A NAT gateway beside a route to a firewall is never used but paid for, and a "
        "public address cannot answer when the answers leave through a firewall that did not see the request."
    )
    fix = "Keep one of next_hop, route_table and nat_gateway; with next_hop, use access bastion or hub."
    source = _ROUTES

    def check(self, site: Site) -> Iterator[Problem]:
        network = site.definition.network
        if route_plan(site.definition) is None:
            return
        key = "next_hop" if network.next_hop is not None else "route_table"
        if network.next_hop is not None and network.route_table is not None:
            text = "network.next_hop would make a route table, and network.route_table names another one"
            yield self.problem(("network", "route_table"), text, on_key=True)
        if network.nat_gateway and given(site, ("network", "nat_gateway")):
            text = f"network.nat_gateway is on, but network.{key} leads the traffic elsewhere"
            yield self.problem(("network", "nat_gateway"), text, "nat_gateway: false")
        if network.next_hop is not None and kind_of(site.definition).is_public:
            text = f"the server's public address cannot answer while all traffic goes to {network.next_hop}"
            yield self.problem(("network", "access"), text, "access: bastion, or access: hub")


class NextHop(DefinitionRule):
    id = "E0339"
    summary = "The next hop is not the address of a firewall outside of the network."
    why = "Azure sends all traffic there; at an address that nobody has, it is lost, and the first boot fails."
    fix = "Write the private IPv4 address of the firewall, for example 10.0.1.4."
    source = _ROUTES

    def check(self, site: Site) -> Iterator[Problem]:
        text = site.definition.network.next_hop
        if text is None or site.definition.network.existing is not None:
            return
        fault = address_fault(site, text)
        if fault is None and not _is_private(text):
            fault = "is a public address; Azure takes the private one of a virtual appliance"
        if fault:
            yield self.problem(("network", "next_hop"), f"network.next_hop {quoted(text)} {fault}")


class RouteTable(DefinitionRule):
    id = "E0358"
    summary = "The route table is not one that this network can use."
    why = "A subnet takes route tables of its own subscription and region only."
    fix = "Write the resource id of a Microsoft.Network/routeTables of this subscription."
    source = "https://learn.microsoft.com/azure/virtual-network/manage-route-table"

    def check(self, site: Site) -> Iterator[Problem]:
        text, path = site.definition.network.route_table, ("network", "route_table")
        if text is None:
            return
        fault = resource_id_fault(text, "Microsoft.Network", "routeTables")
        own = site.definition.azure.subscription_id
        if fault:
            yield self.problem(path, f"network.route_table {quoted(text)} {fault}", ID_FORM)
        elif own is not None and text.split("/")[2].lower() != own.lower():
            yield self.problem(
                path, f"network.route_table is in subscription {text.split('/')[2]}, the deployment in {own}"
            )


class Unreachable(DefinitionRule):
    id = "W0340"
    summary = "A private address that the new network needs has no connection to it."
    why = (
        "Without a peering no packet reaches the firewall or the DNS servers, so the server's first boot fails, "
        "whoever would connect the network afterwards."
    )
    fix = "Use access hub with the hub's vnet_id, or silence this rule with who connects the network, and when."
    source = "https://learn.microsoft.com/azure/virtual-network/virtual-network-peering-overview"

    def check(self, site: Site) -> Iterator[Problem]:
        network = site.definition.network
        if network.existing is not None or kind_of(site.definition).peers_with_hub:
            return
        named: list[tuple[Path, str]] = [(("network", "next_hop"), network.next_hop)] if network.next_hop else []
        named += [(("network", "dns_servers", index), text) for index, text in enumerate(network.dns_servers)]
        if network.proxy is not None:
            named.append((("network", "proxy"), urlsplit(network.proxy.url).hostname or ""))
        for path, text in named:
            if _is_private(text) and address_fault(site, text) is None:
                yield self.problem(path, f"nothing connects the new network with {text}: access is {network.access}")


class ForwardedTraffic(DefinitionRule):
    id = "W0368"
    summary = "The peering drops what the firewall forwards."
    why = (
        "Traffic that a firewall of the hub passes on does not come from the hub's own addresses, and a peering "
        "without allow_forwarded_traffic drops it: users behind the firewall do not reach the portal."
    )
    fix = "Leave allow_forwarded_traffic out, or set it to true."
    source = _PEERING

    def check(self, site: Site) -> Iterator[Problem]:
        network = site.definition.network
        if (
            network.hub is None
            or network.hub.allow_forwarded_traffic is not False
            or route_plan(site.definition) is None
        ):
            return
        text = "network.hub.allow_forwarded_traffic is false, but the traffic passes a firewall of the hub"
        yield self.problem(("network", "hub", "allow_forwarded_traffic"), text, "allow_forwarded_traffic: true")


def _is_private(text: str) -> bool:
    found = address(text)
    return found is not None and any(found in range_ for range_ in private_ranges())
