"""What the deployment uses of Azure: resource providers, what takes long, and what outlives the resource group."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from .types import AccountingPlan, CleanupPlan, MonitoringPlan, MountPlan, NetworkPlan, ResourceId

_BASE_PROVIDERS = ("Microsoft.Compute", "Microsoft.ManagedIdentity", "Microsoft.Network", "Microsoft.Storage")
_PROVIDERS = {"anf": "Microsoft.NetApp", "amlfs": "Microsoft.StorageCache"}
_RESOURCE_ID = re.compile(
    r"/subscriptions/([^/]+)/resourceGroups/([^/]+)/providers/[^/]+/[^/]+/([^/]+)/?", re.IGNORECASE
)


def resource_id(value: str) -> ResourceId:
    """The parts of the id of a top-level resource; ValueError where it is not one (the rules refuse it before)."""
    found = _RESOURCE_ID.fullmatch(value)
    if found is None:
        raise ValueError(f"not the resource id of a top-level resource: {value}")
    return ResourceId(found[1], found[2], found[3])


def providers(
    mounts: Iterable[MountPlan], accounting: AccountingPlan | None, monitoring: MonitoringPlan | None
) -> tuple[str, ...]:
    """Resource providers that must be registered in the subscription, sorted."""
    names = {*_BASE_PROVIDERS, *(_PROVIDERS[mount.kind] for mount in mounts if mount.kind in _PROVIDERS)}
    if accounting is not None and accounting.is_new:
        names.add("Microsoft.DBforMySQL")
    if monitoring is not None:
        names |= {"Microsoft.Insights", "Microsoft.Monitor"}
    return tuple(sorted(names))


def slow_resources(
    mounts: Iterable[MountPlan], accounting: AccountingPlan | None, network: NetworkPlan
) -> tuple[str, ...]:
    """What takes longer to create than everything else."""
    wanted = (
        ("Azure Managed Lustre", any(mount.kind == "amlfs" for mount in mounts)),
        ("the MySQL server", accounting is not None and accounting.is_new),
        ("Azure Bastion", network.access == "bastion" and network.is_new),
    )
    return tuple(name for name, is_created in wanted if is_created)


def cleanup_plan(
    network: NetworkPlan,
    mounts: Iterable[MountPlan],
    accounting: AccountingPlan | None,
    monitoring: MonitoringPlan | None,
) -> CleanupPlan:
    """What has to be deleted after the resource group, and what stays."""
    mounts = tuple(mounts)
    # Nodes have roles on what is not the deployment's only where they mount containers or send metrics.
    nodes_have_roles = monitoring is not None or any(mount.kind == "blob" for mount in mounts)
    zone = network.blob_dns_zone
    return CleanupPlan(
        principals=("serverPrincipalId", *(("nodePrincipalId",) if nodes_have_roles else ())),
        linked_zone=resource_id(zone) if zone not in ("new", "none") and network.is_new else None,
        left=tuple(_left(network, mounts, accounting, monitoring)),
    )


def _left(
    network: NetworkPlan,
    mounts: tuple[MountPlan, ...],
    accounting: AccountingPlan | None,
    monitoring: MonitoringPlan | None,
) -> Iterator[str]:
    if not network.is_new:
        yield f"the network `{network.vnet_name}` in `{network.vnet_resource_group}`"
    yield from (f"the existing file system of `{mount.path}`" for mount in mounts if mount.kind == "existing")
    yield from (f"the storage account `{mount.storage_account}`" for mount in mounts if mount.kind == "blob")
    if accounting is not None and not accounting.is_new:
        yield f"the database `{accounting.database}` on `{accounting.host}`"
    if monitoring is not None:
        yield "the Azure Monitor workspace"
