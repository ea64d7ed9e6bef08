"""The files of a project folder as they are on disk, links followed as long as they stay inside, and their names.

Azure: a blob's name has 1 to 1024 characters and at most 254 parts, and no part should end with a dot. It turns `\\`
into `/` in some clients, and what CycleCloud and azcopy make of other characters is not known, so they are refused.
Source: https://learn.microsoft.com/rest/api/storageservices/naming-and-referencing-containers--blobs--and-metadata
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from .ini import ProjectUnreadable

MAX_FILES = 100_000
"""Files of one project. A few links to folders that hold links can stand for more files than anybody could upload."""
_IGNORED_NAMES = {".git", ".DS_Store", "__pycache__", ".shellcheckrc"}
_IGNORED_SUFFIXES = (".pyc", ".swp", "~")


def is_dropping(name: str) -> bool:
    """Whether an editor or a system left a file or folder of this name behind."""
    return name in _IGNORED_NAMES or name.endswith(_IGNORED_SUFFIXES)


class Tree:
    """A project folder. Every method raises ProjectUnreadable for what cannot be read or leads out."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.left_out: list[PurePosixPath] = []
        """Files and folders that were met and are not part of the project."""
        self._root = folder.resolve()

    def names(self, below: PurePosixPath) -> list[str]:
        """What is in one folder, sorted; nothing where there is no such folder."""
        with _readable(self.folder / below):
            place = self.folder / below
            return sorted(os.listdir(place)) if place.is_dir() else []  # noqa: PTH208 - names are enough

    def _entries(self, below: PurePosixPath) -> list[os.DirEntry[str]]:
        """What is in a folder that is there, sorted by name."""
        with _readable(self.folder / below), os.scandir(self.folder / below) as entries:
            return sorted(entries, key=lambda entry: entry.name)

    def files(self, below: PurePosixPath, without: PurePosixPath | None = None) -> dict[PurePosixPath, Path]:
        """Every file below a folder by its path in the project, and the real file; `without` is passed over."""
        found: dict[PurePosixPath, Path] = {}
        start = self.folder / below
        if not start.is_dir():
            return found
        pending: list[tuple[PurePosixPath, tuple[Path, ...]]] = [(below, (self.real(below),))]
        while pending:
            place, chain = pending.pop()
            for entry in self._entries(place):
                path = place / entry.name
                if path == without:
                    continue
                if is_dropping(entry.name):
                    self.left_out.append(path)
                    continue
                # Only a link leads elsewhere; resolving every path costs more than reading the files.
                real = self.real(path) if entry.is_symlink() else chain[-1] / entry.name
                if real.is_dir():
                    self._demand_end(path, real, chain)
                    pending.append((path, (*chain, real)))
                elif real.is_file():
                    found[path] = real
                else:
                    raise ProjectUnreadable(self.folder / path, None, "is neither a file nor a folder")
                if len(found) + len(pending) > MAX_FILES:
                    raise ProjectUnreadable(
                        start, None, f"has more than {MAX_FILES} files", "Check for repeated links."
                    )
        return found

    def real(self, path: PurePosixPath) -> Path:
        """Where a file or folder really is: the same, or what a link names inside the project."""
        place = self.folder / path
        with _readable(place):
            try:
                real = place.resolve(strict=True)
            except FileNotFoundError:
                if place.is_symlink():
                    target = os.readlink(place)  # noqa: PTH115 - as it is written
                    raise ProjectUnreadable(
                        place, None, f"the link points to '{target}', which does not exist", "Remove it, or fix it."
                    ) from None
                raise
            except RuntimeError:  # Path.resolve before Python 3.13
                raise ProjectUnreadable(place, None, "the link points to itself", "Remove it, or fix it.") from None
        if not real.is_relative_to(self._root):
            raise ProjectUnreadable(
                place, None, "the link points outside the project", "Put a copy of the file in its place."
            )
        return real

    def _demand_end(self, path: PurePosixPath, real: Path, chain: tuple[Path, ...]) -> None:
        """`chain`: the real folders on the way, the last one holds `path`."""
        if real in chain or chain[-1].is_relative_to(real):
            raise ProjectUnreadable(
                self.folder / path, None, "the link points to a folder that contains it", "Remove the link."
            )


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ProjectUnreadable(path, None, f"cannot be read: {error.strerror}") from error


MAX_CHARACTERS, MAX_PARTS = 1024, 254


def flaw(name: str) -> tuple[str, str] | None:
    """(what is wrong with a blob's whole name, what to do), or None when it may be used."""
    parts = name.split("/")
    if not all(" " <= character <= "~" for character in name):
        return "the name has characters outside printable ASCII", "Rename it, and what refers to it."
    if "\\" in name:
        return "the name has a backslash, which clients treat as '/'", "Rename it, and what refers to it."
    if any(part in ("", ".", "..") for part in parts):
        return "the name has an empty part, '.' or '..'", "Write the path without it."
    for part in parts:
        if part.endswith((".", " ")):
            kind = "a dot" if part.endswith(".") else "a space"
            return f"'{part}' ends with {kind}, which some clients drop", "Rename it."
    if len(name) > MAX_CHARACTERS:
        text = f"the name in the locker would have {len(name)} characters, {MAX_CHARACTERS} are allowed"
        return text, "Shorten the names of its folders."
    if len(parts) > MAX_PARTS:
        text = f"the name in the locker would have {len(parts)} parts, {MAX_PARTS} are allowed"
        return text, "Use fewer nested folders."
    return None
