"""The names in Azure that are made from a definition, each with the key that its length and characters come from.

What a definition names itself, such as a storage account, has a rule of its own. A test compares this list with the
resources that Azure receives.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from .deployment import Plan
from .subnets import compute_name

Path = tuple[str | int, ...]
_NETWORK = "Microsoft.Network"
_ADDRESS = f"{_NETWORK}/publicIPAddresses"
_GROUPS = f"{_NETWORK}/networkSecurityGroups"
_INTERFACE = f"{_NETWORK}/networkInterfaces"
_MACHINE = "Microsoft.Compute/virtualMachines"
_ENDPOINT = f"{_NETWORK}/privateEndpoints"
_LINK = f"{_NETWORK}/privateDnsZones/virtualNetworkLinks"
UNIQUE = "x" * 13
"""Stands for what the deployment itself completes a stem with: `uniqueString()` has 13 letters and digits."""


class DerivedName(Struct, frozen=True):
    """One name; `path` is that of the key that it takes the longest part from."""

    type: str
    name: str
    path: Path


def derived_names(plan: Plan) -> Iterator[DerivedName]:
    """Every name of a resource that the deployment makes up."""
    azure = plan.resolved.get("azure")
    own_prefix = isinstance(azure, dict) and azure.get("prefix") is not None
    prefix: Path = ("azure", "prefix") if own_prefix else ("name",)
    for kind, name in (*_always(plan), *_way_in(plan), *_database(plan)):
        yield DerivedName(kind, name, prefix)
    if plan.network.is_new:
        yield from _of_network(plan, prefix)
    for mount in plan.all_mounts:
        endpoints = ((_ENDPOINT, name) for name in mount.endpoints)
        yield from (DerivedName(kind, name, prefix) for kind, name in (*mount.created_names, *endpoints))
    for module in plan.modules:
        yield DerivedName("Microsoft.Resources/deployments", f"{plan.nested_stem}-{module.symbol}", ("name",))


def _always(plan: Plan) -> Iterator[tuple[str, str]]:
    names = plan.names
    if plan.creates_resource_group:
        yield "Microsoft.Resources/resourceGroups", plan.resource_group
    yield "Microsoft.Resources/deployments", plan.deployment_name
    yield "Microsoft.ManagedIdentity/userAssignedIdentities", names.node_identity
    if plan.locker.is_new:
        yield _ENDPOINT, names.locker_endpoint
        if plan.locker.account_name is None:
            yield "Microsoft.Storage/storageAccounts", f"{names.locker_account_stem}{UNIQUE}"
    if plan.network.blob_dns_zone == "new":
        yield _LINK, names.dns_link
    if plan.network.links_dns_zone or plan.network.links_mysql_dns_zone:
        yield _LINK, f"{names.shared_dns_link_stem}{UNIQUE}"


def _way_in(plan: Plan) -> Iterator[tuple[str, str]]:
    if plan.access.creates_bastion:
        yield f"{_NETWORK}/bastionHosts", plan.names.bastion
        yield _ADDRESS, f"{plan.names.bastion}-ip"
    if plan.server is None:
        return
    jumpbox = plan.server.jumpbox
    for machine in (plan.server.vm_name, *([jumpbox.vm_name] if jumpbox else [])):
        yield _MACHINE, machine
        yield _INTERFACE, f"{machine}-nic"
    if plan.access.is_public:
        yield _ADDRESS, f"{plan.server.vm_name}-ip"
        yield _GROUPS, f"{plan.server.vm_name}-nsg"


def _database(plan: Plan) -> Iterator[tuple[str, str]]:
    accounting = plan.slurm.accounting if plan.slurm else None
    if accounting is None or not plan.creates_database:
        return
    server = "Microsoft.DBforMySQL/flexibleServers"
    if accounting.server_name is None:
        yield server, f"{plan.names.database_server_stem}{UNIQUE}"
    yield f"{server}/databases", accounting.database
    if plan.network.mysql_dns_zone == "new":
        yield f"{_NETWORK}/privateDnsZones", plan.names.database_zone
        yield _LINK, plan.names.dns_link


def _of_network(plan: Plan, prefix: Path) -> Iterator[DerivedName]:
    network, vnet = plan.network, f"{_NETWORK}/virtualNetworks"
    yield DerivedName(vnet, network.vnet_name, prefix)
    if network.nat_gateway:
        yield DerivedName(f"{_NETWORK}/natGateways", f"{network.vnet_name}-nat", prefix)
        yield DerivedName(_ADDRESS, f"{network.vnet_name}-nat-ip", prefix)
    if network.route is not None and network.route.next_hop is not None:
        yield DerivedName(f"{_NETWORK}/routeTables", f"{network.vnet_name}-routes", prefix)
    if network.hub is not None:
        yield DerivedName(f"{vnet}/virtualNetworkPeerings", f"{plan.names.hub_peering_stem}{UNIQUE}", prefix)
    further = [compute_name(subnet.role) for subnet in network.subnets if compute_name(subnet.role) is not None]
    for subnet in network.subnets:
        name = compute_name(subnet.role)
        path: Path = prefix if name is None else ("network", "compute_subnets", further.index(name), "name")
        yield DerivedName(f"{vnet}/subnets", subnet.name, path)
        yield DerivedName(_GROUPS, f"{network.vnet_name}-{subnet.role}-nsg", path)
        yield from (DerivedName(f"{_GROUPS}/securityRules", rule.name, path) for rule in subnet.rules)
