"""What the deployment is in Azure: names, resource providers, and what takes long."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from .. import catalog
from .access import Access
from .accounting import AccountingPlan
from .created_types import Created
from .file_systems.base import FileSystem
from .image_terms import ImageTerms
from .names import ResourceNames

_RESOURCE_ID = re.compile(
    r"/subscriptions/([^/]+)/resourceGroups/([^/]+)/providers/[^/]+/[^/]+/([^/]+)/?", re.IGNORECASE
)


class ResourceId(Struct, frozen=True):
    """The parts of the id of a top-level resource, of which scopes are made."""

    subscription: str
    resource_group: str
    name: str


class MonitoringPlan(Struct, frozen=True):
    """Metrics into an existing Azure Monitor workspace."""

    workspace_id: str
    ingestion_endpoint: str
    data_collection_rule_id: str


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
        database_zone=_zone_name(prefix.lower(), f".private.{catalog.cloud(cloud).mysql_domain}"),
    )


def _zone_name(label: str, end: str) -> str:
    """A private DNS zone's name; Azure takes 63 characters of it, and any label before the service's own domain."""
    return label[: catalog.limits().names.private_dns_zone.value - len(end)].rstrip("-") + end


def providers(
    created: Iterable[Created], monitoring: MonitoringPlan | None, terms: tuple[ImageTerms, ...]
) -> tuple[str, ...]:
    """Resource providers that must be registered in the subscription, sorted."""
    of_types = {catalog.resource_type(each.type).namespace for each in created}
    names = {*catalog.providers_always_needed(), *(of_types - {*catalog.providers_of_azure()})}
    if terms:
        names.add("Microsoft.MarketplaceOrdering")
    if monitoring is not None:
        names.add("Microsoft.Monitor")
    return tuple(sorted(names))


def slow_resources(mounts: Iterable[FileSystem], accounting: AccountingPlan | None, access: Access) -> tuple[str, ...]:
    """What takes longer to create than everything else."""
    of_mounts = dict.fromkeys(mount.slow_part for mount in mounts if mount.slow_part)
    database = "the MySQL server" if accounting is not None and accounting.is_new else None
    return (*of_mounts, *(part for part in (database, access.slow_part) if part is not None))
