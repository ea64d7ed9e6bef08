"""What a definition creates: each resource type, with the key that asks for it.

Rules compare it with what a landing zone denies before there is a plan, and it decides which resource providers,
rights and roles a deployment needs; a test compares it with the resources that Azure receives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum, auto

from msgspec import Struct

from .. import catalog
from ..definition.model.definition import Definition
from . import names
from .access import kind_of
from .computed import computed_once
from .file_systems.registry import wanted_by
from .network import route_plan, uses_nat_gateway


class Purpose(Enum):
    """Why something is created. Decisions ask this, never the title."""

    RESOURCE_GROUP = auto()
    NODE_IDENTITY = auto()
    ROLES = auto()
    """Of the identities of server and nodes, on what the deployment creates and on an existing network."""
    ROLE_OF_EXISTING_SERVER = auto()
    LOCKER_ROLE = auto()
    METRICS_ROLE = auto()
    NETWORK = auto()
    ROUTE = auto()
    NAT_GATEWAY = auto()
    HUB_PEERING = auto()
    ZONE_LINK = auto()
    """Of an existing zone."""
    PUBLIC_SERVER = auto()
    """What a server gets that has a public address on its network interface."""
    BASTION = auto()
    SERVER = auto()
    JUMPBOX = auto()
    LOCKER = auto()
    LOCKER_NAME = auto()
    LOCKER_ZONE = auto()
    FILE_SYSTEM = auto()
    DATABASE = auto()
    DATABASE_ZONE = auto()
    DIAGNOSTICS = auto()


class Created(Struct, frozen=True):
    type: str
    path: tuple[str | int, ...]
    """Of the key that asks for it, or whose default does."""
    purpose: Purpose
    title: str
    """The purpose in words; of a file system, where it is mounted."""
    is_elsewhere: bool = False
    """Whether it is created on something that exists, outside of the deployment's own group."""
    roles: tuple[str, ...] = ()
    """Names of the built-in roles that a role assignment gives."""


Path = tuple[str | int, ...]
_NETWORK = "Microsoft.Network"
PUBLIC_ADDRESS = f"{_NETWORK}/publicIPAddresses"
ROLE = "Microsoft.Authorization/roleAssignments"
LINK = f"{_NETWORK}/privateDnsZones/virtualNetworkLinks"
_ACCOUNT = "Microsoft.Storage/storageAccounts"
TITLES: Mapping[Purpose, str] = {
    Purpose.RESOURCE_GROUP: "the resource group",
    Purpose.NODE_IDENTITY: "the identity of the nodes",
    Purpose.ROLES: "the roles of server and nodes",
    Purpose.ROLE_OF_EXISTING_SERVER: "the role of the existing server",
    Purpose.LOCKER_ROLE: "the role of the nodes on the locker",
    Purpose.METRICS_ROLE: "the role of the nodes on the metrics",
    Purpose.NETWORK: "the network",
    Purpose.ROUTE: "the route to the firewall",
    Purpose.NAT_GATEWAY: "the NAT gateway",
    Purpose.HUB_PEERING: "the peering with the hub",
    Purpose.ZONE_LINK: "the link to the zone",
    Purpose.PUBLIC_SERVER: "the public server",
    Purpose.BASTION: "the Bastion",
    Purpose.SERVER: "the CycleCloud server",
    Purpose.JUMPBOX: "the jumpbox",
    Purpose.LOCKER: "the locker",
    Purpose.LOCKER_NAME: "the name of the locker",
    Purpose.LOCKER_ZONE: "the zone of the locker's endpoint",
    Purpose.DATABASE: "the accounting database",
    Purpose.DATABASE_ZONE: "the zone of the database",
    Purpose.DIAGNOSTICS: "the diagnostic settings",
}
"""Words for people; a file system has its mount point in place of one."""
_CONTRIBUTOR, _BLOB_READER = "Contributor", "Storage Blob Data Reader"
_SERVER_ROLES = ("Reader", _CONTRIBUTOR, "Storage Blob Data Contributor", _BLOB_READER)


@computed_once
def created_types(definition: Definition) -> tuple[Created, ...]:
    """In the order of `main.bicep`; a type is there once for each purpose. Types are as the catalogue spells them."""
    parts = (_always, _network, _way_in, _server, _storage, _database, _logs)
    return tuple(each for part in parts for each in part(definition))


def _of(purpose: Purpose, path: Path, *types: str, is_elsewhere: bool = False) -> Iterator[Created]:
    for each in types:
        yield Created(catalog.resource_type(each).name, path, purpose, TITLES[purpose], is_elsewhere)


def _role(purpose: Purpose, path: Path, *roles: str, is_elsewhere: bool = False) -> Created:
    return Created(catalog.resource_type(ROLE).name, path, purpose, TITLES[purpose], is_elsewhere, roles)


