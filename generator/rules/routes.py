"""Where traffic leaves a new network: route tables and firewalls, the proxy, and the owner's DNS servers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network
from urllib.parse import urlsplit

from .. import catalog
from ..definition.model.slurm import NewDatabase, Slurm
from ..plan.access import kind_of
from ..plan.network import route_plan
from ..problems.problem import Problem
from .addresses import prefix, private_ranges
from .azure_names import ID_FORM, resource_id_fault
from .base import ClusterRule, DefinitionRule, Path, Site, first_given, given, quoted
from .network import host_fault

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
    for range_, reason in catalog.rule_figures().address_ranges.refused.items():
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
            text = "network.next_hop creates a route table, but network.route_table names a different one"
            yield self.problem(("network", "route_table"), text, on_key=True)
        if network.nat_gateway and given(site, ("network", "nat_gateway")):
            text = f"network.nat_gateway is on, but network.{key} sends the traffic elsewhere"
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


_PROXY: Path = ("network", "proxy")
_PAGE = "https://learn.microsoft.com/azure/cyclecloud/how-to/running-behind-proxy"
_URL = re.compile(r"http://[A-Za-z0-9.-]+:[0-9]{1,5}/?")
_EXCEPTION = re.compile(r"\.?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*(/[0-9]{1,2})?")


class ProxyUrl(DefinitionRule):
    id = "E0378"
    summary = "The address of the proxy is not one that server and nodes can use."
    why = (
        "It is written into files that every user of a node reads, so it holds no password, and apt, dnf, pip and Java "
        "each want host and port."
    )
    fix = "Write http://HOST:PORT."
    source = _PAGE

    def check(self, site: Site) -> Iterator[Problem]:
        proxy = site.definition.network.proxy
        if proxy is None:
            return
        fault = _fault(site, proxy.url)
        if fault:
            path = first_given(site, (*_PROXY, "url"), _PROXY)
            yield self.problem(path, f"the proxy {fault}", "http://10.0.1.5:3128")
        for index, text in enumerate(proxy.no_proxy):
            if not _EXCEPTION.fullmatch(text):
                yield self.problem(
                    (*_PROXY, "no_proxy", index),
                    f"{quoted(text)} is not a host, a domain like .example.com or a prefix",
                )


def _fault(site: Site, url: str) -> str | None:
    """What is wrong with it; a URL that may hold a password is not repeated."""
    if "@" in url:
        return "names a user, and with it a password that everyone could read"
    if not _URL.fullmatch(url):
        return f"{quoted(url)} is not of the form http://HOST:PORT"
    parts = urlsplit(url)
    port = int(url.rstrip("/").rsplit(":", 1)[1])
    if not 0 < port < 65536:
        return f"{quoted(url)} has no port between 1 and 65535"
    host = parts.hostname or ""
    fault = host_fault(host)
    if fault is None and address(host) is not None and site.definition.network.existing is None:
        fault = address_fault(site, host)
    return f"{quoted(url)}: the host {fault}" if fault else None


AZURE_DNS = "168.63.129.16"
"""Azure's own resolver: https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16"""
_SERVERS: Path = ("network", "dns_servers")
_OWN_SERVERS = (
    "https://learn.microsoft.com/azure/virtual-network/virtual-networks-name-resolution-for-vms-and-role-instances"
)


def _own_servers(site: Site) -> list[str]:
    """DNS servers of a new network that are not Azure's."""
    network = site.definition.network
    return [] if network.existing is not None or AZURE_DNS in network.dns_servers else network.dns_servers


class DnsServer(DefinitionRule):
    id = "E0328"
    summary = "A DNS server is not the address of a host outside of the network."
    why = "Every VM asks these servers for every name; one that does not answer delays or fails each look-up."
    fix = "Write the IPv4 addresses of your DNS servers, each once."
    source = _OWN_SERVERS

    def check(self, site: Site) -> Iterator[Problem]:
        servers = site.definition.network.dns_servers
        for index, text in enumerate(servers):
            fault = None if text == AZURE_DNS else address_fault(site, text)
            if text in servers[:index]:
                fault = "is in the list already"
            if fault:
                yield self.problem((*_SERVERS, index), f"the DNS server {quoted(text)} {fault}")


