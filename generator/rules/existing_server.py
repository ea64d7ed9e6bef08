"""File servers that someone else runs: addresses and exported paths."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..plan.file_systems.existing_server import ExistingServer
from ..plan.file_systems.registry import of_kind
from ..problems.problem import Problem
from .base import DefinitionRule, Site
from .network import host_fault
from .wording import quoted

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
