"""A tar that another machine sends, unpacked into an empty folder: plain files and folders, and nothing else.

Read here and not by `tarfile`: Python 3.11.2, which Debian 12 has, lacks its filter `data`, and with it every 3.11
before 3.11.13 writes outside of the folder (CVE-2025-4517). No link is ever made, so that no name leads out through
one. Only what GNU tar writes when it is asked for its own format is taken; anything else was not written by the tar
that we started. Source of the format: https://www.gnu.org/software/tar/manual/html_node/Standard.html
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace
from errno import ENAMETOOLONG
from pathlib import Path
from typing import IO

_BLOCK = 512
_PIECE = 1024**2
_PADDING = 20 * _BLOCK
"""tar fills its last record; source: https://www.gnu.org/software/tar/manual/html_node/Blocking-Factor.html"""
_MAGICS = (b"ustar  \0", b"ustar\x0000")
"""GNU's, whose names have no prefix, and POSIX's."""
_FILES, _FOLDER, _LONG_NAME, _LONG_LINK = (b"0", b"\0"), b"5", b"L", b"K"
_SPECIAL = {
    b"1": "a link", b"2": "a link", b"3": "a device", b"4": "a device", b"6": "a pipe",
}  # fmt: skip
_LONGEST_PATH_BYTES, _LONGEST_NAME_BYTES = 2048, 255
_POSITIVE, _NEGATIVE = 0x80, 0xFF
"""The first byte of GNU's binary numbers. Source: https://www.gnu.org/software/tar/manual/html_node/Extensions.html"""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\\]")
"""Control characters, those that turn the direction of a line, and the backslash, which parts names on Windows."""
_NO_CHARACTERS = "control characters or a backslash in its name"


@dataclass(frozen=True)
class Limits:
    """The most that is taken. A file that is too large or too deep is left behind; beyond the rest nothing is taken."""

    file_bytes: int = 2 * 1024**3
    bytes: int = 16 * 1024**3
    members: int = 200_000
    depth: int = 32


class CutOff(Exception):  # noqa: N818 - named by what happened
    """The archive has no end, or nothing in it: the connection was lost, or tar has failed."""


class Refused(Exception):  # noqa: N818 - named by what happened
    """Not an archive that we asked for. The message continues "HOST sent …"; what was unpacked is not to be used."""


class LeftBehind:
    """What was not unpacked: each reason with a few of the names."""

    SHOWN = 3
    LONGEST = 200

    def __init__(self) -> None:
        self._reasons: dict[str, tuple[int, list[str]]] = {}

    def add(self, name: bytes, why: str) -> None:
        """One member."""
        count, names = self._reasons.get(why, (0, []))
        if count < self.SHOWN:
            text = ascii(name[: self.LONGEST].decode("utf-8", "backslashreplace"))[1:-1]
            names.append(text if len(name) <= self.LONGEST else f"{text}...")
        self._reasons[why] = (count + 1, names)

    def lines(self) -> list[str]:
        """A line for each reason."""
        return [_line(why, count, names) for why, (count, names) in self._reasons.items()]


def _line(why: str, count: int, names: list[str]) -> str:
    more = f" and {count - len(names)} more" if count > len(names) else ""
    return f"left behind ({why}): {', '.join(names)}{more}"


@dataclass(frozen=True)
class _Header:
    name: bytes
    kind: bytes
    size: int
    mode: int
    time_s: int


def unpack(stream: IO[bytes], folder: Path, top: str, limits: Limits = Limits()) -> list[str]:
    """Unpack the archive, whose only member at the top is `top`; what was left behind, a line for each reason.

    The folder is empty and only the caller can write to it. Raises CutOff, Refused, and OSError for what cannot be
    written here.
    """
    return _Unpacking(_Source(stream, limits.bytes), folder, top.encode(), limits).run()


