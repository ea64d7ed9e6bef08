"""What deleting a deployment has to find, in which order, what it leaves, and what stays with the data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from .. import catalog
from .accounting import AccountingPlan
from .file_systems.base import FileSystem
from .file_systems.registry import by_kind
from .names import OWNER_TAG, ResourceNames
from .network import NetworkPlan
from .resources import MonitoringPlan, ResourceId, resource_id
from .server import ExistingServerPlan, ServerPlan
from .storage import LockerPlan


class CleanupPlan(Struct, frozen=True):
    """How the README finds what is the deployment's, whether it ever succeeded or not."""

    tag: str
    """Name of the tag whose value is the deployment to which a resource, or its resource group, belongs."""
    types: tuple[str, ...]
    """Resource types, each after those that use it, for a group that must stay."""
    types_without_data: tuple[str, ...]
    """Those of them whose resources all go when the data is kept."""
    names_without_data: tuple[tuple[str, tuple[str, ...]], ...]
    """(type, names) of what else goes then: other resources of these types serve the data."""
    data: tuple[str, ...]
    """What holds data, in words."""
    serves_data: tuple[str, ...]
    """What is kept because the data cannot be reached without it, in words."""
    other_subscriptions: tuple[str, ...]
    """Subscriptions in which its identities have roles, in lower case and sorted; without its own, where that is in
    the definition."""
    linked_zones: tuple[ResourceId, ...]
    """Existing DNS zones that keep their link to the network."""
    left: tuple[str, ...]
    """What was there before, in words."""


def cleanup_plan(
    network: NetworkPlan,
    mounts: Iterable[FileSystem],
    accounting: AccountingPlan | None,
    monitoring: MonitoringPlan | None,
    server: ServerPlan | ExistingServerPlan | None,
    locker: LockerPlan,
    names: ResourceNames,
    subscription_id: str | None,
) -> CleanupPlan:
    """How to delete the deployment with this server, which may be someone else's; without its subscription, any is."""
    existing = server if isinstance(server, ExistingServerPlan) else None
    own = server if isinstance(server, ServerPlan) else None
    addresses = (*((f"{own.vm_name}-ip",) if own else ()), f"{names.bastion}-ip")
    mounts = tuple(mounts)
    zones = (
        *((network.blob_dns_zone,) if network.links_dns_zone else ()),
        *((network.mysql_dns_zone,) if network.links_mysql_dns_zone else ()),
    )
    rule = monitoring.data_collection_rule_id if monitoring else None
    # Also types that the definition does not name any more: a deployment never deletes.
    in_order = [each for each in catalog.resource_types().values() if each.removal == "in order"]
    return CleanupPlan(
        tag=OWNER_TAG,
        types=tuple(each.name for each in in_order),
        types_without_data=tuple(each.name for each in in_order if each.data == "without"),
        names_without_data=(
            *((("Microsoft.Network/networkSecurityGroups", (f"{own.vm_name}-nsg",)),) if own else ()),
            ("Microsoft.Network/publicIPAddresses", addresses),
        ),
        data=tuple(_data(mounts, accounting, locker, own)),
        serves_data=tuple(_serves_data(network, accounting, locker, names)),
        other_subscriptions=_other_subscriptions(subscription_id, (network.vnet_id, locker.account_id, rule)),
        linked_zones=tuple(resource_id(zone) for zone in zones),
        left=tuple(_left(network, mounts, accounting, monitoring, existing)),
    )


def _other_subscriptions(own: str | None, given_roles: Iterable[str | None]) -> tuple[str, ...]:
    found = {resource_id(each).subscription.lower() for each in given_roles if each}
    return tuple(sorted(found - {(own or "").lower()}))


def _data(
    mounts: tuple[FileSystem, ...], accounting: AccountingPlan | None, locker: LockerPlan, server: ServerPlan | None
) -> Iterator[str]:
    yield from (f"`{mount.path}` ({mount.description})" for mount in mounts if mount.service is not None)
    if accounting is not None and accounting.is_new:
        yield f"the accounting database `{accounting.database}`"
    if locker.is_new:
        yield "the locker with all uploaded projects"
    if server is not None:
        yield "the server's data disk with CycleCloud's datastore and its backups"


def _serves_data(
    network: NetworkPlan, accounting: AccountingPlan | None, locker: LockerPlan, names: ResourceNames
) -> Iterator[str]:
    if network.is_new:
        nat = ", NAT gateway" if network.nat_gateway else ", route table" if _has_own_routes(network) else ""
        yield f"the network `{network.vnet_name}` with its subnets, security groups{nat} and peerings"
    else:
        yield f"the network `{network.vnet_name}`, which the deployment did not create"
    if locker.is_new:
        yield f"the private endpoint `{names.locker_endpoint}`"
    if locker.is_new and network.blob_dns_zone == "new":
        yield "the private DNS zone of the endpoint, with its link to the network"
    elif network.links_dns_zone:
        yield "the link of the existing DNS zone to the network"
    if network.links_mysql_dns_zone:
        yield "the link of the database's existing DNS zone to the network"
    if accounting is not None and accounting.is_new and network.mysql_dns_zone == "new":
        yield f"the private DNS zone `{names.database_zone}`, with its link to the network"


def _has_own_routes(network: NetworkPlan) -> bool:
    return network.route is not None and network.route.next_hop is not None


def _left(
    network: NetworkPlan,
    mounts: tuple[FileSystem, ...],
    accounting: AccountingPlan | None,
    monitoring: MonitoringPlan | None,
    existing_server: ExistingServerPlan | None,
) -> Iterator[str]:
    if existing_server is not None:
        yield f"the CycleCloud server `{existing_server.vm_name}` and its locker"
    if not network.is_new:
        yield f"the network `{network.vnet_name}` in `{network.vnet_resource_group}`"
    yield from (text for _, same in by_kind(mounts) for mount in same if (text := mount.left_behind))
    if accounting is not None and not accounting.is_new:
        yield f"the database `{accounting.database}` on `{accounting.host}`"
    if monitoring is not None:
        yield "the Azure Monitor workspace"
