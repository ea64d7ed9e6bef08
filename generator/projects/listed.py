"""The project blobs that `[blobs]` lists: names and patterns become files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from .content import BLOBS, Missing
from .ini import Project, ProjectUnreadable
from .tree import Tree, is_dropping


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


def is_pattern(entry: str) -> bool:
    """Whether an entry of the list is a pattern rather than a name."""
    return any(character in entry for character in "*?[")


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