def _always(definition: Definition) -> Iterator[Created]:
    if names.creates_resource_group(definition):
        yield from _of(Purpose.RESOURCE_GROUP, ("azure", "resource_group"), "Microsoft.Resources/resourceGroups")
    yield from _of(Purpose.NODE_IDENTITY, ("slurm",), "Microsoft.ManagedIdentity/userAssignedIdentities")
    existing, path = definition.server.existing, ("server", "existing")
    if existing is None:
        on_network = () if definition.network.existing is None else ("Virtual Machine Contributor",)
        yield _role(Purpose.ROLES, ("server",), *_SERVER_ROLES, *on_network)
    elif existing.principal_id is not None:
        yield _role(Purpose.ROLE_OF_EXISTING_SERVER, (*path, "principal_id"), _CONTRIBUTOR)
    if existing is not None and existing.assign_locker_role:
        yield _role(Purpose.LOCKER_ROLE, (*path, "assign_locker_role"), _BLOB_READER, is_elsewhere=True)
    if definition.monitoring is not None:
        yield _role(Purpose.METRICS_ROLE, ("monitoring",), "Monitoring Metrics Publisher", is_elsewhere=True)


def _network(definition: Definition) -> Iterator[Created]:
    network, path = definition.network, ("network",)
    if network.existing is not None:
        return
    yield from _of(Purpose.NETWORK, path, f"{_NETWORK}/virtualNetworks", f"{_NETWORK}/networkSecurityGroups")
    route = route_plan(definition)
    if route is not None and route.next_hop is not None:
        yield from _of(Purpose.ROUTE, (*path, "next_hop"), f"{_NETWORK}/routeTables")
    if uses_nat_gateway(definition):
        yield from _of(Purpose.NAT_GATEWAY, (*path, "nat_gateway"), f"{_NETWORK}/natGateways", PUBLIC_ADDRESS)
    if kind_of(definition).peers_with_hub and network.hub is not None:
        peering = f"{_NETWORK}/virtualNetworks/virtualNetworkPeerings"
        yield from _of(Purpose.HUB_PEERING, (*path, "hub"), peering)
    if network.link_dns_zones and network.blob_dns_zone not in ("new", "none"):
        yield from _of(Purpose.ZONE_LINK, (*path, "blob_dns_zone"), LINK, is_elsewhere=True)


def _way_in(definition: Definition) -> Iterator[Created]:
    if definition.server.existing is not None:
        return
    access, path = kind_of(definition), ("network", "access")
    if access.is_public:
        yield from _of(Purpose.PUBLIC_SERVER, path, PUBLIC_ADDRESS, f"{_NETWORK}/networkSecurityGroups")
    elif access.subnet is not None and definition.network.existing is None:
        yield from _of(Purpose.BASTION, path, f"{_NETWORK}/bastionHosts", PUBLIC_ADDRESS)


def _server(definition: Definition) -> Iterator[Created]:
    server, compute = definition.server, "Microsoft.Compute/virtualMachines"
    if server.existing is not None:
        return
    interface = f"{_NETWORK}/networkInterfaces"
    yield from _of(Purpose.SERVER, ("server",), compute, f"{compute}/extensions", interface)
    if server.jumpbox is not None:
        yield from _of(Purpose.JUMPBOX, ("server", "jumpbox"), compute, interface)
    services = (f"{_ACCOUNT}/blobServices", f"{_ACCOUNT}/blobServices/containers")
    yield from _of(Purpose.LOCKER, ("storage", "locker"), _ACCOUNT, *services, f"{_NETWORK}/privateEndpoints")
    zone, path = definition.network.blob_dns_zone, ("network", "blob_dns_zone")
    if zone != "none":
        yield from _of(Purpose.LOCKER_NAME, path, f"{_NETWORK}/privateEndpoints/privateDnsZoneGroups")
    if zone == "new":
        yield from _of(Purpose.LOCKER_ZONE, path, f"{_NETWORK}/privateDnsZones", LINK)


def _storage(definition: Definition) -> Iterator[Created]:
    for wanted in wanted_by(definition):
        of = wanted.file_system
        for each in of.resource_types:
            roles = of.assigned_roles if each == ROLE else ()
            kind = catalog.resource_type(each).name
            yield Created(kind, wanted.definition_path, Purpose.FILE_SYSTEM, of.path, roles=roles)


def _database(definition: Definition) -> Iterator[Created]:
    accounting = definition.slurm.accounting if definition.slurm else None
    if accounting is None or accounting.type != "new":
        return
    server = "Microsoft.DBforMySQL/flexibleServers"
    types = (server, f"{server}/configurations", f"{server}/databases")
    yield from _of(Purpose.DATABASE, ("slurm", "accounting"), *types)
    path: Path = ("network", "mysql_dns_zone")
    if definition.network.mysql_dns_zone == "new":
        yield from _of(Purpose.DATABASE_ZONE, path, f"{_NETWORK}/privateDnsZones", LINK)
    elif definition.network.existing is None and definition.network.link_dns_zones:
        yield from _of(Purpose.ZONE_LINK, path, LINK, is_elsewhere=True)


def _logs(definition: Definition) -> Iterator[Created]:
    if definition.security.diagnostics_workspace_id is not None:
        path: Path = ("security", "diagnostics_workspace_id")
        yield from _of(Purpose.DIAGNOSTICS, path, "Microsoft.Insights/diagnosticSettings")
