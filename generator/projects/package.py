"""A project as it is in the locker: what `cyclecloud project build` makes of it, and the blobs beside it.

Layout, manifest and every decision where the format is silent: `docs/projects.md`. The manifest is what that command
writes, byte for byte, read off outputs that were committed to public repositories: Azure/HPC-Accelerator at 93b3336
(`build/limits`, `build/nhc`) and Azure/cyclecloud-symphony at b405523 (`build/symphony`, with blobs and run lists).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from ..blobs import Store, pinned_of, store_of
from ..blobs.store import Unusable
from ..errors import CannotRead
from ..records import record
from ..words.suggestions import suggestion
from . import chef
from .content import BLOBS, shipped_project
from .ini import Project, ProjectUnreadable, read_project
from .listed import listed_blobs, unlisted_blobs
from .local import SHIPPED, Located
from .payload import Payload, made, measured
from .tree import Tree, flaw, is_dropping

__all__ = ["SHIPPED", "Package", "Payload", "package_folder", "package_of", "package_shipped"]

_SPECS = PurePosixPath("specs")
_PIECE_BYTES = 1 << 18


@record
class Package:
    """What `cyclecloud project build` makes of a project, and the project blobs beside it."""

    project: Project
    manifest: bytes
    """`manifest.json`."""
    files: Mapping[PurePosixPath, Payload]
    """Below `projects/<name>/<version>/`, for example `default/cluster-init/…`, without the manifest; sorted."""
    blobs: Mapping[PurePosixPath, Payload]
    """Below `projects/<name>/blobs/`; sorted."""
    left_out: tuple[PurePosixPath, ...]
    """What is in `specs/` and `blobs/` and is not part, relative to the project folder; a folder stands for all in
    it."""


def package_folder(folder: Path) -> Package:
    """Any CycleCloud project folder on disk, which need not be ours; raises ProjectUnreadable."""
    project = read_project(folder)
    tree = Tree(folder)
    files: dict[PurePosixPath, Payload] = {}
    for spec in project.specs:
        for kind in ("cluster-init", "chef"):
            for path, file in tree.files(_SPECS / spec / kind).items():
                files[path.relative_to(_SPECS)] = measured(file)
    listed = listed_blobs(project, tree)
    blobs = {path: measured(file) for path, file in listed.items()}
    left_out = [*tree.left_out, *_strays(project, tree), *unlisted_blobs(listed, tree)]
    return _package(project, files, blobs, left_out)


def package_shipped(name: str, store: Store | None) -> Package:
    """A project that CycleForge brings, as a deployment folder holds it.

    The library is in its place. Blobs of others come from the store; one that is not there is not listed either.
    """
    if name not in SHIPPED:
        raise CannotRead(f"CycleForge ships no project '{name}'", suggestion(name, SHIPPED))
    project, content = shipped_project(name)
    pins = pinned_of(name)
    blobs: dict[PurePosixPath, Payload] = {}
    for file in project.blobs:
        if file not in pins:
            blobs[PurePosixPath(file)] = made(content[BLOBS / file].content)
        elif store is not None:
            try:
                blobs[PurePosixPath(file)] = made(store.read(pins[file]))
            except Unusable:
                continue  # `cycleforge blobs status` says why
    files = {
        path.relative_to(_SPECS): made(file.content, executable=file.executable)
        for path, file in content.items()
        if path.is_relative_to(_SPECS)
    }
    carried = tuple(file for file in project.blobs if PurePosixPath(file) in blobs)
    return _package(replace(project, blobs=carried), files, blobs, ())


def package_of(found: Located) -> Package:
    """What is uploaded of it; raises CannotRead."""
    if not found.is_shipped:
        return package_folder(found.folder)
    try:
        store = store_of(os.environ)
    except CannotRead:  # no home folder: `cycleforge blobs` says so, the project continues without
        store = None
    return package_shipped(found.folder.resolve().name, store)


def _package(
    project: Project,
    content: Mapping[PurePosixPath, Payload],
    blobs: Mapping[PurePosixPath, Payload],
    left_out: list[PurePosixPath] | tuple[PurePosixPath, ...],
) -> Package:
    files: dict[PurePosixPath, Payload] = {}
    cookbooks: dict[PurePosixPath, dict[PurePosixPath, Payload]] = {}
    strays = []
    for path, payload in content.items():
        spec, kind, *rest = path.parts
        if kind == "cluster-init" and rest:
            files[path] = payload
        elif kind == "chef" and len(rest) > 1 and rest[0] in chef.FOLDERS:
            cookbooks.setdefault(PurePosixPath(spec, kind, rest[0]), {})[PurePosixPath(*rest[1:])] = payload
        else:
            strays.append(_SPECS / path)
        _demand_usable(project, path, payload)
    for folder, members in cookbooks.items():
        files[folder.with_name(f"{folder.name}.tgz")] = _cookbook(project, folder, members)
    root = f"projects/{project.name}/"
    _demand_name(project.folder / "project.ini", f"{root}{project.version}", project.version_line)
    if MANIFEST in project.specs:
        raise ProjectUnreadable(
            project.folder / _SPECS / MANIFEST, None, f"a spec cannot be named {MANIFEST}", "Rename it."
        )
    for path in files:
        _demand_name(project.folder / _SPECS / path, f"{root}{project.version}/{path.as_posix()}")
    for path in blobs:
        _demand_name(project.folder / BLOBS / path, f"{root}blobs/{path.as_posix()}")
    manifest = manifest_bytes(
        project.name,
        project.version,
        project.type,
        ((path.as_posix(), payload.md5) for path, payload in blobs.items()),
        project.run_lists,
    )
    return Package(project, manifest, _sorted(files), _sorted(blobs), tuple(sorted({*left_out, *strays})))


def _cookbook(project: Project, folder: PurePosixPath, members: Mapping[PurePosixPath, Payload]) -> Payload:
    size_bytes = sum(payload.size_bytes for payload in members.values())
    if size_bytes > chef.MAX_BYTES:
        limit = f"{chef.MAX_BYTES >> 20} MiB"
        raise ProjectUnreadable(
            project.folder / _SPECS / folder, None, f"has {size_bytes} bytes; at most {limit} go into one archive",
            "Put large files into blobs/, and fetch them with `jetpack download`.",
        )  # fmt: skip
    return made(chef.archive(folder.name, members))


def _strays(project: Project, tree: Tree) -> list[PurePosixPath]:
    """What is in `specs/` where nothing looks for it."""
    found = [_SPECS / name for name in tree.names(_SPECS) if name not in project.specs]
    for spec in project.specs:
        names = tree.names(_SPECS / spec)
        found += [_SPECS / spec / name for name in names if name not in ("cluster-init", "chef") or is_dropping(name)]
    return found


def _demand_name(place: Path, name: str, line: int | None = None) -> None:
    problem = flaw(name)
    if problem is not None:
        raise ProjectUnreadable(place, line, *problem)


def _demand_usable(project: Project, path: PurePosixPath, payload: Payload) -> None:
    """Refuse a script with the line ends of Windows: on a node its interpreter would end in a carriage return."""
    if path.suffix != ".sh" or path.parts[1:-1] != ("cluster-init", "scripts"):
        return
    line = _windows_line(payload)
    if line is not None:
        place = project.folder / _SPECS / path
        raise ProjectUnreadable(
            place, line, "the script has Windows line endings, with which it fails on a node",
            f"sed -i 's/\\r$//' '{place}'; and keep git from changing it: '*.sh text eol=lf' in .gitattributes",
        )  # fmt: skip


def _windows_line(payload: Payload) -> int | None:
    """The first line that ends with `\\r\\n`; in a script that carries binary data only the first line counts."""
    found, lines, before, is_binary = None, 0, b"", False
    with payload.open() as stream:
        while piece := stream.read(_PIECE_BYTES):
            is_binary = is_binary or b"\0" in piece
            joined = before + piece
            if found is None and (place := joined.find(b"\r\n")) >= 0:
                found = lines + joined.count(b"\n", 0, place) + 1
            lines += joined.count(b"\n")
            before = b"\r" if joined.endswith(b"\r") else b""
    return None if is_binary and found != 1 else found


def _sorted(files: Mapping[PurePosixPath, Payload]) -> dict[PurePosixPath, Payload]:
    return dict(sorted(files.items(), key=lambda item: item[0].as_posix()))


MANIFEST = "manifest.json"


def manifest_bytes(
    name: str, version: str, kind: str, blobs: Iterable[tuple[str, bytes]], run_lists: Mapping[str, Sequence[str]]
) -> bytes:
    """The manifest. `blobs` are (path below `blobs/`, MD5) in the order of `project.ini`; no line end at the end.

    Without a run list there is no `specs` at all: nodes find the files of a spec by its prefix in the locker.
    """
    content: dict[str, object] = {
        "blobs": [{"checksum": md5.hex(), "path": path} for path, md5 in blobs],
        "name": name,
        "type": kind,
        "version": version,
    }
    if run_lists:
        content["specs"] = {spec: {"run_list": list(words)} for spec, words in run_lists.items()}
    return json.dumps(content, indent=4, sort_keys=True).encode("ascii")