class _Source:
    """The stream, of which no more than `most` bytes of content are read."""

    def __init__(self, stream: IO[bytes], most: int) -> None:
        self._stream, self._left = stream, most

    def block(self) -> bytes:
        """The next header. Raises CutOff."""
        return self._exactly(_BLOCK)

    def pieces(self, size: int) -> Iterator[bytes]:
        """The content of a member, without what fills its last block. Raises CutOff, Refused."""
        self._left -= size
        if self._left < 0:
            raise Refused("more bytes than are taken in one copy")
        left = size
        while left:
            piece = self._exactly(min(left, _PIECE))
            left -= len(piece)
            yield piece
        self._exactly(-size % _BLOCK)

    def is_over(self) -> bool:
        """Whether nothing but zeros fills the last record."""
        rest = self._stream.read(_PADDING + 1)
        return len(rest) <= _PADDING and not rest.strip(b"\0")

    def _exactly(self, size: int) -> bytes:
        content = self._stream.read(size)
        if len(content) != size:
            raise CutOff
        return content


class _Unpacking:
    def __init__(self, source: _Source, folder: Path, top: bytes, limits: Limits) -> None:
        self._source, self._folder, self._top, self._limits = source, folder, top, limits
        self._members = 0
        self._folders: set[bytes] = set()
        self._absent: set[bytes] = set()
        """Folders that were left behind, and with them what is in them."""
        self._left = LeftBehind()

    def run(self) -> list[str]:
        while (header := self._next()) is not None:
            self._take(header)
        if not self._source.is_over():
            raise Refused("something behind the end of the archive")
        if not os.path.lexists(self._folder / self._top.decode()):
            if not self._members:
                raise CutOff
            raise Refused("an archive with nothing in it that can be taken")
        return self._left.lines()

    def _next(self) -> _Header | None:
        """The next member; None: the archive has ended."""
        long: dict[bytes, bytes] = {}
        """What the headers before a member hold: one for a long name of its own, one for that of a link's target."""
        while True:
            block = self._source.block()
            if not block.strip(b"\0"):
                if long or self._source.block().strip(b"\0"):
                    raise Refused("an archive that is damaged")
                return None
            header = _header(block)
            if header.kind not in (_LONG_NAME, _LONG_LINK):
                break
            if header.kind in long or header.size < len("x\0"):
                raise Refused("an archive that is damaged")
            long[header.kind] = self._long(header.size)
        self._members += 1
        if self._members > self._limits.members:
            raise Refused(f"more than {self._limits.members} files")
        return replace(header, name=long[_LONG_NAME]) if _LONG_NAME in long else header

    def _long(self, size: int) -> bytes:
        """A long name without the NUL at its end, and of one that is too long no more than tells that it is."""
        text = b""
        for piece in self._source.pieces(size):
            text += piece[: _LONGEST_PATH_BYTES + 1 - len(text)]
        return text.removesuffix(b"\0") if size <= _LONGEST_PATH_BYTES + 1 else text

    def _take(self, header: _Header) -> None:
        if len(header.name) > _LONGEST_PATH_BYTES:
            # Only its beginning is known. What is in such a folder has a longer name, and is left behind, too.
            self._leave(header, header.name, f"a path of more than {_LONGEST_PATH_BYTES} bytes")
            return
        parts = self._parts(header)
        name = b"/".join(parts)
        parent = b"/".join(parts[:-1])
        why = self._why_not(header, parts)
        if not why and parent in self._absent:
            why = "its folder was left behind"
        if not why and parent and parent not in self._folders:
            raise Refused(f"a file whose folder is missing: {_shown(name)}")
        why = why or self._make(header, self._folder / os.fsdecode(name))
        if why:
            self._leave(header, name, why)
        if header.kind == _FOLDER:
            (self._absent if why else self._folders).add(name)

    def _leave(self, header: _Header, name: bytes, why: str) -> None:
        self._left.add(name.partition(b"/")[2], why)
        for _ in self._source.pieces(header.size):
            pass

    def _make(self, header: _Header, path: Path) -> str:
        """Write it; why that is not possible here, or nothing."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        try:
            if header.kind == _FOLDER:
                path.mkdir(0o755)
                return ""
            descriptor = os.open(path, flags, 0o755 if header.mode & stat.S_IXUSR else 0o644)
        except FileExistsError:
            if any(each.name == path.name for each in path.parent.iterdir()):
                raise Refused(f"two files of one name: {_shown(os.fsencode(path.relative_to(self._folder)))}") from None
            return "this file system takes its name for that of another file"
        except OSError as error:
            if error.errno != ENAMETOOLONG:
                raise
            return "its path is too long for this machine"
        with os.fdopen(descriptor, "wb") as file:
            for piece in self._source.pieces(header.size):
                file.write(piece)
        os.utime(path, (header.time_s, header.time_s))
        return ""

    def _parts(self, header: _Header) -> list[bytes]:
        """The checked name. Raises Refused for a name or kind that no tar of ours writes."""
        if header.kind not in (*_SPECIAL, *_FILES, _FOLDER):
            raise Refused(f"a member of the kind {header.kind.decode('latin-1')!a}: {_shown(header.name)}")
        name = header.name.removesuffix(b"/") if header.kind == _FOLDER else header.name
        parts = name.split(b"/")
        if parts[0] != self._top or any(part in (b"", b".", b"..") or b"\0" in part for part in parts):
            raise Refused(f"a name that leads out of the folder: {_shown(header.name)}")
        if len(parts) == 1 and header.kind in _SPECIAL:
            raise Refused(f"{_SPECIAL[header.kind]} instead of a file or folder")
        return parts

    def _why_not(self, header: _Header, parts: list[bytes]) -> str:
        """Why the member is not made here; empty: it is made. Raises Refused for what no tar of ours writes."""
        is_special = header.kind in _SPECIAL
        if header.size and (is_special or header.kind == _FOLDER):
            raise Refused(f"a link or folder with a size: {_shown(header.name)}")
        if len(parts) > self._limits.depth:
            return f"more than {self._limits.depth} folders in each other"
        if len(parts[-1]) > _LONGEST_NAME_BYTES:
            return f"a name of more than {_LONGEST_NAME_BYTES} bytes"
        if is_special:
            return _SPECIAL[header.kind]
        if header.size > self._limits.file_bytes:
            return f"larger than {self._limits.file_bytes / 1024**3:g} GiB"
        try:
            text = parts[-1].decode()
        except UnicodeDecodeError:
            return "its name is not UTF-8"
        return _NO_CHARACTERS if _CONTROL.search(text) else ""


def _header(block: bytes) -> _Header:
    """One block of the archive. Raises Refused."""
    magic = block[257:265]
    checksum = sum(block[:148]) + 8 * ord(" ") + sum(block[156:])
    if magic not in _MAGICS or _number(block[148:156]) != checksum:
        raise Refused("an archive that is damaged, or none")
    name = block[:100].partition(b"\0")[0]
    prefix = block[345:500].partition(b"\0")[0] if magic == _MAGICS[1] else b""
    return _Header(
        name=prefix + b"/" + name if prefix else name,
        kind=block[156:157],
        size=_number(block[124:136]),
        mode=_number(block[100:108]),
        # Some file systems know no time before 1970.
        time_s=0 if block[136] == _NEGATIVE else min(_number(block[136:148]), 2**32),
    )


def _number(field: bytes) -> int:
    """Octal digits, or from 8 GiB on GNU's binary number. Raises Refused, also for a negative number."""
    if field[0] == _POSITIVE:
        return int.from_bytes(field[1:], "big")
    digits = field.strip(b" \0")
    if not re.fullmatch(rb"[0-7]*", digits):
        raise Refused("an archive that is damaged, or none")
    return int(digits or b"0", 8)


def _shown(name: bytes) -> str:
    return ascii(name[:200].decode("utf-8", "backslashreplace"))
