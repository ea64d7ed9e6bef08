"""Files to disk: the one place that writes a deployment folder, as a whole or not at all.

What happens to files that are not ours:
* a folder without our manifest is refused;
* files that a user added are carried over;
* files of ours that a user edited are replaced, and the edited version stays beside as `<file>.orig`;
* a folder that is already what it should be is not touched.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ..disk import swap as folder_swap
from ..errors import CannotWrite
from ..files.file import File, Files
from ..files.manifest import MANIFEST, OWNER, digest

_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EACCES: "no permission",
    errno.EPERM: "no permission",
    errno.EROFS: "the file system is read-only",
    errno.ENOTDIR: "a part of the path is a file, not a folder",
    errno.ENAMETOOLONG: "the name is too long for the file system",
    errno.EFBIG: "a file would be larger than allowed",
    errno.ELOOP: "the path runs in a circle of links",
}


@dataclass(frozen=True)
class Changes:
    """What a build did, or would do; paths relative to the folder, sorted."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    kept: tuple[tuple[str, str], ...] = ()
    """(path, where the user's version is now): edited files of ours, and files that stood in the way of ours."""
    foreign: tuple[str, ...] = ()
    """Files that a user added; they stay."""
    is_new: bool = False
    """The folder did not exist or was empty."""

    @property
    def any(self) -> bool:
        """Whether the folder differs from what it should be."""
        return bool(self.added or self.changed or self.removed)


def check(folder: Path, files: Files, *, owner: str = OWNER) -> Changes:
    """What `write` would change; nothing is written. CannotWrite if the folder is not ours."""
    with _refusing(folder):
        return _compare(folder, files, _scan(folder, owner)).changes


def write(folder: Path, files: Files, *, owner: str = OWNER) -> Changes:
    """Make the folder hold exactly these files (and the user's own). CannotWrite leaves the old folder whole."""
    if folder.name in ("", ".."):
        folder = folder.resolve()  # the temporary folder needs a name to lie beside
    _check_paths(files)
    with _refusing(folder):
        if os.path.lexists(folder) and (folder.is_symlink() or not folder.is_dir()):
            kind = "a link" if folder.is_symlink() else "a file"
            raise CannotWrite(f"{folder} is {kind}, not a folder", "choose another --out, or move it away")
        folder.parent.mkdir(parents=True, exist_ok=True)
        with folder_swap.locked(folder.parent) as has_lock:
            folder_swap.heal(folder, has_lock=has_lock)
            before = _scan(folder, owner)
            work = _compare(folder, files, before)
            if work.changes.any:
                _replace(folder, files, before, work)
            return work.changes


# ---------------------------------------------------------------- what lies there


@dataclass(frozen=True)
class _Before:
    """The folder as found. `files` holds everything that is not a folder, `folders` every folder with its mode."""

    files: dict[PurePosixPath, os.stat_result]
    folders: dict[PurePosixPath, int]
    digests: dict[str, str]
    mode: int


@dataclass(frozen=True)
class _Work:
    """What to do: `carried` maps a file of the user to its place in the new folder."""

    changes: Changes
    carried: dict[PurePosixPath, PurePosixPath]


def _scan(folder: Path, owner: str) -> _Before:
    files: dict[PurePosixPath, os.stat_result] = {}
    folders: dict[PurePosixPath, int] = {}
    if not os.path.lexists(folder):
        return _Before(files, folders, {}, 0o755)
    _walk(folder, PurePosixPath(), files, folders)
    mode = stat.S_IMODE(folder.stat().st_mode)
    if not files and not folders:
        return _Before(files, folders, {}, mode)
    digests = _owned(folder / MANIFEST, owner)
    if digests is None:
        names = ", ".join(sorted({path.parts[0] for path in (*files, *folders)})[:3])
        raise CannotWrite(
            f"{folder} was not made by CycleForge: it holds {names} and no manifest of ours, so it is left alone",
            "choose another --out, or move that folder away",
        )
    return _Before(files, folders, digests, mode)


def _walk(
    folder: Path, below: PurePosixPath, files: dict[PurePosixPath, os.stat_result], folders: dict[PurePosixPath, int]
) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            path = below / entry.name
            if entry.is_dir(follow_symlinks=False):
                folders[path] = stat.S_IMODE(entry.stat(follow_symlinks=False).st_mode)
                _walk(folder / entry.name, path, files, folders)
            else:
                files[path] = entry.stat(follow_symlinks=False)


