"""What is in a deployment folder, and what a build changes in it."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from msgspec import Struct

from ..errors import CannotWrite
from ..files.file import MANIFEST, OWNER, Files, digest
from ..words.counts import first

_SHOWN = 3


class Changes(Struct, frozen=True):
    """What a build did, or would do; paths relative to the folder, sorted."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    edited: tuple[str, ...] = ()
    """Of those that change or go, the files that a user edited since they were built."""
    foreign: tuple[str, ...] = ()
    """Files that a user added; they stay."""
    is_new: bool = False
    """The folder did not exist or was empty."""

    @property
    def any(self) -> bool:
        """Whether the folder differs from what it should be."""
        return bool(self.added or self.changed or self.removed)


class Before(Struct, frozen=True):
    """The folder as found. `files` holds everything that is not a folder, `folders` every folder with its mode."""

    files: dict[PurePosixPath, os.stat_result]
    folders: dict[PurePosixPath, int]
    digests: dict[str, str]
    mode: int


def scan(folder: Path) -> Before:
    """Everything in a folder, which need not exist; CannotWrite when it holds something and is not ours."""
    if not os.path.lexists(folder):
        return Before({}, {}, {}, 0o755)
    files, folders = everything_in(folder)
    mode = stat.S_IMODE(folder.stat().st_mode)
    if not files and not folders:
        return Before(files, folders, {}, mode)
    digests = _owned(folder / MANIFEST)
    if digests is None:
        names = ", ".join(sorted({path.parts[0] for path in (*files, *folders)})[:3])
        raise CannotWrite(
            f"{folder} was not made by CycleForge: it holds {names} and no manifest of CycleForge, "
            "so it is left unchanged",
            "choose another --out, or move that folder away",
        )
    return Before(files, folders, digests, mode)


def everything_in(folder: Path) -> tuple[dict[PurePosixPath, os.stat_result], dict[PurePosixPath, int]]:
    """All that is not a folder, with its status, and all folders, with their modes; links are not followed."""
    files: dict[PurePosixPath, os.stat_result] = {}
    folders: dict[PurePosixPath, int] = {}
    left = [PurePosixPath()]
    while left:
        with os.scandir(folder / left[-1]) as entries:
            place = left.pop()
            for entry in entries:
                path, status = place / entry.name, entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    folders[path] = stat.S_IMODE(status.st_mode)
                    left.append(path)
                else:
                    files[path] = status
    return files, folders


def _owned(manifest: Path) -> dict[str, str] | None:
    """The digests in our manifest; None if it is missing or someone else's."""
    try:
        if manifest.is_symlink():
            return None
        content = json.loads(manifest.read_bytes())
    except (FileNotFoundError, IsADirectoryError, ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or content.get("generator") != OWNER or not isinstance(content.get("files"), dict):
        return None
    return {str(path): str(value) for path, value in content["files"].items()}


def folders_of(paths: Iterable[PurePosixPath]) -> set[PurePosixPath]:
    return {parent for path in paths for parent in path.parents}


def compare(folder: Path, files: Files, before: Before) -> Changes:
    """What makes the folder hold these files; OSError, and CannotWrite where a file of the user is in the way."""
    ways = folders_of(files)
    ours = {path for path, found in before.files.items() if str(path) in before.digests and stat.S_ISREG(found.st_mode)}
    added, changed, removed, unchanged, edited, foreign, in_the_way = [], [], [], [], [], [], []
    for path, file in files.items():
        found = before.files.get(path)
        if found is None:
            added.append(str(path))
            continue
        content = (folder / path).read_bytes() if stat.S_ISREG(found.st_mode) else None
        if content == file.content and stat.S_IMODE(found.st_mode) == file.mode:
            unchanged.append(str(path))
            continue
        changed.append(str(path))
        if content == file.content or path == MANIFEST:
            continue
        if content is None or path not in ours:
            in_the_way.append(str(path))
        elif digest(content) != before.digests[str(path)]:
            edited.append(str(path))
    for path in before.files.keys() - files.keys():
        if path in ours:
            removed.append(str(path))
            if digest((folder / path).read_bytes()) != before.digests[str(path)]:
                edited.append(str(path))
        elif path in ways or any(parent in files for parent in path.parents):
            in_the_way.append(str(path))
        else:
            foreign.append(str(path))
    if in_the_way:
        raise CannotWrite(
            f"{folder} has files of yours where CycleForge writes its own: {first(sorted(in_the_way), _SHOWN)}",
            "give them other names, then build again",
        )
    return Changes(
        added=tuple(sorted(added)),
        changed=tuple(sorted(changed)),
        removed=tuple(sorted(removed)),
        unchanged=tuple(sorted(unchanged)),
        edited=tuple(sorted(edited)),
        foreign=tuple(sorted(foreign)),
        is_new=not before.files and not before.folders,
    )
