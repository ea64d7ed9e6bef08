"""`cycleforge project list`."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import TYPE_CHECKING

from ..errors import OK, CannotRead
from ..words.sizes import size
from ..words.terminal import columns, printable
from . import common
from .project_text import errors_json, packaged, print_failures, total_bytes

if TYPE_CHECKING:
    from ..projects.find import Located
    from ..projects.package import Package
    from ..projects.state import Release


def run(args: Namespace) -> int:
    """Show the projects; one that cannot be read does not hide the others."""
    from ..projects.find import all_shipped, projects_here
    from ..projects.state import release

    done, failures = packaged([*all_shipped(), *projects_here()])
    rows = []
    for found, package in done:
        try:
            rows.append((found, package, release(found, package.project)))
        except CannotRead as error:
            failures.append(error)
    if args.json:
        common.emit_json(
            {"ok": not failures, "projects": [_row(*row) for row in rows], "errors": errors_json(failures)}
        )
    else:
        head = ("PROJECT", "VERSION", "TYPE", "SPECS", "FILES", "SIZE", "STATE", "FOLDER")
        common.emit(columns([head, *(_cells(*row) for row in rows)]))
        print_failures(failures)
        for found, package, each in rows:
            if each.state == "changed":
                word = package.project.name if found.is_shipped else found.folder
                print(f"  hint: cycleforge project bump {word}", file=sys.stderr)
    return CannotRead.exit_code if failures else OK


def _cells(found: Located, package: Package, state: Release) -> tuple[object, ...]:
    project = package.project
    return (
        project.name,
        project.version,
        project.type,
        ", ".join(project.specs),
        len(package.files),
        size(total_bytes(package.files)),
        "changed, bump it" if state.state == "changed" else state.state,
        "of CycleForge" if found.is_shipped else printable(str(found.folder)),
    )


def _row(found: Located, package: Package, state: Release) -> dict[str, object]:
    project = package.project
    return {
        "name": project.name,
        "version": project.version,
        "type": project.type,
        "specs": list(project.specs),
        "files": len(package.files),
        "bytes": total_bytes(package.files),
        "state": state.state,
        "shipped": found.is_shipped,
        "folder": str(found.folder),
    }
