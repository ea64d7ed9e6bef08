"""The network plan: which subnets a definition needs, where they lie, and the way in."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Network

from .. import catalog
from ..definition.model.definition import Definition
from ..definition.model.storage import LustreMount, NetApp
from . import names
from .asked import HUB_VNET, asked_or
from .subnets import ROLES, Layout, parse_network, place_subnets
from .types import HubPlan, NetworkPlan, SubnetPlan, SubnetRole

SUBNET_NAMES: dict[SubnetRole, str] = {
    "server": "server",
    "compute": "compute",
    "endpoints": "endpoints",
    "bastion": "AzureBastionSubnet",
    "netapp": "netapp",
    "lustre": "lustre",
    "database": "database",
}
DELEGATIONS: dict[SubnetRole, str] = {
    "netapp": "Microsoft.Netapp/volumes",
    "database": "Microsoft.DBforMySQL/flexibleServers",
}
# The hosts of Managed Lustre call Azure over the internet too.
_USES_NAT: frozenset[SubnetRole] = frozenset({"server", "compute", "lustre"})


def needed_roles(definition: Definition) -> tuple[SubnetRole, ...]:
    """The subnets that this definition needs."""
    storage, slurm = definition.storage, definition.slurm
    file_systems = (storage.home, storage.sched, *storage.mounts)
    wanted: dict[SubnetRole, bool] = {
        "server": True,
        "compute": True,
        "endpoints": True,
        "bastion": definition.network.access == "bastion" and definition.network.existing is None,
        "netapp": any(isinstance(file_system, NetApp) for file_system in file_systems),
        "lustre": any(isinstance(mount, LustreMount) for mount in storage.mounts),
        "database": slurm.accounting is not None and slurm.accounting.type == "new",
    }
    return tuple(role for role in ROLES if wanted[role])


def lustre_prefix_length(definition: Definition) -> int:
    """Prefix length of the Lustre subnet for the largest new file system; one bit more beyond the published table."""
    capacity_tib = max(
        (mount.size_tib for mount in definition.storage.mounts if isinstance(mount, LustreMount)), default=0
    )
    rows = catalog.file_systems()["amlfs_subnet_prefix"]["rows"]
    return int(next((row["prefix"] for row in rows if capacity_tib <= row["max_tib"]), rows[-1]["prefix"] - 1))


def layout_of(definition: Definition) -> Layout | None:
    """Subnets of a new network; None for an existing network or an address space that is not a CIDR."""
    space = parse_network(definition.network.address_space)
    if definition.network.existing is not None or space is None:
        return None
    return place_subnets(space, needed_roles(definition), given_prefixes(definition), lustre_prefix_length(definition))


def given_prefixes(definition: Definition) -> Mapping[SubnetRole, IPv4Network]:
    """The prefixes that the definition sets and that are CIDRs."""
    texts = {role: getattr(definition.network.subnets, role) for role in ROLES}
    parsed = {role: parse_network(text) for role, text in texts.items() if text is not None}
    return {role: prefix for role, prefix in parsed.items() if prefix is not None}


def network_plan(definition: Definition, layout: Layout | None) -> NetworkPlan:
    """The network as the Bicep renderer prints it."""
    network = definition.network
    existing = network.existing
    if existing is not None:
        vnet_group, vnet_name = names.vnet_parts(existing.vnet_id)
    else:
        vnet_group, vnet_name = names.resource_group(definition), f"{names.prefix(definition)}-vnet"
    hub = None
    # An existing network is left as it is, its peerings included.
    if existing is None and network.access == "hub" and network.hub is not None:
        hub = HubPlan(
            asked_or(network.hub.vnet_id, HUB_VNET), network.hub.use_remote_gateway, tuple(network.hub.address_spaces)
        )
    return NetworkPlan(
        is_new=existing is None,
        vnet_name=vnet_name,
        vnet_resource_group=vnet_group,
        vnet_id=existing.vnet_id if existing else None,
        address_space=str(layout.address_space) if layout else None,
        subnets=_new_subnets(layout, network.nat_gateway) if layout else _existing_subnets(definition),
        access=network.access,
        allowed_sources=tuple(network.allowed_sources) if network.access == "public" else (),
        hub=hub,
        nat_gateway=network.nat_gateway and existing is None,
        blob_dns_zone=network.blob_dns_zone,
    )


def _new_subnets(layout: Layout, nat_gateway: bool) -> tuple[SubnetPlan, ...]:
    return tuple(
        SubnetPlan(
            role, SUBNET_NAMES[role], str(prefix), DELEGATIONS.get(role), uses_nat=nat_gateway and role in _USES_NAT
        )
        for role, prefix in layout.subnets.items()
    )


def _existing_subnets(definition: Definition) -> tuple[SubnetPlan, ...]:
    existing = definition.network.existing
    if existing is None:
        return ()
    names_by_role = existing.subnets.model_dump()
    names_by_role["endpoints"] = names_by_role["endpoints"] or names_by_role["server"]
    return tuple(
        SubnetPlan(role, names_by_role[role], None, DELEGATIONS.get(role), uses_nat=False)
        for role in needed_roles(definition)
        if names_by_role.get(role)
    )
