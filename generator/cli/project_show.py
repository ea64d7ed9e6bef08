"""`cycleforge project list` and `info`, and what all actions print alike."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from msgspec import Struct, to_builtins

from ..errors import OK, CannotRead
from ..words.counts import counted, first, size
from ..words.terminal import columns, printable
from . import common

if TYPE_CHECKING:
    from ..blobs import Blob
    from ..projects.local import Located
    from ..projects.lock import Release
    from ..projects.package import Package
    from ..projects.payload import Payload

_SHOWN = 5
"""Names that a line shows before it only counts."""
_RUN = (".bat", ".cmd", ".exe", ".sh")
"""What a node runs of `scripts/`, by name. Source: scripts/README.txt of any `cyclecloud project init`."""


class _Spec(Struct, frozen=True):
    name: str
    scripts: tuple[str, ...]
    other_files: int
    bytes: int
    run_list: tuple[str, ...]


class _Blob(Struct, frozen=True):
    path: str
    bytes: int | None
    md5: str | None
    state: str


# ---------------------------------------------------------------- list


def show_all(args: Namespace) -> int:
    """Show the projects; one that cannot be read does not hide the others."""
    from ..projects.local import all_shipped, projects_here
    from ..projects.lock import release

    done, failures = packaged([*all_shipped(), *projects_here()])
    rows = []
    for found, package in done:
        try:
            rows.append((found, package, release(found, package.project)))
        except CannotRead as error:
            failures.append(error)
    if args.json:
        common.emit_json(
            {"ok": not failures, "projects": [_list_row(*row) for row in rows], "errors": errors_json(failures)}
        )
    else:
        head = ("PROJECT", "VERSION", "TYPE", "SPECS", "FILES", "SIZE", "STATE", "FOLDER")
        common.emit(columns([head, *(_list_cells(*row) for row in rows)]))
        print_failures(failures)
        for found, package, each in rows:
            if each.state == "changed":
                word = package.project.name if found.is_shipped else found.folder
                common.say(f"  hint: cycleforge project bump {word}")
    return CannotRead.exit_code if failures else OK


def _list_cells(found: Located, package: Package, state: Release) -> tuple[object, ...]:
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


def _list_row(found: Located, package: Package, state: Release) -> dict[str, object]:
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


# ---------------------------------------------------------------- info


def show_one(args: Namespace) -> int:
    """Show one project."""
    from ..projects.local import find_project
    from ..projects.lock import release
    from ..projects.package import package_of

    found = find_project(args.name)
    package = package_of(found)
    state = release(found, package.project)
    if args.json:
        common.emit_json(_info_json(found, package, state))
    else:
        common.emit("\n".join(_info_lines(found, package, state)))
    return OK


def _info_json(found: Located, package: Package, state: Release) -> dict[str, object]:
    project = package.project
    return {
        "name": project.name,
        "label": project.label,
        "version": project.version,
        "type": project.type,
        "folder": str(found.folder),
        "shipped": found.is_shipped,
        "digest": state.digest,
        "state": state.state,
        "released": dict(state.versions),
        "specs": [to_builtins(spec) for spec in _specs(package)],
        "blobs": [to_builtins(blob) for blob in _blobs(found, package)],
        "left_out": [str(path) for path in package.left_out],
        "manifest": json.loads(package.manifest),
    }


def _info_lines(found: Located, package: Package, state: Release) -> Iterator[str]:
    project = package.project
    rows = [
        ("label", project.label),
        ("type", project.type),
        ("folder", found.folder),
        ("digest", state.digest),
        ("state", "changed, bump it" if state.state == "changed" else state.state),
        ("released", ", ".join(state.versions) or None),
    ]
    yield f"{project.name} {project.version}{', shipped with CycleForge' if found.is_shipped else ''}"
    yield columns(rows, indent="  ")
    for spec in _specs(package):
        yield f"spec {spec.name}: {counted(len(spec.scripts) + spec.other_files, 'file')}, {size(spec.bytes)}"
        if spec.scripts:
            yield "  scripts, in the order in which they run:"
            yield from (f"    {name}" for name in spec.scripts)
        if spec.other_files:
            yield f"  {counted(spec.other_files, 'other file')}"
        if spec.run_list:
            yield f"  run list: {', '.join(spec.run_list)}"
        yield ""
    blobs = _blobs(found, package)
    if blobs:
        head = ("blob", "size", "md5", "state")
        table = [(blob.path, None if blob.bytes is None else size(blob.bytes), blob.md5, blob.state) for blob in blobs]
        yield columns([head, *table])
        if any(blob.state != "present" for blob in blobs):
            yield "What is not here is left out of builds and uploads; `cycleforge blobs fetch` gets it.\n"
    if package.left_out:
        yield f"left out: {named(package.left_out)}\n"
    yield "manifest.json"
    yield package.manifest.decode("ascii")


def _specs(package: Package) -> list[_Spec]:
    """The specs with a folder, and those that only have a run list."""
    project = package.project
    found = []
    for name in sorted({*project.specs, *project.run_lists}):
        files = {path: each for path, each in package.files.items() if path.parts[0] == name}
        scripts = tuple(path.name for path in files if _is_script(path))
        total = sum(payload.size_bytes for payload in files.values())
        found.append(_Spec(name, scripts, len(files) - len(scripts), total, project.run_lists.get(name, ())))
    return found


def _is_script(path: PurePosixPath) -> bool:
    return path.parts[1:-1] == ("cluster-init", "scripts") and path.suffix.lower() in _RUN


def _blobs(found: Located, package: Package) -> list[_Blob]:
    """Blobs that travel, and pinned ones that are not on this machine."""
    blobs = {
        path.as_posix(): _Blob(path.as_posix(), payload.size_bytes, payload.md5.hex(), "present")
        for path, payload in package.blobs.items()
    }
    if found.is_shipped:
        from ..blobs import pinned_of

        absent = [pin for name, pin in pinned_of(package.project.name).items() if name not in blobs]
        blobs |= {pin.file: _Blob(pin.file, pin.size_bytes, None, _state(pin)) for pin in absent}
    return [blobs[name] for name in sorted(blobs)]


def _state(pin: Blob) -> str:
    from ..blobs import store_of

    try:
        return store_of(os.environ).look(pin).state
    except CannotRead:
        return "missing"


# ---------------------------------------------------------------- what all actions print alike


def packaged(found: Sequence[Located]) -> tuple[list[tuple[Located, Package]], list[CannotRead]]:
    """The packages, and what keeps the others from being one."""
    from ..projects.package import package_of

    done, failures = [], []
    for each in found:
        try:
            done.append((each, package_of(each)))
        except CannotRead as error:
            failures.append(error)
    return done, failures


def print_failures(failures: Sequence[CannotRead]) -> None:
    """On standard error, each with its hint."""
    for error in failures:
        common.say(f"cycleforge: {printable(error.message)}")
        if error.hint:
            common.say(f"  hint: {printable(error.hint)}")


def errors_json(failures: Sequence[CannotRead]) -> list[dict[str, object]]:
    """The same as plain data; file and line where they are known."""
    return [
        {
            "file": str(getattr(error, "file", "")) or None,
            "line": getattr(error, "line", None),
            "message": error.message,
            "hint": error.hint,
        }
        for error in failures
    ]


def total_bytes(files: Mapping[PurePosixPath, Payload]) -> int:
    """Size of all files."""
    return sum(payload.size_bytes for payload in files.values())


def named(paths: Sequence[PurePosixPath]) -> str:
    """The first few, and how many more."""
    return first([printable(path.as_posix()) for path in paths], _SHOWN)
