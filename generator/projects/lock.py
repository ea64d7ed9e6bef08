"""Released versions never change: the lock holds the digest of each, and a bump makes a new one.

A node remembers by script name what has run, not by content, and the locker keeps one folder per version. A version
whose content changes would run as the old one on some nodes and as the new one on others. So the state of a project is
its digest against the lock beside it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Literal

from msgspec import Struct

from ..disk import file as disk_file
from ..disk.reasons import refusing
from ..errors import CannotRead
from ..files import assets
from ..files.file import File, Files
from .content import BUILT, contents, digest, shipped_project
from .ini import VERSION, Project, ProjectUnreadable, read_project
from .local import Located
from .payload import measured
from .tree import Tree

Part = Literal["major", "minor", "patch"]
Lock = Mapping[str, Mapping[str, str]]
"""Project → version → digest."""
LOCK_NAME = "projects.lock.json"
_FORMAT = 1
_DIGEST = re.compile(r"[0-9a-f]{64}")


class LockProblem(Struct, frozen=True):
    """A project that does not agree with the lock; `fix` is the command to type."""

    project: str
    version: str
    file: Path
    line: int
    message: str
    fix: str


class Bump(Struct, frozen=True):
    """What a bump did; `old` equals `new` when the version in `project.ini` was new and only had to be recorded."""

    project: str
    old: str
    new: str
    digest: str


def read_lock(file: Path) -> Lock:
    """The lock; an absent file is an empty lock. Anything else that is not a lock raises CannotRead."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise CannotRead(f"{file}: the lock cannot be read: {error}", "Restore it from version control.") from error
    projects = content.get("projects") if isinstance(content, dict) and content.get("format") == _FORMAT else None
    if not isinstance(projects, dict) or not all(_is_versions(versions) for versions in projects.values()):
        raise CannotRead(f"{file}: not a lock of format {_FORMAT}", "Restore it from version control.")
    return projects


def _is_versions(versions: object) -> bool:
    return isinstance(versions, dict) and all(
        isinstance(value, str) and _DIGEST.fullmatch(value) for value in versions.values()
    )


def check(project: Project, current: str, lock: Lock) -> LockProblem | None:
    """Whether the lock allows this project with this digest."""
    released = lock.get(project.name, {})
    recorded = released.get(project.version)
    if recorded == current:
        return None
    if recorded is not None:
        message = f"project '{project.name}' has changed, but its version is still {project.version}"
    elif any(_numbers(version) > _numbers(project.version) for version in released):
        newest = max(released, key=_numbers)
        message = f"project '{project.name}' has version {project.version}, older than the released {newest}"
    else:
        message = f"version {project.version} of project '{project.name}' is not in the lock"
    return LockProblem(
        project.name, project.version, project.folder / "project.ini", project.version_line, message,
        f"cycleforge project bump {project.name}",
    )  # fmt: skip


def shipped_problems(names: Iterable[str], folder: Path | None = None) -> tuple[LockProblem, ...]:
    """Problems of the shipped projects with these names, in their order; `folder` holds the projects and the lock."""
    root = folder or assets.folder("projects")
    lock = read_lock(root / LOCK_NAME)
    if folder is None:
        projects = [shipped_project(name) for name in names]
    else:
        read = [read_project(root / name) for name in names]
        projects = [(project, contents(project, shipped=True)) for project in read]
    found = (check(project, digest(files), lock) for project, files in projects)
    return tuple(problem for problem in found if problem is not None)


def next_version(version: str, part: Part = "patch") -> str:
    """The following version; one that is not three numbers raises ValueError."""
    match = VERSION.fullmatch(version)
    if match is None:
        raise ValueError(f"'{version}' is not three numbers separated by dots")
    major, minor, patch = map(int, match.groups())
    following = {"major": (major + 1, 0, 0), "minor": (major, minor + 1, 0), "patch": (major, minor, patch + 1)}[part]
    return ".".join(map(str, following))


