"""What a definition creates: each resource type, with the key that asks for it.

Rules compare it with what a landing zone denies before there is a plan; a test compares it with the resources that
Azure receives, so that no type is missing.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..definition.model.definition import Definition
from ..records import computed_once
from . import names
from .access_kinds.registry import kind_of
from .file_systems.registry import wanted_by
from .network import route_plan, uses_nat_gateway
from .types.created import Created

Path = tuple[str | int, ...]
_NETWORK = "Microsoft.Network"
PUBLIC_ADDRESS = f"{_NETWORK}/publicIPAddresses"
PUBLIC_SERVER = "the public server"
"""The purpose of what a server gets that has a public address on its network interface."""
_LINK = f"{_NETWORK}/privateDnsZones/virtualNetworkLinks"
_ROLES = "Microsoft.Authorization/roleAssignments"


@computed_once
def created_types(definition: Definition) -> tuple[Created, ...]:
    """In the order of `main.bicep`; a type is there once for each purpose."""
    parts = (_always, _network, _way_in, _server, _storage, _database, _logs)
    return tuple(each for part in parts for each in part(definition))


def _of(purpose: str, path: Path, *types: str) -> Iterator[Created]:
    return (Created(kind, path, purpose) for kind in types)


def _always(definition: Definition) -> Iterator[Created]:
    if names.creates_resource_group(definition):
        yield from _of("the resource group", ("azure", "resource_group"), "Microsoft.Resources/resourceGroups")
    yield from _of("the identity of the nodes", ("slurm",), "Microsoft.ManagedIdentity/userAssignedIdentities")
    existing = definition.server.existing
    if existing is None:
        yield from _of("the roles of server and nodes", ("server",), _ROLES)
    elif existing.principal_id is not None:
        yield from _of("the role of the existing server", ("server", "existing", "principal_id"), _ROLES)
    if existing is not None and existing.assign_locker_role:
        yield from _of("the role of the nodes on the locker", ("server", "existing", "assign_locker_role"), _ROLES)
    if definition.monitoring is not None:
        yield from _of("the role of the nodes on the metrics", ("monitoring",), _ROLES)


def _network(definition: Definition) -> Iterator[Created]:
    network, path = definition.network, ("network",)
    if network.existing is not None:
        return
    yield from _of("the network", path, f"{_NETWORK}/virtualNetworks", f"{_NETWORK}/networkSecurityGroups")
    route = route_plan(definition)
    if route is not None and route.next_hop is not None:
        yield from _of("the route to the firewall", (*path, "next_hop"), f"{_NETWORK}/routeTables")
    if uses_nat_gateway(definition):
        yield from _of("the NAT gateway", (*path, "nat_gateway"), f"{_NETWORK}/natGateways", PUBLIC_ADDRESS)
    if kind_of(definition).peers_with_hub and network.hub is not None:
        peering = f"{_NETWORK}/virtualNetworks/virtualNetworkPeerings"
        yield from _of("the peering with the hub", (*path, "hub"), peering)
    if network.link_dns_zones and network.blob_dns_zone not in ("new", "none"):
        yield from _of("the link to the zone", (*path, "blob_dns_zone"), _LINK)


def _way_in(definition: Definition) -> Iterator[Created]:
    if definition.server.existing is not None:
        return
    access, path = kind_of(definition), ("network", "access")
    if access.is_public:
        types = (PUBLIC_ADDRESS, f"{_NETWORK}/networkSecurityGroups")
        yield from _of(PUBLIC_SERVER, path, *types)
    elif access.subnet is not None and definition.network.existing is None:
        yield from _of("the Bastion", path, f"{_NETWORK}/bastionHosts", PUBLIC_ADDRESS)


def _server(definition: Definition) -> Iterator[Created]:
    server, compute = definition.server, "Microsoft.Compute/virtualMachines"
    if server.existing is not None:
        return
    interface = f"{_NETWORK}/networkInterfaces"
    yield from _of("the CycleCloud server", ("server",), compute, f"{compute}/extensions", interface)
    if server.jumpbox is not None:
        yield from _of("the jumpbox", ("server", "jumpbox"), compute, interface)
    account = "Microsoft.Storage/storageAccounts"
    services = (f"{account}/blobServices", f"{account}/blobServices/containers")
    yield from _of("the locker", ("storage", "locker"), account, *services, f"{_NETWORK}/privateEndpoints")
    zone, path = definition.network.blob_dns_zone, ("network", "blob_dns_zone")
    if zone != "none":
        yield from _of("the name of the locker", path, f"{_NETWORK}/privateEndpoints/privateDnsZoneGroups")
    if zone == "new":
        yield from _of("the zone of the locker's endpoint", path, f"{_NETWORK}/privateDnsZones", _LINK)


def _storage(definition: Definition) -> Iterator[Created]:
    for each in wanted_by(definition):
        yield from _of(each.file_system.path, each.definition_path, *each.file_system.resource_types)


def _database(definition: Definition) -> Iterator[Created]:
    accounting = definition.slurm.accounting if definition.slurm else None
    if accounting is None or accounting.type != "new":
        return
    server = "Microsoft.DBforMySQL/flexibleServers"
    types = (server, f"{server}/configurations", f"{server}/databases")
    yield from _of("the accounting database", ("slurm", "accounting"), *types)
    path: Path = ("network", "mysql_dns_zone")
    if definition.network.mysql_dns_zone == "new":
        yield from _of("the zone of the database", path, f"{_NETWORK}/privateDnsZones", _LINK)
    elif definition.network.existing is None and definition.network.link_dns_zones:
        yield from _of("the link to the zone", path, _LINK)


def _logs(definition: Definition) -> Iterator[Created]:
    if definition.security.diagnostics_workspace_id is not None:
        path: Path = ("security", "diagnostics_workspace_id")
        yield from _of("the diagnostic settings", path, "Microsoft.Insights/diagnosticSettings")
