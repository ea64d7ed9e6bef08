"""What is in a deployment folder, and what a build changes in it."""

from __future__ import annotations

from ..records import record

import json
import os
import stat
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from ..errors import CannotWrite
from ..files.file import Files
from ..files.manifest import MANIFEST, digest


@record
class Changes:
    """What a build did, or would do; paths relative to the folder, sorted."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    kept: tuple[tuple[str, str], ...] = ()
    """(path, where the user's version is now): edited files of ours, and files that were in the way of ours."""
    foreign: tuple[str, ...] = ()
    """Files that a user added; they stay."""
    is_new: bool = False
    """The folder did not exist or was empty."""

    @property
    def any(self) -> bool:
        """Whether the folder differs from what it should be."""
        return bool(self.added or self.changed or self.removed)


@record
class Before:
    """The folder as found. `files` holds everything that is not a folder, `folders` every folder with its mode."""

    files: dict[PurePosixPath, os.stat_result]
    folders: dict[PurePosixPath, int]
    digests: dict[str, str]
    mode: int


@record
class Work:
    """What to do: `carried` maps a file of the user to its place in the new folder."""

    changes: Changes
    carried: dict[PurePosixPath, PurePosixPath]


def scan(folder: Path, owner: str) -> Before:
    """Everything in a folder, which need not exist; CannotWrite when it holds something and is not ours."""
    if not os.path.lexists(folder):
        return Before({}, {}, {}, 0o755)
    files, folders = everything_in(folder)
    mode = stat.S_IMODE(folder.stat().st_mode)
    if not files and not folders:
        return Before(files, folders, {}, mode)
    digests = _owned(folder / MANIFEST, owner)
    if digests is None:
        names = ", ".join(sorted({path.parts[0] for path in (*files, *folders)})[:3])
        raise CannotWrite(
            f"{folder} was not made by CycleForge: it holds {names} and no manifest of CycleForge, so it is left unchanged",
            "choose another --out, or move that folder away",
        )
    return Before(files, folders, digests, mode)


def everything_in(
    folder: Path, below: PurePosixPath = PurePosixPath()
) -> tuple[dict[PurePosixPath, os.stat_result], dict[PurePosixPath, int]]:
    """All that is not a folder, with its status, and all folders, with their modes; links are not followed."""
    files: dict[PurePosixPath, os.stat_result] = {}
    folders: dict[PurePosixPath, int] = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            path = below / entry.name
            status = entry.stat(follow_symlinks=False)
            if entry.is_dir(follow_symlinks=False):
                folders[path] = stat.S_IMODE(status.st_mode)
                more_files, more_folders = everything_in(folder / entry.name, path)
                files |= more_files
                folders |= more_folders
            else:
                files[path] = status
    return files, folders


def _owned(manifest: Path, owner: str) -> dict[str, str] | None:
    """The digests in our manifest; None if it is missing or someone else's."""
    try:
        if manifest.is_symlink():
            return None
        content = json.loads(manifest.read_bytes())
    except (FileNotFoundError, IsADirectoryError, ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or content.get("generator") != owner or not isinstance(content.get("files"), dict):
        return None
    return {str(path): str(value) for path, value in content["files"].items()}


def folders_of(paths: Iterable[PurePosixPath]) -> set[PurePosixPath]:
    """Every folder above one of the paths."""
    own = {path.parent for path in paths}
    return own.union(*(folder.parents for folder in own))


def compare(folder: Path, files: Files, before: Before) -> Work:
    """What makes the folder hold these files, and where each file of the user goes; raises OSError."""
    new_folders = folders_of(files)
    names = _Names({*files, *new_folders, *before.files, *before.folders})
    added, changed, removed, unchanged, foreign = [], [], [], [], []
    carried: dict[PurePosixPath, PurePosixPath] = {}
    for path, file in files.items():
        found = before.files.get(path)
        if found is None:
            added.append(str(path))
            continue
        content = (folder / path).read_bytes() if stat.S_ISREG(found.st_mode) else None
        if content != file.content and _is_users(path, content, before):
            carried[path] = names.free(path)
        if content == file.content and stat.S_IMODE(found.st_mode) == file.mode:
            unchanged.append(str(path))
        else:
            changed.append(str(path))
    for path, found in before.files.items():
        if path in files:
            continue
        content = (folder / path).read_bytes() if stat.S_ISREG(found.st_mode) and str(path) in before.digests else None
        if content is not None:
            removed.append(str(path))
            if _is_users(path, content, before):
                carried[path] = names.free(path)
        else:
            foreign.append(str(path))
            carried[path] = names.out_of_the_way(path, files, new_folders)
    changes = Changes(
        added=tuple(sorted(added)),
        changed=tuple(sorted(changed)),
        removed=tuple(sorted(removed)),
        unchanged=tuple(sorted(unchanged)),
        kept=tuple(sorted((str(old), str(new)) for old, new in carried.items() if old != new)),
        foreign=tuple(sorted(foreign)),
        is_new=not before.files and not before.folders,
    )
    return Work(changes, carried)


def _is_users(path: PurePosixPath, content: bytes | None, before: Before) -> bool:
    """Whether what is at a path is not what we put there (None: a link or device, never ours)."""
    if content is None:
        return True
    return path != MANIFEST and before.digests.get(str(path)) != digest(content)


class _Names:
    """Names that are still free in the new folder."""

    def __init__(self, taken: set[PurePosixPath]) -> None:
        self._taken = taken
        self._moved: dict[PurePosixPath, PurePosixPath] = {}

    def free(self, path: PurePosixPath) -> PurePosixPath:
        """`<path>.orig`, or the next number that is free."""
        number = 1
        while True:
            candidate = path.with_name(f"{path.name}.orig" + (f".{number}" if number > 1 else ""))
            if candidate not in self._taken:
                self._taken.add(candidate)
                return candidate
            number += 1

    def out_of_the_way(self, path: PurePosixPath, files: Files, folders: set[PurePosixPath]) -> PurePosixPath:
        """Where a user's file goes: it stays, unless it or a folder above it has the name of something of ours."""
        if path in folders:
            return self.free(path)
        for parent in path.parents:
            if parent in files:
                target = self._moved.setdefault(parent, self._moved.get(parent) or self.free(parent))
                return target / path.relative_to(parent)
        return path
