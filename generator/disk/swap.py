"""Replace a folder by two renames: the old one away, the new one into its place.

Between the two nothing has the name. A kill just there is healed by the next run, which puts the old folder back, so
that the old or the new one is always whole. Nothing waits for the disk: after a power failure, make the folder again.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import CannotWrite

LOCK_SECONDS = 60.0
"""How long a build waits for another one that writes into the same parent folder."""
_STALE_SECONDS = 3600.0
"""Without locks, a temporary folder of this age belongs to nobody any more."""
_NO_LOCKS = {errno.EBADF, errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EINVAL}


@contextmanager
def locked(parent: Path) -> Iterator[bool]:
    """Only one build at a time replaces folders of `parent`. Yields False where the file system has no locks.

    The lock is on the folder itself, so no lock file is left behind, and the system drops it when a process dies.
    """
    handle = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield _acquire(handle, parent)
    finally:
        os.close(handle)


def _acquire(handle: int, parent: Path) -> bool:
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                message = f"another build has been writing into {parent} for {LOCK_SECONDS:.0f} s"
                raise CannotWrite(message, "wait for it, or stop it, and build again") from None
            time.sleep(0.02)
        except OSError as error:
            if error.errno in _NO_LOCKS:
                return False
            raise
        else:
            return True


def temporary_beside(folder: Path) -> Path:
    """A new, empty sibling folder for the new content."""
    path = folder.parent / f".{folder.name}.tmp-{os.urandom(4).hex()}"
    path.mkdir(mode=0o700)
    return path


def heal(folder: Path, *, has_lock: bool) -> None:
    """Undo what a killed run left beside the folder: put back a folder that was renamed away, drop temporary ones."""
    pattern = re.compile(rf"\.{re.escape(folder.name)}\.(tmp|old)-[0-9a-f]{{8}}")
    leftovers = [entry for entry in folder.parent.iterdir() if pattern.fullmatch(entry.name)]
    for path in sorted(leftovers):
        age = time.time() - path.lstat().st_mtime
        if not has_lock and age < _STALE_SECONDS:
            continue
        if f".{folder.name}.old-" in path.name and not os.path.lexists(folder):
            path.rename(folder)
        else:
            remove_tree(path)


def replace(folder: Path, fill: Callable[[Path], None]) -> None:
    """Make a folder anew as one step; call it within `locked`, after `heal`.

    `fill` gets an empty folder beside it. Whatever fails leaves the old folder as it was.
    """
    new = temporary_beside(folder)
    try:
        fill(new)
        old = swap(new, folder)
    except BaseException:
        remove_tree(new)
        raise
    if old is not None:
        remove_tree(old)


def swap(new: Path, folder: Path) -> Path | None:
    """Put `new` in the place of `folder`. Returns where the old content is now; None if there was no folder."""
    away = folder.parent / new.name.replace(".tmp-", ".old-")
    try:
        folder.rename(away)
    except FileNotFoundError:
        new.rename(folder)
        return None
    try:
        new.rename(folder)
    except BaseException:
        if not os.path.lexists(folder):
            away.rename(folder)
        raise
    return away


def remove_tree(folder: Path) -> None:
    """Delete a folder with all its content; links are deleted, not followed. What cannot go stays for the next run."""
    if folder.is_symlink() or not folder.is_dir():
        with suppress(OSError):
            folder.unlink()
        return
    with suppress(OSError):
        folder.chmod(0o700)  # a folder that its owner closed would otherwise keep its files
        for entry in list(folder.iterdir()):
            remove_tree(entry)
        folder.rmdir()
