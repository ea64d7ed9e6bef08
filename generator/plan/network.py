"""The network plan: which subnets a definition needs, where they are, and the way in."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Network
from typing import Literal
from urllib.parse import urlsplit

from msgspec import Struct

from .. import catalog
from ..definition.model.definition import Definition
from ..definition.model.fields import values_of
from ..definition.model.network import ExistingSubnet
from ..definition.model.slurm import NodeProjects
from . import names
from .access import AccessKind, kind_of
from .addresses import endpoint_names, needed_addresses, smallest_subnet
from .asked import HUB_VNET, Asked, asked_or
from .bicep_modules import Expression
from .file_systems.registry import wanted_by
from .flow import Direction, Flow, Protocol
from .subnet_kinds import SubnetRole
from .subnets import ROLES, Layout, compute_role, in_order, kind_of_role, parse_network, place_subnets, without_overlaps


class SecurityRule(Struct, frozen=True):
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


class SubnetPlan(Struct, frozen=True):
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


class RoutePlan(Struct, frozen=True):
    """Where traffic to other networks leaves: by a route table of the deployment, or by someone else's."""

    next_hop: str | None
    """Address of a firewall, the target of the default route in the deployment's own route table."""
    table_id: str | None
    """Resource id of an existing route table."""


class HubPlan(Struct, frozen=True):
    """Peering with the network that owns the VPN or ExpressRoute gateway."""

    vnet_id: str | Asked
    use_remote_gateway: bool
    address_spaces: tuple[str, ...]
    """Prefixes from which users come; the firewall rules allow them. Empty: the VirtualNetwork tag covers the peer."""
    reachable: tuple[str, ...]
    """Prefixes to which nodes may open any connection."""
    allow_forwarded_traffic: bool = False


class NetworkPlan(Struct, frozen=True):
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
        return next((subnet for subnet in self.subnets if subnet.role == role), None)


def needed_roles(definition: Definition) -> tuple[SubnetRole, ...]:
    """The subnets that this definition needs."""
    network, access = definition.network, kind_of(definition)
    # An existing server is somewhere else, and so are the endpoints of its locker and the way in.
    creates_server = definition.server.existing is None
    wanted = {"server", "compute", "endpoints"} if creates_server else {"compute"}
    wanted |= {each.file_system.subnet.role for each in wanted_by(definition) if each.file_system.subnet is not None}
    if endpoint_names(definition):
        wanted.add("endpoints")
    if access.subnet is not None and network.existing is None and creates_server:
        wanted.add(access.subnet.role)
    if _creates_database(definition):
        wanted.add("database")
    # One of a new network is nowhere without a prefix, which a rule reports.
    more = (
        role
        for role, prefix in more_compute_subnets(definition).items()
        if network.existing is not None or parse_network(prefix or "") is not None
    )
    return in_order((*wanted, *more))


def more_compute_subnets(definition: Definition) -> Mapping[SubnetRole, str | None]:
    """The further compute subnets by role, with their prefixes as they are written."""
    existing = definition.network.existing
    given = existing.compute_subnets if existing is not None else definition.network.compute_subnets
    return {compute_role(each.name): each.prefix for each in given}


def node_subnet(definition: Definition, node: NodeProjects) -> str | None:
    """The subnet of a role's nodes as CycleCloud names it; None where it is that of the cluster."""
    if node.subnet is None:
        return None
    group, vnet = _vnet(definition)
    existing = definition.network.existing is not None
    return "/".join((group, vnet, node.subnet if existing else kind_of_role(compute_role(node.subnet)).name))


def _vnet(definition: Definition) -> tuple[str, str]:
    """Resource group and name of the network."""
    existing = definition.network.existing
    if existing is not None:
        return names.vnet_parts(existing.vnet_id)
    return names.resource_group(definition), f"{names.prefix(definition)}-vnet"


def _creates_database(definition: Definition) -> bool:
    slurm = definition.slurm
    return slurm is not None and slurm.accounting is not None and slurm.accounting.type == "new"


def writes_dns_zone(definition: Definition, layout: Layout | None) -> bool:
    """Whether the deployment creates a private DNS zone or a link to one, which takes fewer tags."""
    network = network_plan(definition, layout)
    return network.blob_dns_zone == "new" or network.links_dns_zone or _creates_database(definition)


def prefix_lengths(definition: Definition) -> dict[SubnetRole, int]:
    """Prefix lengths of the subnets whose size follows from their largest file system."""
    lengths: dict[SubnetRole, int] = {}
    for file_system in (each.file_system for each in wanted_by(definition)):
        length = file_system.subnet_prefix_length
        if file_system.subnet is not None and length is not None:
            role = file_system.subnet.role
            lengths[role] = min(length, lengths.get(role, length))
    return lengths


def layout_of(definition: Definition) -> Layout | None:
    """Subnets of a new network; None for an existing network or an address space that is not a CIDR."""
    space = parse_network(definition.network.address_space)
    if definition.network.existing is not None or space is None:
        return None
    return place_subnets(space, needed_roles(definition), given_prefixes(definition), prefix_lengths(definition))


