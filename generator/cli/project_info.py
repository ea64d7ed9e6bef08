"""`cycleforge project info`."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from ..errors import OK, CannotRead
from ..words.counts import counted
from ..words.sizes import size
from ..words.terminal import columns
from . import common
from .project_text import named

if TYPE_CHECKING:
    from ..blobs import Blob
    from ..projects.find import Located
    from ..projects.package import Package
    from ..projects.state import Release

_RUN = (".bat", ".cmd", ".exe", ".sh")
"""What a node runs of `scripts/`, by name. Source: scripts/README.txt of any `cyclecloud project init`."""


@dataclass(frozen=True)
class _Spec:
    name: str
    scripts: tuple[str, ...]
    other_files: int
    bytes: int
    run_list: tuple[str, ...]


@dataclass(frozen=True)
class _Blob:
    path: str
    bytes: int | None
    md5: str | None
    state: str


def run(args: Namespace) -> int:
    """Show one project."""
    from ..projects.find import find_project
    from ..projects.package import package_of
    from ..projects.state import release

    found = find_project(args.name)
    package = package_of(found)
    state = release(found, package.project)
    if args.json:
        common.emit_json(_json(found, package, state))
    else:
        common.emit("\n".join(_lines(found, package, state)))
    return OK


def _json(found: Located, package: Package, state: Release) -> dict[str, object]:
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
        "specs": [asdict(spec) for spec in _specs(package)],
        "blobs": [asdict(blob) for blob in _blobs(found, package)],
        "left_out": [str(path) for path in package.left_out],
        "manifest": json.loads(package.manifest),
    }


def _lines(found: Located, package: Package, state: Release) -> Iterator[str]:
    project = package.project
    rows = [
        ("label", project.label),
        ("type", project.type),
        ("folder", found.folder),
        ("digest", state.digest),
        ("state", "changed, bump it" if state.state == "changed" else state.state),
        ("released", ", ".join(state.versions) or None),
    ]
    yield f"{project.name} {project.version}{', which CycleForge brings' if found.is_shipped else ''}"
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
