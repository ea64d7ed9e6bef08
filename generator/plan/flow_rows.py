"""The table of flows as people read it: a row per flow, with the subnets by their names."""

from __future__ import annotations

from ..records import record
from .flow import ENDPOINTS, EVERY_SUBNET, JUMPBOX, NODES, PEERS, REACHABLE, SERVER, USERS, Party
from .network import NetworkPlan
from .security_rules import subnet_role

_INSIDE = {
    SERVER: "the server",
    JUMPBOX: "the jumpbox",
    NODES: "nodes",
    ENDPOINTS: "the locker",
    "bastion": "Azure Bastion",
    "netapp": "NetApp Files",
    "lustre": "Managed Lustre",
    "database": "the database",
}
_OUTSIDE = {
    SERVER: "the existing server",
    ENDPOINTS: "the locker of the existing server",
    USERS: "users",
    PEERS: "other networks",
    "bastion": "Azure Bastion",
}


@record
class FlowRow:
    """Cells of a Markdown table."""

    source: str
    destination: str
    ports: str
    purpose: str


def flow_rows(network: NetworkPlan) -> tuple[FlowRow, ...]:
    """One row per flow, in the order of the table."""
    return tuple(
        FlowRow(
            _party(network, flow.source),
            _party(network, flow.destination),
            _ports(flow.protocol, flow.ports),
            flow.purpose,
        )
        for flow in network.flows
    )


def _party(network: NetworkPlan, party: Party) -> str:
    subnet = network.subnet(subnet_role(network, party) or "")
    if subnet is not None:
        return f"{_INSIDE[party]} (`{subnet.name}`)"
    if party == EVERY_SUBNET:
        return "every subnet"
    if party == REACHABLE and network.hub is not None:
        return ", ".join(f"`{prefix}`" for prefix in network.hub.reachable)
    return _OUTSIDE.get(party) or f"`{party}`"


def _ports(protocol: str, ports: tuple[str, ...]) -> str:
    name = {"Tcp": "TCP", "Udp": "UDP", "*": "TCP and UDP"}[protocol]
    if ports != ("*",):
        return f"{name} {', '.join(ports)}"
    return "any" if protocol == "*" else f"{name}, any port"
