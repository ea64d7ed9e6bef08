"""The accounting database."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..definition.model.slurm import ExistingDatabase, NewDatabase, Slurm
from ..problems.problem import Problem
from .base import ClusterRule, Path, Site
from .figures import figures
from .network import host_fault
from .wording import quoted

_MYSQL = "https://learn.microsoft.com/azure/mysql/flexible-server/quickstart-create-portal"
_ACCOUNTING: Path = ("slurm", "accounting")


class DatabaseUser(ClusterRule):
    id = "E1001"
    summary = "The database user is not valid for MySQL on Azure."
    why = "Azure reserves some names for itself; others contain characters that slurmdbd.conf cannot hold."
    fix = "Use 1 to 32 letters, digits and underscores, beginning with a letter, for example slurmadmin."
    source = _MYSQL

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        accounting, rule = slurm.accounting, figures()["mysql"]
        if accounting is None:
            return
        user, path = accounting.user, (*_ACCOUNTING, "user")
        if isinstance(accounting, NewDatabase):
            if user.lower() in rule["users_refused"]:
                yield self.problem(path, f"the database user {quoted(user)} is reserved by Azure", "user: slurmadmin")
            elif not (len(user) <= rule["user_max"] and re.fullmatch(r"[A-Za-z]\w*", user, re.ASCII)):
                yield self.problem(
                    path,
                    f"the database user {quoted(user)} must be 1 to {rule['user_max']} letters, digits and underscores",
                )
        elif not (len(user) <= 80 and re.fullmatch(r"[\w.@-]+", user, re.ASCII)):
            yield self.problem(path, f"the database user {quoted(user)} has characters that slurmdbd.conf cannot hold")


class DatabaseName(ClusterRule):
    id = "E1002"
    summary = "The database name is not one that MySQL accepts without quotes."
    why = "slurmdbd puts it into its statements unchanged; MySQL allows 64 characters."
    fix = "Use 1 to 64 letters, digits and underscores."
    source = "https://dev.mysql.com/doc/refman/8.0/en/identifiers.html"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        accounting, longest = slurm.accounting, figures()["mysql"]["database_max"]
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
        fault = host_fault(accounting.host) if isinstance(accounting, ExistingDatabase) else None
        if fault and isinstance(accounting, ExistingDatabase):
            yield self.problem((*_ACCOUNTING, "host"), f"the database host {quoted(accounting.host)} {fault}")


class DatabaseSku(ClusterRule):
    id = "E1004"
    summary = "The SKU of the database server is not one of MySQL flexible servers."
    why = "Flexible servers come in the series B (burstable), D (general purpose) and E (memory optimized)."
    fix = "Choose for example Standard_B2ms, Standard_D2ads_v5 or Standard_E2ads_v5."
    source = "https://learn.microsoft.com/azure/mysql/flexible-server/concepts-service-tiers-storage"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        accounting = slurm.accounting
        if isinstance(accounting, NewDatabase) and not re.fullmatch(
            r"Standard_(?:B\d{1,2}ms|B[12]s|[DE]\d{1,3}[a-z]{1,4}_v\d)", accounting.sku
        ):
            text = f"the database SKU {quoted(accounting.sku)} is not one of MySQL flexible servers"
            yield self.problem((*_ACCOUNTING, "sku"), text, "sku: Standard_B2ms")