def given_prefixes(definition: Definition) -> Mapping[SubnetRole, IPv4Network]:
    texts = {role: getattr(definition.network.subnets, role) for role in ROLES}
    parsed = {
        role: parse_network(text)
        for role, text in (*texts.items(), *more_compute_subnets(definition).items())
        if text is not None
    }
    return {role: prefix for role, prefix in parsed.items() if prefix is not None}


def network_plan(definition: Definition, layout: Layout | None) -> NetworkPlan:
    """The network as the Bicep renderer prints it."""
    network, access, zone = definition.network, kind_of(definition), definition.network.blob_dns_zone
    existing, creates_server = network.existing, definition.server.existing is None
    links_zones = existing is None and network.link_dns_zones
    vnet_group, vnet_name = _vnet(definition)
    hub, route = None, route_plan(definition)
    # An existing network is left as it is, its peerings included.
    if existing is None and access.peers_with_hub and network.hub is not None:
        hub = HubPlan(
            asked_or(network.hub.vnet_id, HUB_VNET),
            network.hub.use_remote_gateway,
            without_overlaps(network.hub.address_spaces),
            without_overlaps(network.hub.reachable),
            # What a firewall answers comes from beyond the hub, and without this the peering drops it.
            route is not None if network.hub.allow_forwarded_traffic is None else network.hub.allow_forwarded_traffic,
        )
    return NetworkPlan(
        is_new=existing is None,
        vnet_name=vnet_name,
        vnet_resource_group=vnet_group,
        vnet_id=existing.vnet_id if existing else None,
        address_space=str(layout.address_space) if layout else None,
        subnets=_new_subnets(layout, definition) if layout else _existing_subnets(definition),
        access=access.default("kind"),
        allowed_sources=without_overlaps(network.allowed_sources) if access.is_public and creates_server else (),
        hub=hub,
        user_sources=access.user_sources(hub.address_spaces if hub else ()),
        flows=(),
        nat_gateway=uses_nat_gateway(definition),
        # The endpoint of an existing server's locker is registered already; a new network may still need the link.
        blob_dns_zone=zone if creates_server or zone != "new" else "none",
        links_dns_zone=links_zones and zone not in ("new", "none"),
        mysql_dns_zone=network.mysql_dns_zone,
        dns_servers=() if existing is not None else tuple(network.dns_servers),
        route=route,
        proxy=proxy_plan(definition),
        links_mysql_dns_zone=links_zones and network.mysql_dns_zone != "new" and _creates_database(definition),
    )


def route_plan(definition: Definition) -> RoutePlan | None:
    """The way out through someone's firewall; None without one, and in an existing network, which has its own."""
    network = definition.network
    if network.existing is not None or (network.next_hop is None and network.route_table is None):
        return None
    return RoutePlan(network.next_hop, network.route_table)


def uses_nat_gateway(definition: Definition) -> bool:
    """Whether the deployment creates a NAT gateway: a route to a firewall takes its place."""
    network = definition.network
    return network.nat_gateway and network.existing is None and route_plan(definition) is None


def _new_subnets(layout: Layout, definition: Definition) -> tuple[SubnetPlan, ...]:
    has_nat, has_route = uses_nat_gateway(definition), route_plan(definition) is not None
    return tuple(
        SubnetPlan(
            kind.role,
            kind.name,
            str(prefix),
            kind.delegation,
            uses_nat=has_nat and kind.uses_nat,
            is_routed=has_route and kind.may_be_routed,
        )
        for kind, prefix in ((kind_of_role(role), prefix) for role, prefix in layout.subnets.items())
    )


def existing_subnets(definition: Definition) -> Mapping[SubnetRole, ExistingSubnet]:
    """The subnets of an existing network that this definition needs and names; the endpoint may be with the server."""
    existing = definition.network.existing
    if existing is None:
        return {}
    named = values_of(existing.subnets)
    named["endpoints"] = named["endpoints"] or named["server"]
    named |= {compute_role(subnet.name): subnet for subnet in existing.compute_subnets}
    return {role: named[role] for role in needed_roles(definition) if named.get(role)}


def _existing_subnets(definition: Definition) -> tuple[SubnetPlan, ...]:
    lengths, needed = prefix_lengths(definition), needed_addresses(definition)
    return tuple(
        SubnetPlan(
            role,
            subnet.name,
            subnet.prefix,
            kind_of_role(role).delegation,
            uses_nat=False,
            addresses=needed.get(role),
            longest_prefix=smallest_subnet(definition, role, lengths.get(role)),
        )
        for role, subnet in existing_subnets(definition).items()
    )


class ProxyPlan(Struct, frozen=True):
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


def proxy_plan(definition: Definition) -> ProxyPlan | None:
    """The proxy; None without one. Names of the locker lead to its private endpoint, which no proxy has to reach."""
    wanted = definition.network.proxy
    if wanted is None:
        return None
    parts = urlsplit(wanted.url)
    own = () if definition.network.existing is not None else (definition.network.address_space,)
    blob = "." + catalog.cloud(definition.azure.cloud).blob_endpoint
    direct = catalog.egress().direct.addresses
    exceptions = dict.fromkeys(("localhost", "127.0.0.1", *direct, *own, *wanted.no_proxy))
    return ProxyPlan(wanted.url.rstrip("/"), parts.hostname or "", parts.port or 80, tuple(exceptions), blob)
