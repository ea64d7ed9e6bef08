"""NFS: disks of the scheduler that it exports, and servers that someone else runs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .. import catalog
from ..plan.file_systems.builtin_nfs import BuiltinNfs
from ..plan.file_systems.existing_server import ExistingServer
from ..plan.file_systems.registry import of_kind
from ..problems.problem import Problem
from .base import DefinitionRule, Site
from .figures import figures
from .network import host_fault
from .wording import partitions, quoted


class BuiltinSize(DefinitionRule):
    id = "E0603"
    summary = "A built-in NFS disk has a size that the cluster template refuses."
    why = "The template accepts 10 to 10240 GB, and the size cannot be changed after the first start."
    fix = "Choose 10 to 10240 GB, or NetApp Files for more."
    source = "https://github.com/Azure/cyclecloud-slurm/blob/4.0.9/templates/slurm.txt"

    def check(self, site: Site) -> Iterator[Problem]:
        rule = catalog.file_systems().nfs.template
        for asked, disk in of_kind(site.definition, BuiltinNfs):
            if not rule.min_gb <= disk.size_gib <= rule.max_gb:
                text = (
                    f"the built-in NFS disk of {disk.path} has {rule.min_gb} to {rule.max_gb} GB, not "
                    f"{disk.size_gib} GB"
                )
                yield self.problem((*asked.definition_path, "size_gb"), text)


class BusyBuiltinNfs(DefinitionRule):
    id = "I0609"
    summary = "Many nodes share home directories on one disk of the scheduler."
    why = "The scheduler's network card and disk serve all of them, beside slurmctld itself."
    fix = "Use NetApp Files for storage.home, or keep data and containers on another mount."
    source = "https://learn.microsoft.com/azure/cyclecloud/slurm-4"

    def check(self, site: Site) -> Iterator[Problem]:
        total, many = (
            sum(partition.most_nodes for _, partition in partitions(site)),
            figures().builtin_nfs_nodes.value,
        )
        home = [disk for _, disk in of_kind(site.definition, BuiltinNfs) if disk.name == "home"]
        if home and total > many:
            text = f"/shared is one disk of the scheduler, and up to {total} nodes use it"
            yield self.problem(("storage", "home"), text, "home: {type: anf, size_tib: 4}", on_key=True)


_EXPORT = re.compile(r"/|(?:/[\w.@%+=~-]+)+/?", re.ASCII)


class ServerAddress(DefinitionRule):
    id = "E0613"
    summary = "The address of a file server is not a host name or IPv4 address."
    why = "It goes into the mount command unchanged; the exported path is a key of its own."
    fix = "Write the host alone, and the path in export_path."
    source = "https://man7.org/linux/man-pages/man5/nfs.5.html"

    def check(self, site: Site) -> Iterator[Problem]:
        for asked, server in of_kind(site.definition, ExistingServer):
            fault = host_fault(server.address)
            if fault:
                text = f"file system {quoted(server.path)}: the address {quoted(server.address)} {fault}"
                yield self.problem((*asked.definition_path, "address"), text)


class ExportPath(DefinitionRule):
    id = "E0615"
    summary = "An exported path is not an absolute path."
    why = "NFS and Lustre clients mount absolute paths without spaces."
    fix = "Write the path from the server's root, for example /export/home."
    source = "https://man7.org/linux/man-pages/man5/exports.5.html"

    def check(self, site: Site) -> Iterator[Problem]:
        for asked, server in of_kind(site.definition, ExistingServer):
            path = asked.section.export_path
            if not (len(path) <= 1024 and _EXPORT.fullmatch(path)):
                text = (
                    f"file system {quoted(server.path)}: the exported path {quoted(path)} is not an absolute "
                    "path without spaces"
                )
                yield self.problem((*asked.definition_path, "export_path"), text)