def _owned(manifest: Path, owner: str) -> dict[str, str] | None:
    """The digests in our manifest; None if it is missing or somebody else's."""
    try:
        if manifest.is_symlink():
            return None
        content = json.loads(manifest.read_bytes())
    except (FileNotFoundError, IsADirectoryError, ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or content.get("generator") != owner or not isinstance(content.get("files"), dict):
        return None
    return {str(path): str(value) for path, value in content["files"].items()}


def _compare(folder: Path, files: Files, before: _Before) -> _Work:
    new_folders = {parent for path in files for parent in path.parents}
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
        if content == file.content and stat.S_IMODE(found.st_mode) == _mode(file):
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
    return _Work(changes, carried)


def _is_users(path: PurePosixPath, content: bytes | None, before: _Before) -> bool:
    """Whether what lies at a path is not what we put there (None: a link or device, never ours)."""
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


# ---------------------------------------------------------------- writing


def _replace(folder: Path, files: Files, before: _Before, work: _Work) -> None:
    new = folder_swap.temporary_beside(folder)
    try:
        _fill(new, folder, files, before, work)
        folder_swap.sync_tree(new)
        old = folder_swap.swap(new, folder)
    except BaseException:
        folder_swap.remove_tree(new)
        raise
    folder_swap.sync_folder(folder.parent)
    if old is not None:
        with suppress(OSError):
            _bring_late_files(old, folder, before)
        folder_swap.remove_tree(old)


def _fill(new: Path, folder: Path, files: Files, before: _Before, work: _Work) -> None:
    for place in sorted({parent for path in files for parent in path.parents} - {PurePosixPath()}):
        (new / place).mkdir()
        (new / place).chmod(0o755)
    unchanged = set(work.changes.unchanged)
    for path, file in files.items():
        if str(path) in unchanged and _link(folder / path, new / path):
            continue
        _write_file(new / path, file)
    empty = set(before.folders) - {parent for path in (*before.files, *before.folders) for parent in path.parents}
    for path in sorted(empty):
        if path not in files and not (new / path).exists() and not any(parent in files for parent in path.parents):
            _carried_folder(new, path, path, before)
    for source, target in sorted(work.carried.items()):
        _carried_folder(new, target.parent, source.parent, before)
        if not _link(folder / source, new / target):
            _copy(folder / source, new / target)
    new.chmod(before.mode)


def _carried_folder(new: Path, target: PurePosixPath, source: PurePosixPath, before: _Before) -> None:
    """Create a folder of the user, with the mode that it had."""
    if (new / target).is_dir():
        return
    _carried_folder(new, target.parent, source.parent, before)
    (new / target).mkdir()
    (new / target).chmod(before.folders.get(source, 0o755) | stat.S_IRWXU)


def _link(source: Path, target: Path) -> bool:
    """A second name for the same file: its times, owner and mode stay. False where the system refuses."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        return False
    return True


def _copy(source: Path, target: Path) -> None:
    import shutil  # rarely needed

    if not (source.is_symlink() or source.is_file()):
        raise CannotWrite(
            f"{source} is neither a file nor a link and cannot be carried over", "move it out of the folder"
        )
    shutil.copy2(source, target, follow_symlinks=False)


def _write_file(path: Path, file: File) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        rest = memoryview(file.content)
        while rest:
            rest = rest[os.write(handle, rest) :]
        os.fchmod(handle, _mode(file))  # the umask does not count: the folder is the same for everybody
    finally:
        os.close(handle)


def _bring_late_files(old: Path, folder: Path, before: _Before) -> None:
    """What a user added between our look and the swap lies in the old folder; it must not go with it."""
    files: dict[PurePosixPath, os.stat_result] = {}
    _walk(old, PurePosixPath(), files, {})
    for path in sorted(set(files) - set(before.files)):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        if not os.path.lexists(folder / path):
            (old / path).rename(folder / path)


def _mode(file: File) -> int:
    return 0o755 if file.executable else 0o644


def _check_paths(files: Files) -> None:
    """A path that leaves the folder, or a file where a folder is needed, is a bug of a renderer."""
    parents = {parent for path in files for parent in path.parents}
    for path in files:
        if path.is_absolute() or ".." in path.parts or not path.parts or path in parents:
            raise ValueError(f"not a path of a deployment folder: {path}")
    if MANIFEST not in files:
        raise ValueError("a deployment folder needs manifest.json")


@contextmanager
def _refusing(folder: Path) -> Iterator[None]:
    """Errors of the system as CannotWrite, with the reason in words and the path that failed."""
    try:
        yield
    except OSError as error:
        reason = _REASONS.get(error.errno or 0) or error.strerror or type(error).__name__
        place = f" ({os.fsdecode(error.filename)})" if error.filename else ""
        message = f"cannot write {folder}: {reason}{place}; what was there is unchanged"
        raise CannotWrite(message, "make room or get the permission, or choose another --out") from error
