"""The one table of flows: who talks to whom in a deployment, on which ports, and what for.

Kinds of access and of file systems declare their own flows. What follows from the table: the rules of the security
groups (`security_rules`), the table that the owner of an existing network gets, and what the README may promise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from .access import Access
from .accounting import AccountingPlan
from .file_systems.base import FileSystem
from .flow import (
    ANY,
    ENDPOINTS,
    EVERY_SUBNET,
    JUMPBOX,
    NODES,
    PEERS,
    REACHABLE,
    SERVER,
    USERS,
    Flow,
    Party,
    host_prefix,
)
from .network import NetworkPlan
from .resources import MonitoringPlan
from .security_rules import security_rules, subnet_role
from .server import ExistingServerPlan, ServerPlan

_DATABASE, _MYSQL = "database", ("3306",)


def with_flows(
    network: NetworkPlan,
    access: type[Access],
    server: ServerPlan | ExistingServerPlan | None,
    mounts: Sequence[FileSystem],
    accounting: AccountingPlan | None,
    monitoring: MonitoringPlan | None,
    *,
    public_nodes: bool = False,
) -> NetworkPlan:
    """The network with its table, and with the rules that follow from it where the network is new.

    `public_nodes`: users reach nodes by public addresses of their own.
    """
    if server is None:
        raise ValueError("a deployment has a server, its own or an existing one")
    found = (
        *_of_cluster(server),
        *access.flows(has_jumpbox=isinstance(server, ServerPlan) and server.jumpbox is not None),
        *(flow for mount in mounts for flow in mount.flows),
        *_of_accounting(accounting),
        *_of_peers(network, monitoring),
        *_of_public_nodes(public_nodes),
    )
    # Two volumes of one kind need the same.
    network = replace(network, flows=tuple(dict.fromkeys(found)))
    if not network.is_new:
        return network
    rules = security_rules(network)
    return replace(network, subnets=tuple(replace(each, rules=rules[each.role]) for each in network.subnets))


def _of_cluster(server: ServerPlan | ExistingServerPlan) -> Iterator[Flow]:
    web = (str(server.https_port), str(server.cluster_port))
    yield Flow("nodes-server", NODES, SERVER, "Tcp", web, "nodes report to CycleCloud")
    yield Flow("server-nodes", SERVER, NODES, "Tcp", ("22",), "SSH through the server to scheduler and nodes")
    # MPI, NCCL, Slurm and the scheduler's NFS server use ports that are not fixed.
    yield Flow("nodes-nodes", NODES, NODES, "*", ANY, "Slurm, MPI, NCCL and disks of the scheduler")
    yield Flow("nodes-locker", NODES, ENDPOINTS, "Tcp", ("443",), "nodes load their projects from the locker")
    yield Flow("server-locker", SERVER, ENDPOINTS, "Tcp", ("443",), "the server fills the locker")
    if isinstance(server, ServerPlan) and server.jumpbox is not None:
        yield Flow("jumpbox-server", JUMPBOX, SERVER, "Tcp", ("22", "443"), "the jumpbox opens portal and SSH")


def _of_accounting(accounting: AccountingPlan | None) -> Iterator[Flow]:
    if accounting is None:
        return
    purpose = "Slurm writes its job accounting"
    if accounting.is_new:
        yield Flow("nodes-database", NODES, _DATABASE, "Tcp", _MYSQL, purpose)
        yield Flow("database-own", _DATABASE, _DATABASE, "*", ANY, "MySQL flexible server itself")
    else:
        yield Flow("nodes-database", NODES, host_prefix(accounting.host or "") or PEERS, "Tcp", _MYSQL, purpose)


def _of_public_nodes(there_are: bool) -> Iterator[Flow]:
    if there_are:
        yield Flow("users-nodes", USERS, NODES, "Tcp", ("22",), "users log in to nodes with public addresses by SSH")


def _of_peers(network: NetworkPlan, monitoring: MonitoringPlan | None) -> Iterator[Flow]:
    for server in network.dns_servers:
        address = host_prefix(server) or PEERS
        yield Flow(f"dns-{server}", EVERY_SUBNET, address, "*", ("53",), "names, from the DNS servers of the network")
    if network.proxy is not None:
        address, port = host_prefix(network.proxy.host) or PEERS, (str(network.proxy.port),)
        yield Flow("nodes-proxy", NODES, address, "Tcp", port, "nodes fetch by the proxy")
        if network.subnet(SERVER) is not None:
            yield Flow("server-proxy", SERVER, address, "Tcp", port, "the server fetches by the proxy")
    if monitoring is not None:
        yield Flow("nodes-metrics", NODES, PEERS, "Tcp", ("443",), "nodes send metrics")
    if network.hub is not None and network.hub.reachable:
        yield Flow("nodes-reachable", NODES, REACHABLE, "*", ANY, "nodes use services that network.hub.reachable names")


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


class FlowRow(Struct, frozen=True):
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
