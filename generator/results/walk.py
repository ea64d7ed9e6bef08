"""Files that other machines have written: each one below some paths once, and its bytes up to a limit."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence

from ..errors import CannotRead
from .problems import Unusable

MAX_FILES = 200_000
"""A folder with more files is a home folder, not the results of a cluster."""

_Identity = tuple[int, int]
"""Device and inode, which tell whether two paths are the same file."""


class Walk:
    """Yield each file below the paths once, in the order of their names, with its path as it is shown.

    Links are followed, circles are not. Raise CannotRead when a path is missing or there are more than `most` files.
    """

    def __init__(
        self, paths: Sequence[str], leave_out: str | None = None, *, most: int = MAX_FILES, what: str = "the results"
    ) -> None:
        self._paths = paths
        self._most = most
        self._what = what
        self._leave_out = _identity(leave_out) if leave_out else None
        self._seen: set[_Identity] = set()
        self._count = 0
        self.problems: list[tuple[str, Unusable]] = []
        """Paths as they are shown, with what is wrong there."""

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for path in self._paths:
            if not os.path.lexists(path):
                raise CannotRead(f"there is no file or folder {path}", "copy it from the cluster first: scp -r")
        # A stack, because folders may be deeper than functions may call each other.
        stack: list[tuple[str, tuple[_Identity, ...]]] = [(path, ()) for path in reversed(self._paths)]
        while stack:
            path, above = stack.pop()
            shown = path if path.isascii() else os.fsencode(path).decode("utf-8", "backslashreplace")
            try:
                status = os.stat(path)  # noqa: PTH116 - a Path for each of many files costs more than its content
                identity = (status.st_dev, status.st_ino)
                names = self._names(path, status, above)
            except Unusable as error:
                self.problems.append((shown, error))
                continue
            except OSError as error:
                self.problems.append((shown, _unreadable(error)))
                continue
            if identity in self._seen or (above and identity == self._leave_out):
                continue
            self._seen.add(identity)
            if names is None:
                self._count += 1
                if self._count > self._most:
                    places = ", ".join(self._paths)
                    raise CannotRead(
                        f"there are more than {self._most} files below {places}", f"name only {self._what}"
                    )
                yield path, shown
            else:
                stack += [(os.path.join(path, name), (*above, identity)) for name in reversed(names)]  # noqa: PTH118

    def _names(self, path: str, status: os.stat_result, above: tuple[_Identity, ...]) -> list[str] | None:
        """Return the sorted names in a folder; None when it is not a folder."""
        if (status.st_dev, status.st_ino) in above:
            raise Unusable("loop", "the link points back to a folder that contains it")
        return sorted(os.listdir(path)) if stat.S_ISDIR(status.st_mode) else None  # noqa: PTH208


def _identity(path: str) -> _Identity | None:
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return status.st_dev, status.st_ino


def regular_bytes(path: str, limit: int, larger: Callable[[bytes], int | None] = lambda _: None) -> bytes:
    """Return the content of a regular file of at most `limit` bytes. Raise Unusable.

    `larger` is given the beginning of a larger file, and returns the limit of such a file, or None.
    """
    try:
        # Without O_NONBLOCK, opening a pipe would wait for its writer.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        try:
            return _bounded(handle, limit, larger)
        finally:
            os.close(handle)
    except OSError as error:
        raise _unreadable(error) from None


def _bounded(handle: int, limit: int, larger: Callable[[bytes], int | None]) -> bytes:
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        raise Unusable("not_a_file", "it is a pipe, socket or device, not a file")
    content = _read(handle, limit + 1)
    if len(content) <= limit:
        return content
    most = larger(content)
    if most is not None:
        content += _read(handle, most + 1 - len(content))
    if most is None or len(content) > most:
        raise Unusable("too_large", f"it has more than {(most or limit) // 2**20} MiB")
    return content


def _unreadable(error: OSError) -> Unusable:
    kind = "loop" if error.errno == errno.ELOOP else "unreadable"
    return Unusable(kind, f"cannot read it: {(error.strerror or 'error').lower()}")


def _read(handle: int, limit: int) -> bytes:
    parts: list[bytes] = []
    while limit > 0:
        # Most results fit in the first piece; a piece is allocated before it is read.
        part = os.read(handle, min(limit, 2**22 if parts else 2**15))
        if not part:
            break
        parts.append(part)
        limit -= len(part)
    return b"".join(parts)