def bump(folder: Path, part: Part = "patch", *, shipped: bool = True, taken: bool = False) -> Bump | None:
    """Give a changed project a new version and record it; None when it agrees with the lock already.

    `taken`: the version in `project.ini` has another content elsewhere, whatever the lock knows. Else a version that
    the lock does not know is recorded as it stands, so a bump that was killed between its two writes is completed by
    the next one.
    """
    project = read_project(folder)
    lock_file = folder.parent / LOCK_NAME
    lock = read_lock(lock_file)
    files = contents(project, shipped=shipped)
    problem = check(project, digest(files), lock)
    if problem is None and not taken:
        return None
    released = lock.get(project.name, {})
    new = project.version
    newer_exists = any(_numbers(version) > _numbers(project.version) for version in released)
    if taken or project.version in released or newer_exists:
        base = max((project.version, *released), key=_numbers)
        try:
            new = next_version(base, part)
        except ValueError as error:
            raise ProjectUnreadable(
                folder / "project.ini",
                project.version_line,
                str(error),
                "Write the new version yourself, then run the command again.",
            ) from error
        files = _with_version(folder / "project.ini", project, new, files)
    record = {name: dict(versions) for name, versions in lock.items()}
    record.setdefault(project.name, {})[new] = digest(files)
    _write(lock_file, lock_text(record))
    return Bump(project.name, project.version, new, digest(files))


def lock_text(lock: Lock) -> bytes:
    """The lock as it is stored: projects by name, versions by number."""
    projects = {name: dict(sorted(lock[name].items(), key=lambda item: _numbers(item[0]))) for name in sorted(lock)}
    return (json.dumps({"format": _FORMAT, "projects": projects}, indent=2) + "\n").encode()


def _numbers(version: str) -> tuple[tuple[int, int | str], ...]:
    """A key that orders 1.10.0 after 1.9.0; words sort after numbers."""
    return tuple((0, int(part)) if part.isdigit() else (1, part) for part in re.split(r"[._-]", version))


def _with_version(file: Path, project: Project, new: str, files: Files) -> Files:
    """Replace the version in its line of `project.ini`, leaving every other byte; the files as they are then."""
    lines = file.read_bytes().split(b"\n")
    place = project.version_line - 1
    head, equals, tail = lines[place].partition(b"=")
    lines[place] = head + equals + tail.replace(project.version.encode(), new.encode(), 1)
    content = b"\n".join(lines)
    _write(file, content)
    return files | {PurePosixPath("project.ini"): File(content)}


def _write(path: Path, content: bytes) -> None:
    with refusing(f"cannot write {path}", "get write permission or free some space, and run the command again"):
        disk_file.write(path, content)


class Release(Struct, frozen=True):
    """What the lock says. `versions`: the released ones with their digests."""

    digest: str
    state: Literal["released", "changed", "not recorded"]
    versions: Mapping[str, str]


def release(found: Located, project: Project) -> Release:
    """The state of a project; raises CannotRead."""
    current = digest(shipped_project(project.name)[1]) if found.is_shipped else folder_digest(project)
    versions = read_lock(found.folder.parent / LOCK_NAME).get(project.name, {})
    recorded = versions.get(project.version)
    if recorded is None:
        return Release(current, "not recorded", versions)
    return Release(current, "released" if recorded == current else "changed", versions)


def folder_digest(project: Project) -> str:
    """What `digest(contents(project, shipped=False))` gives, without holding a large blob in memory."""
    files = Tree(project.folder).files(PurePosixPath(), without=BUILT)
    total = hashlib.sha256()
    for path, file in sorted(
        (path.as_posix().encode("utf-8", "surrogateescape"), file) for path, file in files.items()
    ):
        payload = measured(file)
        total.update(b"%d:%s\n%d:" % (len(path), path, payload.size_bytes))
        for piece in payload.pieces():
            total.update(piece)
    return total.hexdigest()