class OneDnsServer(DefinitionRule):
    id = "W0329"
    summary = "There is one DNS server only."
    why = "While it is restarted, no name of the cluster resolves: mounts, jobs and the portal fail."
    fix = "Name a second server in network.dns_servers."
    source = "https://azure.github.io/PSRule.Rules.Azure/en/rules/Azure.VNET.SingleDNS/"

    def check(self, site: Site) -> Iterator[Problem]:
        if len(_own_servers(site)) == 1:
            yield self.problem(_SERVERS, f"{_own_servers(site)[0]} is the only DNS server of the network", on_key=True)


class ZoneThatNobodyAsks(DefinitionRule):
    id = "E0330"
    summary = "A new private DNS zone would not be asked by the DNS servers of the network."
    why = (
        "A zone answers in networks that it is linked to, through Azure's own resolver. Your servers are elsewhere, so "
        "the locker or the database would have no private address, and the deployment fails after its slowest parts."
    )
    fix = "Name the zone that your servers resolve; for the locker, `none` where a policy registers the endpoint."
    source = "https://learn.microsoft.com/azure/private-link/private-endpoint-dns-integration"

    def check(self, site: Site) -> Iterator[Problem]:
        network, slurm = site.definition.network, site.definition.slurm
        if not _own_servers(site):
            return
        zones = [("blob_dns_zone", "the locker's endpoint", site.definition.server.existing is None)]
        zones += [("mysql_dns_zone", "the database", slurm is not None and isinstance(slurm.accounting, NewDatabase))]
        for key, what, is_used in zones:
            if is_used and getattr(network, key) == "new":
                text = f"network.{key} is new, but the servers of network.dns_servers do not ask a new zone for {what}"
                path = first_given(site, ("network", key), _SERVERS)
                yield self.problem(path, text, f"{key}: /subscriptions/…/privateDnsZones/…", on_key=True)


class DatabaseZoneNotLinked(ClusterRule):
    id = "E0370"
    summary = "Nothing links the private DNS zone of the database to the new network."
    why = (
        "Azure creates a database server in a subnet only if the network is linked to the server's zone, whichever DNS "
        "servers the network asks; else it refuses the server (VnetNotLinkedToPrivateDnsZone)."
    )
    fix = (
        "Leave link_dns_zones out, so that the deployment links the zone, or set mysql_dns_zone: new. Silence this "
        "rule where the network already exists from an earlier deployment and the owner of the zone has linked it."
    )
    source = "https://learn.microsoft.com/azure/mysql/flexible-server/concepts-networking-vnet"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        network, path = site.definition.network, ("network", "link_dns_zones")
        is_linked = network.existing is not None or network.link_dns_zones or network.mysql_dns_zone == "new"
        if isinstance(slurm.accounting, NewDatabase) and not is_linked:
            text = "Azure refuses the database server, because link_dns_zones is false and nothing else links its zone"
            hint = "link_dns_zones: true" if _own_servers(site) else "link_dns_zones: true, or mysql_dns_zone: new"
            yield self.problem(path, text, hint)


class NodeNames(ClusterRule):
    id = "W0350"
    summary = "The names of the nodes are those of someone else's DNS servers to resolve."
    why = (
        "Azure resolves the names of VMs in their own network only, not through DNS servers of others. Scheduler, "
        "login nodes and MPI jobs find each other by name."
    )
    fix = (
        "Let the nodes register themselves with these servers, or in a private DNS zone that is linked to the network "
        "with registration and that the servers forward to; then silence this rule with how it is done."
    )
    source = _OWN_SERVERS

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        if _own_servers(site):
            text = "the nodes' own names must be resolved by network.dns_servers"
            yield self.problem(_SERVERS, text, on_key=True)
