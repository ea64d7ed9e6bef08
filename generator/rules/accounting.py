"""The accounting database."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .. import catalog
from ..definition.model.slurm import ExistingDatabase, NewDatabase, Slurm
from ..plan.accounting import mysql_sizes, mysql_sku, mysql_tier
from ..problems.problem import Problem
from .base import ClusterRule, Path, Site, meant, quoted
from .network import host_fault
from .releases import project_row

_MYSQL = "https://learn.microsoft.com/azure/mysql/flexible-server/quickstart-create-portal"
_TIERS = "https://learn.microsoft.com/azure/mysql/flexible-server/concepts-service-tiers-storage"
_VERSIONS = "https://learn.microsoft.com/azure/mysql/concepts-version-policy"
_ACCOUNTING: Path = ("slurm", "accounting")


class DatabaseUser(ClusterRule):
    id = "E1001"
    summary = "The database user is not valid for MySQL on Azure."
    why = "Azure reserves some names for itself; others contain characters that slurmdbd.conf cannot hold."
    fix = "Use 1 to 32 letters, digits and underscores, beginning with a letter, for example slurmadmin."
    source = _MYSQL

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        accounting, rule = slurm.accounting, catalog.rule_figures().mysql
        if accounting is None:
            return
        user, path = accounting.user, (*_ACCOUNTING, "user")
        if isinstance(accounting, NewDatabase):
            if user.lower() in rule.users_refused:
                yield self.problem(path, f"the database user {quoted(user)} is reserved by Azure", "user: slurmadmin")
            elif not (len(user) <= rule.user_max and re.fullmatch(r"[A-Za-z]\w*", user, re.ASCII)):
                yield self.problem(
                    path,
                    f"the database user {quoted(user)} must be 1 to {rule.user_max} letters, digits and underscores",
                )
        elif not (len(user) <= 80 and re.fullmatch(r"[\w.@-]+", user, re.ASCII)):
            yield self.problem(path, f"the database user {quoted(user)} has characters that slurmdbd.conf cannot hold")


class DatabaseCertificate(ClusterRule):
    id = "E1014"
    summary = "The certificate of the accounting database's authority cannot be used."
    why = "slurmdbd connects to the database only if this certificate proves that it is the right one."
    fix = (
        "Write the certificate in PEM (-----BEGIN CERTIFICATE-----), or the path of such a file beside the definition."
    )
    source = "https://github.com/Azure/cyclecloud-slurm/blob/4.0.9/azure-slurm-install/install.py"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        if site.certificate is not None and site.certificate.fault is not None:
            given = getattr(slurm.accounting, "certificate", None) or ""
            shown = "the certificate" if "-----" in given else f"the certificate {quoted(given)}"
            yield self.problem((*_ACCOUNTING, "certificate"), f"{shown} {site.certificate.fault}")


class CertificateOfProject(ClusterRule):
    id = "E1028"
    summary = "The cyclecloud-slurm version does not take a certificate of the accounting database's authority."
    why = (
        "Before 4.0.8 cyclecloud-slurm reads the address of a certificate and nothing else: slurmdbd would connect "
        "without the one of the definition."
    )
    fix = "Choose CycleCloud 8.9.0 or newer, or leave the certificate out if Azure Database for MySQL serves."
    source = "https://github.com/Azure/cyclecloud-slurm/blob/4.0.7/azure-slurm-install/install.py"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        project = project_row(site)
        given = isinstance(slurm.accounting, ExistingDatabase) and slurm.accounting.certificate is not None
        if given and project is not None and not project.takes_certificate:
            text = f"cyclecloud-slurm {project.version} does not take a certificate of the database's authority"
            hint = f"release: {catalog.default_versions().cyclecloud}"
            yield self.problem((*_ACCOUNTING, "certificate"), text, hint, on_key=True)


class DatabaseName(ClusterRule):
    id = "E1002"
    summary = "The database name is not one that MySQL accepts without quotes."
    why = "slurmdbd puts it into its statements unchanged; MySQL allows 64 characters."
    fix = "Use 1 to 64 letters, digits and underscores."
    source = "https://dev.mysql.com/doc/refman/8.0/en/identifiers.html"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        accounting, longest = slurm.accounting, catalog.rule_figures().mysql.database_max
        name = accounting.database if accounting is not None else None
        if name is None:
            return
        if not (len(name) <= longest and re.fullmatch(r"[A-Za-z0-9_]+", name)) or name.isdecimal():
            near = re.sub(r"\W+", "_", name[:100], flags=re.ASCII).strip("_")[:longest]
            text = f"the database name {quoted(name)} must be 1 to {longest} letters, digits and underscores"
            yield self.problem(
                (*_ACCOUNTING, "database"),
                text,
                f"for example {near}" if near and not near.isdecimal() and near != name else None,
            )


class DatabaseHost(ClusterRule):
    id = "E1003"
    summary = "The host of the existing database is not a host name or IPv4 address."
    why = "slurmdbd connects to it unchanged; port and scheme do not belong there."
    fix = "Write the host alone, for example mysql.example.com."
    source = "https://slurm.schedmd.com/slurmdbd.conf.html#OPT_StorageHost"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        accounting = slurm.accounting
        if isinstance(accounting, ExistingDatabase) and (fault := host_fault(accounting.host)):
            yield self.problem((*_ACCOUNTING, "host"), f"the database host {quoted(accounting.host)} {fault}")


class _NewDatabaseRule(ClusterRule):
    """A rule about the database that the deployment creates."""

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        if isinstance(slurm.accounting, NewDatabase):
            has_gpus = any(site.vm_size(size).gpu_count for partition in slurm.partitions for size in partition.sizes)
            yield from self.check_database(slurm.accounting, has_gpus=has_gpus)

    def check_database(self, database: NewDatabase, *, has_gpus: bool) -> Iterator[Problem]:
        raise NotImplementedError


class DatabaseSku(_NewDatabaseRule):
    id = "E1004"
    summary = "The SKU of the database server is not one of MySQL flexible servers."
    why = "Azure refuses every size that is not in its list, also those of series that other sizes of the list are in."
    fix = "Choose for example Standard_B2ms, Standard_D2ads_v5 or Standard_E2ads_v5; the page has the list."
    source = _TIERS

    def check_database(self, database: NewDatabase, *, has_gpus: bool) -> Iterator[Problem]:
        if database.sku is not None and database.sku not in mysql_sizes():
            text = f"the database SKU {quoted(database.sku)} is not one of MySQL flexible servers"
            default = mysql_sku(NewDatabase(type="new"), has_gpus=has_gpus)
            hint = meant(database.sku, tuple(mysql_sizes())) or f"sku: {default}"
            yield self.problem((*_ACCOUNTING, "sku"), text, hint)


class BurstableDatabase(_NewDatabaseRule):
    id = "W1017"
    summary = "The accounting database of a cluster with GPUs is of a burstable size."
    why = (
        "A burstable server that has used up its credits is throttled, and Slurm waits for it with every job. "
        "Microsoft calls these sizes unfit for production."
    )
    fix = "Remove sku, or choose a size of the series D or E, for example Standard_D2ads_v5."
    source = _TIERS

    def check_database(self, database: NewDatabase, *, has_gpus: bool) -> Iterator[Problem]:
        if has_gpus and database.sku is not None and mysql_tier(database.sku) == "Burstable":
            text = f"the accounting database of a cluster with GPUs has the burstable size {database.sku}"
            default = mysql_sku(NewDatabase(type="new"), has_gpus=True)
            yield self.problem((*_ACCOUNTING, "sku"), text, f"sku: {default}")


class DatabaseStorage(_NewDatabaseRule):
    id = "E1016"
    summary = "The database server cannot have as much storage."
    why = "Burstable and general-purpose servers have at most 16 TiB, memory-optimized ones 32 TiB."
    fix = "Choose less storage, or a size of the series E."
    source = _TIERS

    def check_database(self, database: NewDatabase, *, has_gpus: bool) -> Iterator[Problem]:
        sku = mysql_sku(database, has_gpus=has_gpus)
        most = catalog.mysql().storage.max_by_tier[mysql_tier(sku)]
        if database.storage_gib > most:
            text = f"the database size {sku} has {most} GiB of storage at most, not {database.storage_gib} GiB"
            yield self.problem((*_ACCOUNTING, "storage_gib"), text, f"storage_gib: {most}")


class DatabaseVersion(_NewDatabaseRule):
    id = "E1006"
    summary = "The MySQL version is not one that flexible servers come in."
    why = "Azure takes a few versions by exactly these names; the last part of 8.0.21 stands for every later 8.0."
    fix = "Remove version, or choose one that the message names."
    source = _VERSIONS

    def check_database(self, database: NewDatabase, *, has_gpus: bool) -> Iterator[Problem]:
        known = tuple(catalog.support().mysql.versions)
        if database.version not in known:
            text = f"{quoted(database.version)} is not a version of MySQL flexible servers"
            yield self.problem((*_ACCOUNTING, "version"), text, f"allowed: {', '.join(known)}")


class DatabaseOutOfSupport(_NewDatabaseRule):
    id = "W1007"
    summary = "The MySQL version is out of standard support."
    why = "Azure bills extended support for it by the vCPU and hour, and creates no new servers of it in the end."
    fix = "Remove version, or upgrade the server that has it, as operations.md of the deployment says."
    source = _VERSIONS

    def check_database(self, database: NewDatabase, *, has_gpus: bool) -> Iterator[Problem]:
        end = catalog.support().mysql.versions.get(database.version)
        if catalog.out_of_support(end):
            text = f"the standard support of MySQL {database.version} ended on {end}"
            yield self.problem((*_ACCOUNTING, "version"), text, f'version: "{NewDatabase(type="new").version}"')
