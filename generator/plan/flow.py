"""A flow: who opens connections to whom, on which ports, and what for. The table of all flows is in `flows`."""

from __future__ import annotations

from ipaddress import AddressValueError, IPv4Address
from typing import Literal

from msgspec import Struct

Protocol = Literal["Tcp", "Udp", "*"]
Direction = Literal["Inbound", "Outbound"]
Party = str
"""One side of a flow: a name below, the role of a subnet, an address (CIDR) or a service tag of Azure."""

USERS: Party = "users"
"""The computers of users: the sources of access `public`, or what is behind the gateway of the hub."""
SERVER: Party = "server"
JUMPBOX: Party = "jumpbox"
NODES: Party = "nodes"
ENDPOINTS: Party = "endpoints"
"""The private endpoint of the locker."""
PEERS: Party = "peers"
"""Hosts of other networks whose addresses the definition does not say."""
EVERY_SUBNET: Party = "every subnet"
REACHABLE: Party = "reachable"
"""The prefixes of `network.hub.reachable`."""

ANY: tuple[str, ...] = ("*",)
NFS_PORTS: tuple[str, ...] = ("111", "635", "2049", "4045", "4046", "4049")
"""NFSv3 of NetApp Files: port mapper, mount, nfs, lock manager, status monitor, quota.
Source: https://learn.microsoft.com/azure/azure-netapp-files/network-attached-storage-protocols"""
LUSTRE_PORTS: tuple[str, ...] = ("988", "1019-1023")
"""Clients and servers open connections to each other.
Source: https://learn.microsoft.com/azure/azure-managed-lustre/configure-network-security-group"""


class Flow(Struct, frozen=True):
    """Connections that the source opens. Answers need no flow of their own: security groups keep state."""

    name: str
    """Unique in a plan: words with hyphens, from which rules have their names and on which the README relies."""
    source: Party
    destination: Party
    protocol: Protocol
    ports: tuple[str, ...]
    """Ports of the destination, and ranges like `1019-1023`; `*` stands alone."""
    purpose: str
    """What it is for, in a few words: a cell of the README's table, and the description of its rules in Azure."""


class Demand(Struct, frozen=True):
    """A rule that an Azure service wants literally in the security group of its own subnet."""

    name: str
    direction: Direction
    protocol: Protocol
    source: str
    destination: str
    ports: tuple[str, ...]
    description: str


def host_prefix(host: str) -> str | None:
    """An IPv4 address as a prefix; None for a host name."""
    try:
        return f"{IPv4Address(host)}/32"
    except AddressValueError:
        return None
