"""What the deployment is in Azure: names, resource providers, what takes long, and what outlives the resource group."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from .. import catalog
from .access_kinds.base import Access
from .file_systems.base import FileSystem
from .file_systems.registry import by_kind
from .names import OWNER_TAG
from .types import (
    AccountingPlan,
    CleanupPlan,
    ExistingServerPlan,
    MonitoringPlan,
    NetworkPlan,
    ResourceId,
    ResourceNames,
)

_BASE_PROVIDERS = ("Microsoft.Compute", "Microsoft.ManagedIdentity", "Microsoft.Network", "Microsoft.Storage")
_RESOURCE_ID = re.compile(
    r"/subscriptions/([^/]+)/resourceGroups/([^/]+)/providers/[^/]+/[^/]+/([^/]+)/?", re.IGNORECASE
)


def resource_id(value: str) -> ResourceId:
    """The parts of the id of a top-level resource; ValueError where it is not one (the rules refuse it before)."""
    found = _RESOURCE_ID.fullmatch(value)
    if found is None:
        raise ValueError(f"not the resource id of a top-level resource: {value}")
    return ResourceId(found[1], found[2], found[3])


def resource_names(prefix: str, name: str, vnet_name: str, cloud: str) -> ResourceNames:
    """Names of what the deployment creates; `prefix` begins them, `name` is the deployment's.

    Azure takes 24 characters of a storage account, 63 of a database server, 80 of peerings and links; 13 of a stem's
    are the deployment's own.
    """
    letters = re.sub(r"[^a-z0-9]", "", name.lower())
    return ResourceNames(
        bastion=f"{prefix}-bastion",
        locker_endpoint=f"{prefix}-locker-endpoint",
        node_identity=f"{prefix}-nodes",
        dns_link=prefix,
        shared_dns_link_stem=f"{prefix[:60]}-",
        hub_peering_stem=f"{vnet_name[:66]}-",
        locker_account_stem=f"cf{letters[:9]}",
        database_server_stem=f"{prefix[:40].lower()}-db-",
        database_zone=f"{prefix.lower()}.private.{catalog.cloud(cloud)['mysql_domain']}",
    )


def providers(
    mounts: Iterable[FileSystem], accounting: AccountingPlan | None, monitoring: MonitoringPlan | None
) -> tuple[str, ...]:
    """Resource providers that must be registered in the subscription, sorted."""
    names = {*_BASE_PROVIDERS, *(mount.provider for mount in mounts if mount.provider)}
    if accounting is not None and accounting.is_new:
        names.add("Microsoft.DBforMySQL")
    if monitoring is not None:
        names |= {"Microsoft.Insights", "Microsoft.Monitor"}
    return tuple(sorted(names))


def slow_resources(mounts: Iterable[FileSystem], accounting: AccountingPlan | None, access: Access) -> tuple[str, ...]:
    """What takes longer to create than everything else."""
    of_mounts = dict.fromkeys(mount.slow_part for mount in mounts if mount.slow_part)
    database = "the MySQL server" if accounting is not None and accounting.is_new else None
    return (*of_mounts, *(part for part in (database, access.slow_part) if part is not None))


def cleanup_plan(
    network: NetworkPlan,
    mounts: Iterable[FileSystem],
    accounting: AccountingPlan | None,
    monitoring: MonitoringPlan | None,
    existing_server: ExistingServerPlan | None,
) -> CleanupPlan:
    """What must be deleted after the resource group, and what stays."""
    mounts = tuple(mounts)
    # Nodes have roles on what is not the deployment's only where they mount containers, send metrics or read the
    # locker of another server.
    nodes_have_roles = monitoring is not None or existing_server is not None or any(mount.grants for mount in mounts)
    principals = {"serverPrincipalId": existing_server is None, "nodePrincipalId": nodes_have_roles}
    zone = network.blob_dns_zone
    return CleanupPlan(
        tag=OWNER_TAG,
        principals=tuple(name for name, has_roles in principals.items() if has_roles),
        linked_zone=resource_id(zone) if zone not in ("new", "none") and network.is_new else None,
        left=tuple(_left(network, mounts, accounting, monitoring, existing_server)),
    )


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
