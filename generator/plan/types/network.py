"""The virtual network, its subnets and the way in."""

from __future__ import annotations

from typing import Literal

from ...records import record
from ..access_kinds.base import AccessKind
from ..bicep_modules import Expression
from ..flow import Direction, Flow, Protocol
from ..subnet_kinds import SubnetRole
from .parameters import Asked


@record
class SecurityRule:
    """A rule of a subnet's network security group, which the Bicep module prints as it is."""

    name: str
    priority: int
    """100 to 4096, unique among the rules of a direction; the lowest that matches decides."""
    direction: Direction
    access: Literal["Allow", "Deny"]
    protocol: Protocol
    sources: tuple[str, ...] | Expression
    """CIDRs of which none contains another, or one service tag, or `*`; a parameter that the deployment asks for."""
    destinations: tuple[str, ...]
    ports: tuple[str, ...]
    """Of the destination; `*` stands alone."""
    description: str
    """At most 140 characters."""


@record
class SubnetPlan:
    """One subnet. `prefix` is a CIDR; None in an existing network of which the definition does not say it."""

    role: SubnetRole
    name: str
    prefix: str | None
    delegation: str | None
    """Resource provider that the subnet is delegated to, for example `Microsoft.Netapp/volumes`."""
    uses_nat: bool
    addresses: int | None = None
    """How many it must have free, in an existing network; None where the service says how large it must be."""
    longest_prefix: int | None = None
    """Prefix length of the smallest one that will do, in an existing network and with nothing else in it."""
    is_routed: bool = False
    """Whether the network's route table is the subnet's."""
    rules: tuple[SecurityRule, ...] = ()
    """Of its security group, in the order in which Azure reads them, inbound first; none in an existing network."""


@record
class RoutePlan:
    """Where traffic to other networks leaves: by a route table of the deployment, or by someone else's."""

    next_hop: str | None
    """Address of a firewall, the target of the default route in the deployment's own route table."""
    table_id: str | None
    """Resource id of an existing route table."""


@record
class HubPlan:
    """Peering with the network that owns the VPN or ExpressRoute gateway."""

    vnet_id: str | Asked
    use_remote_gateway: bool
    address_spaces: tuple[str, ...]
    """Prefixes from which users come; the firewall rules allow them. Empty: the VirtualNetwork tag covers the peer."""
    reachable: tuple[str, ...]
    """Prefixes to which nodes may open any connection."""
    allow_forwarded_traffic: bool = False


@record
class ProxyPlan:
    """The proxy of server and nodes."""

    url: str
    host: str
    port: int
    no_proxy: tuple[str, ...]
    """Hosts, domains (`.example.com`) and prefixes that are reached without it, beside the locker."""
    locker_domain: str
    """Of all storage accounts in the cloud; the locker is reached through its private endpoint."""

    @property
    def exceptions(self) -> tuple[str, ...]:
        """Everything that is reached without it."""
        return (*self.no_proxy, self.locker_domain)


@record
class NetworkPlan:
    """The virtual network, new or existing, and the way in."""

    is_new: bool
    vnet_name: str
    vnet_resource_group: str
    vnet_id: str | None
    """Resource id of an existing network; None for a new one."""
    address_space: str | None
    subnets: tuple[SubnetPlan, ...]
    access: AccessKind
    """Its name; what it means is in `Plan.access`."""
    allowed_sources: tuple[str, ...]
    """CIDRs that may reach the server's public address (access `public` only)."""
    hub: HubPlan | None
    user_sources: tuple[str, ...]
    """From where users reach server and nodes of a private deployment: prefixes, or the tag of the network."""
    flows: tuple[Flow, ...]
    """Who talks to whom. The rules of the subnets follow from it; the owner of an existing network has to allow it."""
    nat_gateway: bool
    blob_dns_zone: Literal["new", "none"] | str
    """`new`, `none` (someone else resolves the private endpoint) or the resource id of an existing zone."""
    links_dns_zone: bool
    """Whether an existing zone is linked to this network. Beside an existing network it counts as linked already:
    Azure allows one link between a zone and a network, and it belongs to whoever owns both."""
    mysql_dns_zone: Literal["new"] | str
    """`new` or the resource id of an existing zone, for a new database server."""
    links_mysql_dns_zone: bool
    dns_servers: tuple[str, ...] = ()
    """IPv4 addresses; empty: Azure's own."""
    route: RoutePlan | None = None
    proxy: ProxyPlan | None = None

    def flow(self, name: str) -> Flow:
        """The flow of this name; KeyError says that the network does not allow what a text promises."""
        found = next((flow for flow in self.flows if flow.name == name), None)
        if found is None:
            raise KeyError(f"the network has no flow {name!r}")
        return found

    def has_flow(self, name: str) -> bool:
        """Whether a flow of this name is in the table."""
        return any(flow.name == name for flow in self.flows)

    @property
    def compute_subnets(self) -> tuple[SubnetPlan, ...]:
        """The subnets that nodes may be in, the cluster's first."""
        found = [subnet for subnet in self.subnets if subnet.role.split("-")[0] == "compute"]
        return tuple(sorted(found, key=lambda subnet: subnet.role != "compute"))

    def subnet(self, role: SubnetRole) -> SubnetPlan | None:
        """The subnet of a role, if this network has it."""
        return next((subnet for subnet in self.subnets if subnet.role == role), None)
