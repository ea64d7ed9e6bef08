"""From the table of flows to the rules of each subnet's network security group.

Inbound, a subnet takes the flows that lead to it and the health probes of load balancers, and nothing else from private
networks. Outbound, the server may open connections anywhere, because everything is managed from it; from every other
subnet only flows lead to this network and, behind a hub, to any other private one. The internet stays open to all.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from .. import catalog
from .bicep_modules import Expression
from .flow import ANY, ENDPOINTS, EVERY_SUBNET, JUMPBOX, NODES, PEERS, REACHABLE, SERVER, USERS, Direction, Flow, Party
from .network import NetworkPlan, SecurityRule, SubnetPlan
from .subnet_kinds import SubnetRole
from .subnets import compute_name, kind_of_role, without_overlaps

ALLOWED_SOURCES = Expression("userSources")
"""The variable of `main.bicep` that holds the sources of access `public`, also other ones than the definition's."""
_NETWORK_TAG = "VirtualNetwork"
_FIRST, _STEP, _BEFORE_LAST, _LAST = 100, 10, 3990, 4000
"""Priorities: flows from the first on; Azure's own rules, which allow all private traffic, begin at 65000."""
_MANAGEMENT_PORTS = ("22", "3389")
_SUBNET_OF = {SERVER: "server", JUMPBOX: "server", NODES: "compute", ENDPOINTS: "endpoints"}


def security_rules(network: NetworkPlan) -> dict[SubnetRole, tuple[SecurityRule, ...]]:
    """The rules of a new network by the role of the subnet, inbound before outbound, each in order of priority."""
    return {subnet.role: (*_inbound(network, subnet), *_outbound(network, subnet)) for subnet in network.subnets}


def subnet_role(network: NetworkPlan, party: Party) -> SubnetRole | None:
    """The subnet of this network in which a side of a flow is; None for what is outside."""
    return next(iter(subnet_roles(network, party)), None)


def subnet_roles(network: NetworkPlan, party: Party) -> tuple[SubnetRole, ...]:
    """All subnets of this network in which a side of a flow may be: nodes may be in several."""
    role = _SUBNET_OF.get(party, party)
    return tuple(
        each.role
        for each in network.subnets
        if each.role == role or (party == NODES and compute_name(each.role) is not None)
    )


def _prefixes(network: NetworkPlan, party: Party) -> tuple[str, ...]:
    """Of the subnets of a side; empty for what is outside."""
    found = (network.subnet(role) for role in subnet_roles(network, party))
    return tuple(subnet.prefix or "" for subnet in found if subnet is not None)


def _inbound(network: NetworkPlan, subnet: SubnetPlan) -> Iterator[SecurityRule]:
    own = (subnet.prefix or "",)
    flows = (flow for flow in network.flows if subnet.role in subnet_roles(network, flow.destination))
    yield from _numbered(
        *_demanded(subnet, "Inbound"),
        *(_allowed(flow, "Inbound", sources, own) for flow in flows if (sources := _sources(network, flow.source))),
    )
    # The tag of the next rule contains the virtual address of the host, from which probes come, and Azure's own rule
    # for them is behind it: https://learn.microsoft.com/azure/virtual-network/service-tags-overview
    yield SecurityRule(
        name="AllowAzureLoadBalancerInbound",
        priority=_BEFORE_LAST,
        direction="Inbound",
        access="Allow",
        protocol="*",
        sources=("AzureLoadBalancer",),
        destinations=ANY,
        ports=ANY,
        description="health probes of load balancers",
    )
    yield SecurityRule(
        name="DenyVirtualNetworkInbound",
        priority=_LAST,
        direction="Inbound",
        access="Deny",
        protocol="*",
        sources=(_NETWORK_TAG,),
        destinations=ANY,
        ports=ANY,
        description="nothing else from this network and those connected to it",
    )


def _outbound(network: NetworkPlan, subnet: SubnetPlan) -> Iterator[SecurityRule]:
    demanded = tuple(_demanded(subnet, "Outbound"))
    if kind_of_role(subnet.role).manages:
        yield from _numbered(*demanded)
        return
    own = (subnet.prefix or "",)
    flows = (
        flow
        for flow in network.flows
        if flow.source == EVERY_SUBNET or subnet.role in subnet_roles(network, flow.source)
    )
    yield from _numbered(
        *demanded,
        *(_allowed(flow, "Outbound", own, to) for flow in flows if (to := _destinations(network, flow.destination))),
    )
    yield SecurityRule(
        name="DenyManagementOutbound",
        priority=_BEFORE_LAST,
        direction="Outbound",
        access="Deny",
        protocol="Tcp",
        sources=ANY,
        destinations=(_NETWORK_TAG,),
        ports=_MANAGEMENT_PORTS,
        description="no SSH and Remote Desktop to other machines",
    )
    # Not the tag: with a default route to a firewall or to the hub's gateway it contains the whole internet.
    # https://learn.microsoft.com/azure/virtual-network/service-tags-overview
    yield SecurityRule(
        name="DenyPrivateOutbound",
        priority=_LAST,
        direction="Outbound",
        access="Deny",
        protocol="*",
        sources=ANY,
        destinations=without_overlaps((network.address_space or "", *_private_side(network))),
        ports=ANY,
        description="nothing else in this network and those connected to it",
    )


def _numbered(*rules: SecurityRule) -> Iterator[SecurityRule]:
    return (replace(rule, priority=_FIRST + _STEP * index) for index, rule in enumerate(rules))


def _allowed(
    flow: Flow, direction: Direction, sources: tuple[str, ...] | Expression, destinations: tuple[str, ...]
) -> SecurityRule:
    name = _rule_name(flow, direction)
    return SecurityRule(name, 0, direction, "Allow", flow.protocol, sources, destinations, flow.ports, flow.purpose)


def _demanded(subnet: SubnetPlan, direction: Direction) -> Iterator[SecurityRule]:
    for each in kind_of_role(subnet.role).demands:
        if each.direction == direction:
            yield SecurityRule(
                each.name, 0, direction, "Allow", each.protocol, (each.source,), (each.destination,), each.ports,
                each.description,
            )  # fmt: skip


def _rule_name(flow: Flow, direction: Direction) -> str:
    return f"Allow{''.join(word[:1].upper() + word[1:] for word in flow.name.split('-'))}{direction}"


def _sources(network: NetworkPlan, party: Party) -> tuple[str, ...] | Expression:
    """From which addresses a side of a flow opens connections; none where the deployment has no such side."""
    if own := _prefixes(network, party):
        return own
    if party == USERS:
        return ALLOWED_SOURCES if network.allowed_sources else network.user_sources
    if party in (SERVER, ENDPOINTS, PEERS):
        return (network.hub.address_spaces if network.hub else ()) or (_NETWORK_TAG,)
    return (party,)


def _destinations(network: NetworkPlan, party: Party) -> tuple[str, ...]:
    """At which addresses a side of a flow is reached; none where no rule prevents it."""
    if own := _prefixes(network, party):
        return own
    if party in (SERVER, ENDPOINTS, PEERS):
        return _private_side(network)
    if party == REACHABLE:
        return network.hub.reachable if network.hub else ()
    return (party,)


def _private_side(network: NetworkPlan) -> tuple[str, ...]:
    """The networks that the deployment connects, whatever of them is declared: everything private."""
    if network.hub is None:
        return ()
    return without_overlaps((*network.hub.address_spaces, *catalog.limits().private_ranges.value))
