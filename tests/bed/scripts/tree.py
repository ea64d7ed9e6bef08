"""A folder kept in memory: what was made once is written for every test that needs it, in a few milliseconds."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple


class Entry(NamedTuple):
    """A folder, a file or a link below the tree's own folder; a file has `content`, a link has `target`."""

    path: str
    mode: int
    content: bytes | None = None
    target: str | None = None


class Tree:
    def __init__(self, entries: list[Entry]) -> None:
        self.entries = entries

    @classmethod
    def of(cls, folder: Path) -> Tree:
        return cls([_entry(path, folder) for path in sorted(folder.rglob("*"))])

    def without(self, other: Tree) -> Tree:
        """What the other tree has not, or has otherwise; nothing of the other may be missing here."""
        known = set(other.entries)
        gone = {entry.path for entry in known} - {entry.path for entry in self.entries}
        assert not gone, f"a copy would still have {sorted(gone)}"
        return Tree([entry for entry in self.entries if entry not in known])

    def plant(self, folder: Path) -> None:
        """Write it into a folder, over what is there under the same names."""
        for entry in self.entries:
            path = folder / entry.path
            try:
                _write(path, entry)
            except FileExistsError:
                if entry.content is not None or entry.target is not None:
                    path.unlink()
                    _write(path, entry)


def _write(path: Path, entry: Entry) -> None:
    if entry.content is not None:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, entry.mode)
        os.fchmod(file, entry.mode)
        os.write(file, entry.content)
        os.close(file)
    elif entry.target is not None:
        path.symlink_to(entry.target)
    else:
        path.mkdir(entry.mode)


def _entry(path: Path, folder: Path) -> Entry:
    name = str(path.relative_to(folder))
    if path.is_symlink():
        return Entry(name, 0, target=str(path.readlink()))
    mode = path.stat().st_mode & 0o7777
    return Entry(name, mode, content=path.read_bytes() if path.is_file() else None)
