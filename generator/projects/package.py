"""A project as it is in the locker: what `cyclecloud project build` makes of it, and the blobs beside it.

Layout, manifest and every decision where the format is silent: `docs/projects.md`. The manifest is what that command
writes, byte for byte, read off outputs that were committed to public repositories: Azure/HPC-Accelerator at 93b3336
(`build/limits`, `build/nhc`) and Azure/cyclecloud-symphony at b405523 (`build/symphony`, with blobs and run lists).

The three Chef folders of a spec travel as one archive each, `site-cookbooks.tgz` and so on. Form:
https://learn.microsoft.com/azure/cyclecloud/cluster-references/chef-reference and the archive that the same commit of
Azure/cyclecloud-symphony has: a gzip tar whose one folder at the top has the name of the Chef folder. The same files
must give the same bytes on every machine, because a version in the locker never changes: no times, owners or modes of
a checkout, and stored instead of compressed, since each release of zlib compresses differently.
"""

from __future__ import annotations

import io
import json
import os
import struct
import tarfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from msgspec import Struct

from ..blobs import Store, pinned_of, store_of
from ..blobs.store import Unusable
from ..errors import CannotRead
from ..words.suggestions import suggestion
from .content import BLOBS, Missing, is_pattern, shipped_project
from .ini import Project, ProjectUnreadable, read_project
from .local import SHIPPED, Located
from .payload import Payload, made, measured
from .tree import Tree, flaw, is_dropping

_SPECS = PurePosixPath("specs")
MANIFEST = "manifest.json"
CHEF_FOLDERS = ("data_bags", "roles", "site-cookbooks")
CHEF_BYTES = 64 * 1024 * 1024
"""Content of one Chef folder; what is larger is not a recipe but belongs in `blobs/`."""
_GZIP_BLOCK = 0xFFFF
_GZIP_HEADER = b"\x1f\x8b\x08\x00" + bytes(4) + b"\x00\xff"
"""gzip without name and time, of no particular system. Source: RFC 1952."""


class Package(Struct, frozen=True):
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
    """Raises CannotRead."""
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
        elif kind == "chef" and len(rest) > 1 and rest[0] in CHEF_FOLDERS:
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
    if size_bytes > CHEF_BYTES:
        limit = f"{CHEF_BYTES >> 20} MiB"
        raise ProjectUnreadable(
            project.folder / _SPECS / folder, None, f"has {size_bytes} bytes; at most {limit} go into one archive",
            "Put large files into blobs/, and fetch them with `jetpack download`.",
        )  # fmt: skip
    return made(chef_archive(folder.name, members))


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
    for piece in payload.pieces():
        is_binary = is_binary or b"\0" in piece
        joined = before + piece
        if found is None and (place := joined.find(b"\r\n")) >= 0:
            found = lines + joined.count(b"\n", 0, place) + 1
        lines += joined.count(b"\n")
        before = b"\r" if joined.endswith(b"\r") else b""
    return None if is_binary and found != 1 else found


def _sorted(files: Mapping[PurePosixPath, Payload]) -> dict[PurePosixPath, Payload]:
    return dict(sorted(files.items(), key=lambda item: item[0].as_posix()))


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


def chef_archive(folder: str, files: Mapping[PurePosixPath, Payload]) -> bytes:
    """The `.tgz` of one Chef folder; paths are relative to it. Sorted, without empty folders."""
    top = PurePosixPath(folder)
    folders = {top, *(parent for path in files for parent in (top / path).parents if parent.parts)}
    members: dict[PurePosixPath, Payload | None] = dict.fromkeys(folders) | {
        top / path: payload for path, payload in files.items()
    }
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path, payload in sorted(members.items(), key=lambda item: item[0].parts):
            info = tarfile.TarInfo(path.as_posix())
            if payload is None:
                info.type, info.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(info)
                continue
            content = b"".join(payload.pieces())
            info.size, info.mode = len(content), 0o755 if content.startswith(b"#!") else 0o644
            tar.addfile(info, io.BytesIO(content))
    return _gzip_stored(buffer.getvalue())


