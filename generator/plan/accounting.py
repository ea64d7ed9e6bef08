"""slurmdbd's database: what a new MySQL flexible server is, or where the existing one is."""

from __future__ import annotations

from msgspec import Struct

from .. import catalog
from ..catalog.azure_facts import MySqlSize
from ..catalog.releases import SlurmProject
from ..definition.model.slurm import ExistingDatabase, NewDatabase, Slurm
from . import names


class AccountingPlan(Struct, frozen=True):
    """slurmdbd's database: a new MySQL flexible server with private access, or an existing one."""

    is_new: bool
    server_name: str | None
    """Name of the new server; None = derived from subscription and resource group by the deployment."""
    sku: str | None
    tier: str | None
    """Service tier of the new server, which its size decides: `Burstable`, `GeneralPurpose` or `MemoryOptimized`."""
    max_iops: int | None
    """The most that the size supports; it rises with the storage up to that."""
    storage_gib: int | None
    version: str | None
    host: str | None
    """Host name or address of an existing server; for a new one the fact `databaseHost` holds it."""
    user: str
    database: str
    certificate: str | None = None
    """Of the authority that has signed an existing server's certificate, in PEM; None: those of Azure."""
    certificate_url: str | None = None
    """Where the scheduler downloads the certificate of Azure's authority; None: cyclecloud-slurm brings it."""


def accounting_plan(
    slurm: Slurm, cluster_name: str, project: SlurmProject, *, has_gpus: bool, certificate: str | None = None
) -> AccountingPlan | None:
    accounting = slurm.accounting
    if accounting is None:
        return None
    database = accounting.database or names.database_name(cluster_name)
    authority = str(catalog.mysql().authority.url)
    url = None if project.takes_certificate else authority
    if isinstance(accounting, ExistingDatabase):
        return AccountingPlan(
            False, None, None, None, None, None, None, accounting.host, accounting.user, database, certificate, url
        )
    sku = mysql_sku(accounting, has_gpus=has_gpus)
    return AccountingPlan(
        True,
        accounting.server_name,
        sku,
        mysql_tier(sku),
        size.max_iops if (size := mysql_sizes().get(sku)) else None,
        accounting.storage_gib,
        accounting.version,
        None,
        accounting.user,
        database,
        certificate_url=url,
    )


def mysql_sku(accounting: NewDatabase, *, has_gpus: bool) -> str:
    """Compute size as the definition names it; a burstable one is no default for a cluster with GPUs."""
    return accounting.sku or (catalog.mysql().defaults.sku_with_gpus if has_gpus else catalog.mysql().defaults.sku)


def mysql_tier(sku: str) -> str:
    """Service tier of a compute size; total, also for one that the rules refuse."""
    size = mysql_sizes().get(sku)
    return size.tier if size else "GeneralPurpose"


def mysql_sizes() -> dict[str, MySqlSize]:
    """The compute sizes that flexible servers come in."""
    return catalog.mysql().compute_sizes.sizes
