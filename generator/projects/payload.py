"""What is uploaded under one name: its bytes, or where they are, with size and checksum."""

from __future__ import annotations

import hashlib
import io
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from .ini import ProjectUnreadable


@dataclass(frozen=True)
class Payload:
    """One file to upload: bytes that were made, or a file on disk that is never read as a whole.

    Two are equal when their contents are.
    """

    size_bytes: int
    md5: bytes
    """16 bytes, of the content: the checksum that Azure keeps, and the manifest's."""
    content: bytes | None = field(default=None, compare=False, repr=False)
    """Small content that was made or verified."""
    path: Path | None = field(default=None, compare=False)
    """Else where it is."""
    executable: bool = field(default=False, compare=False)
    """Whether the source is; a locker keeps no modes, a build on disk does."""
    stamp: tuple[int, ...] = field(default=(), compare=False, repr=False)
    """Of a file on disk, taken before it was measured: it changes when the file does."""

    def open(self) -> BinaryIO:
        """A fresh stream that can seek; raises ProjectUnreadable."""
        if self.content is not None:
            return io.BytesIO(self.content)
        if self.path is None:
            raise ValueError("a payload needs content or a path")
        return _opened(self.path)

    def pieces(self) -> Iterator[bytes]:
        """The content, a quarter of a MiB at a time; raises ProjectUnreadable."""
        with self.open() as stream:
            while piece := stream.read(1 << 18):
                yield piece

    @property
    def is_unchanged(self) -> bool:
        """Whether the file on disk is still the one that was measured."""
        try:
            return self.path is None or _stamp(self.path.stat()) == self.stamp
        except OSError:
            return False


def made(content: bytes, *, executable: bool = False) -> Payload:
    return Payload(len(content), _md5(content).digest(), content=content, executable=executable)


def measured(path: Path) -> Payload:
    """The payload of a file on disk, read once in pieces; raises ProjectUnreadable."""
    with _opened(path) as stream:
        try:
            status = os.fstat(stream.fileno())
            md5 = hashlib.file_digest(stream, _md5).digest()
            size_bytes = stream.tell()
        except OSError as error:
            raise ProjectUnreadable(path, None, f"cannot be read: {error.strerror}") from error
    return Payload(size_bytes, md5, path=path, executable=bool(status.st_mode & stat.S_IXUSR), stamp=_stamp(status))


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _md5(content: bytes = b"") -> hashlib._Hash:
    return hashlib.md5(content, usedforsecurity=False)


def _opened(path: Path) -> io.BufferedReader:
    try:
        # Not blocking: someone may have put a pipe there.
        stream = open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")  # noqa: PTH123, SIM115
    except OSError as error:
        raise ProjectUnreadable(path, None, f"cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        stream.close()
        raise ProjectUnreadable(path, None, "is neither a file nor a folder")
    return stream