def _gzip_stored(content: bytes) -> bytes:
    """gzip of stored blocks. Source: RFC 1951, section 3.2.4."""
    blocks = [_GZIP_HEADER]
    for start in range(0, len(content), _GZIP_BLOCK):
        piece = content[start : start + _GZIP_BLOCK]
        is_last = start + _GZIP_BLOCK >= len(content)
        blocks += [struct.pack("<BHH", is_last, len(piece), len(piece) ^ 0xFFFF), piece]
    return b"".join([*blocks, struct.pack("<II", zlib.crc32(content), len(content) & 0xFFFFFFFF)])


def listed_blobs(project: Project, tree: Tree) -> dict[PurePosixPath, Path]:
    """Path below `blobs/` → file, each once, in the order of the list; the files of one pattern are sorted.

    Patterns are those of Python's `glob`: `*`, `?` and `[…]` stop at `/` and do not match a dot at the beginning. A
    file whose name is exactly what is written wins over what it would match.
    """
    found: dict[PurePosixPath, Path] = {}
    file = project.folder / "project.ini"
    absent = []
    for entry in dict.fromkeys(project.blobs):
        line = project.blob_lines.get(entry)
        _demand_plain(entry, file, line)
        matches = _files(entry, tree)
        if not matches:
            absent.append(entry)
        for match in matches:
            real = tree.real(BLOBS / match)
            if real.is_dir():
                raise ProjectUnreadable(
                    file, line, f"[blobs] lists '{entry}', which is a folder", f"Write '{match.as_posix()}/*'."
                )
            found.setdefault(match, real)
    if absent:
        raise _missing(absent, project)
    return found


def _files(entry: str, tree: Tree) -> list[PurePosixPath]:
    path = PurePosixPath(entry)
    place = tree.folder / BLOBS / path
    if not any(is_dropping(part) for part in path.parts) and os.path.lexists(place):
        return [path]
    return sorted(_matches(path.parts, tree), key=PurePosixPath.as_posix) if is_pattern(entry) else []


def _missing(absent: list[str], project: Project) -> Missing:
    names = ", ".join(f"'{entry}'" for entry in absent)
    text = "are not in" if len(absent) > 1 else "matches nothing in" if is_pattern(absent[0]) else "is not in"
    hint = "Put the files there (GitHub releases have them as assets), or remove them from the list."
    line = project.blob_lines.get(absent[0])
    return Missing(project.folder / "project.ini", line, f"[blobs] lists {names}, which {text} blobs/", hint)


def unlisted_blobs(listed: dict[PurePosixPath, Path], tree: Tree) -> Iterator[PurePosixPath]:
    """Files below `blobs/` that nothing lists, and are therefore not uploaded; explanations for people do not count."""
    pending = [BLOBS]
    while pending:
        folder = pending.pop()
        for name in tree.names(folder):
            path = folder / name
            place = tree.folder / path
            if place.is_dir() and not place.is_symlink():
                pending.append(path)
            elif path.relative_to(BLOBS) not in listed and path.stem != "README" and name != ".gitkeep":
                yield path


def _demand_plain(entry: str, file: Path, line: int | None) -> None:
    parts = entry.split("/")
    if not entry.isprintable():
        raise ProjectUnreadable(file, line, "[blobs] lists a name with control characters", "Remove them.")
    if entry.startswith(("/", "\\")) or parts[0].endswith(":"):
        raise ProjectUnreadable(
            file, line, f"[blobs] lists '{entry}', an absolute path", "Write the path below blobs/."
        )
    if ".." in parts:
        raise ProjectUnreadable(
            file, line, f"[blobs] lists '{entry}', which leaves blobs/", "Write the path below blobs/, without '..'."
        )
    if "" in parts or "." in parts:
        hint = "Write the path below blobs/ of one file, or a pattern such as 'folder/*'."
        raise ProjectUnreadable(file, line, f"[blobs] lists '{entry}', which names no file", hint)


def _matches(parts: tuple[str, ...], tree: Tree) -> list[PurePosixPath]:
    places = [PurePosixPath()]
    for number, part in enumerate(parts, start=1):
        following = []
        for place in places:
            for name in tree.names(BLOBS / place):
                is_match = fnmatchcase(name, part) and name.startswith(".") <= part.startswith(".")
                if is_match and not is_dropping(name):
                    following.append(place / name)
        is_last = number == len(parts)
        places = [path for path in following if tree.real(BLOBS / path).is_dir() is not is_last]
    return places
