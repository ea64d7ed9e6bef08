"""Source archives as a tar that depends on nothing but the names and contents of the wanted members.

Everything that a hostile or broken archive may hold is refused: names that lead out of the folder, links and devices
where files are wanted, two members of one name, more bytes than the pin allows.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

MAX_ARCHIVE_BYTES = 64 * 1024**2
"""Bytes of an archive as it is downloaded; that of NHC has 0.2 MiB, that of enroot 0.1 MiB."""
MAX_PLAIN_BYTES = 256 * 1024**2
"""Bytes of an archive without its compression."""
MAX_MEMBERS = 20_000
_BLOCK = 512
_MAX_NAME_BYTES = 100
"""Bytes of a name in a ustar header without its prefix field.
Source: https://pubs.opengroup.org/onlinepubs/9699919799/utilities/pax.html"""


_COMPRESSIONS: tuple[tuple[bytes, Callable[[io.BytesIO], Any]], ...] = (
    (b"\x1f\x8b", lambda stream: gzip.GzipFile(fileobj=stream)),
    (b"BZh", bz2.BZ2File),
    (b"\xfd7zXZ\x00", lzma.LZMAFile),
)
"""First bytes → what unpacks it."""


class BadArchive(ValueError):  # noqa: N818 - named by what it is
    """It is not an archive, or not one that we take; the message completes "the archive …"."""


def normalised(content: bytes, members: Sequence[str], limit_bytes: int) -> bytes:
    """The tar of the members that match the globs: sorted, root's, without times, modes 0755 (`#!`) and 0644.

    `limit_bytes` is the most that the result may have. Raises BadArchive.
    """
    try:
        return packed(_taken(_plain(content), members, limit_bytes))
    except (tarfile.TarError, EOFError, OSError, zlib.error, lzma.LZMAError) as error:
        raise BadArchive(f"cannot be read: {error}") from error
    except (ValueError, OverflowError) as error:
        if isinstance(error, BadArchive):
            raise
        raise BadArchive(f"has a broken header: {error}") from error


def packed(files: Mapping[str, bytes]) -> bytes:
    """A ustar archive, byte for byte that of GNU tar:

        tar --format=ustar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --blocking-factor=1 -cf FILE NAMES

    Written here and not by `tarfile`, whose bytes may differ between releases of Python.
    """
    parts = []
    for name in sorted(files, key=str.encode):
        content = files[name]
        parts += [_header(name, content), content, bytes(-len(content) % _BLOCK)]
    return b"".join((*parts, bytes(2 * _BLOCK)))


def _header(name: str, content: bytes) -> bytes:
    raw = name.encode("ascii")
    if len(raw) > _MAX_NAME_BYTES:
        raise BadArchive(f"has a name of more than {_MAX_NAME_BYTES} bytes: {name}")
    mode = 0o755 if content.startswith(b"#!") else 0o644
    fields = (
        raw.ljust(100, b"\0"), b"%07o\0" % mode, b"%07o\0" % 0, b"%07o\0" % 0, b"%011o\0" % len(content),
        b"%011o\0" % 0, b" " * 8, b"0", bytes(100), b"ustar\x0000", bytes(64), b"%07o\0" % 0 * 2, bytes(155 + 12),
    )  # fmt: skip
    header = b"".join(fields)
    return header[:148] + b"%06o\0 " % sum(header) + header[156:]


# ---------------------------------------------------------------- reading


def _plain(content: bytes) -> bytes:
    """The archive without its compression, which its first bytes tell."""
    if len(content) > MAX_ARCHIVE_BYTES:
        raise BadArchive(f"has more than {MAX_ARCHIVE_BYTES} bytes")
    for magic, opener in _COMPRESSIONS:
        if content.startswith(magic):
            with opener(io.BytesIO(content)) as stream:
                plain: bytes = stream.read(MAX_PLAIN_BYTES + 1)
            if len(plain) > MAX_PLAIN_BYTES:
                raise BadArchive(f"unpacks to more than {MAX_PLAIN_BYTES} bytes")
            return plain
    if content[:256].lstrip()[:1] == b"<":
        raise BadArchive("is a web page, probably of a proxy or a sign-in page")
    return content


def _taken(plain: bytes, members: Sequence[str], limit_bytes: int) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(plain), mode="r:") as tar:
        entries = []
        for entry in tar:
            entries.append(entry)
            if len(entries) > MAX_MEMBERS:
                raise BadArchive(f"has more than {MAX_MEMBERS} members")
        names = _without_top([_safe(entry.name) for entry in entries])
        taken: dict[str, bytes] = {}
        matched: set[str] = set()
        room = limit_bytes
        for entry, name in zip(entries, names, strict=True):
            globs = {glob for glob in members if _matches(name, glob)}
            if not globs or entry.isdir():
                continue
            matched |= globs
            if entry.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or entry.issparse():
                raise BadArchive(f"has no ordinary file at {name}")
            if name in taken:
                raise BadArchive(f"has two members named {name}")
            room -= entry.size
            if room < 0:
                raise BadArchive(f"has more than the expected {limit_bytes} bytes in the wanted members")
            taken[name] = _content(tar, entry)
    unmatched = [glob for glob in members if glob not in matched]
    if unmatched:
        raise BadArchive(f"has no member {unmatched[0]}")
    return taken


def _content(tar: tarfile.TarFile, entry: tarfile.TarInfo) -> bytes:
    stream = tar.extractfile(entry)
    content = stream.read() if stream else b""
    if len(content) != entry.size:
        raise BadArchive(f"is cut off in {entry.name}")
    return content


def _safe(name: str) -> str:
    """The name, if it stays below the folder and can be written everywhere; any other spoils the whole archive."""
    parts = name.split("/")
    if name.startswith("/") or ".." in parts or not name.strip("/."):
        raise BadArchive(f"has a member outside its folder: {name!r}")
    if not (name.isascii() and name.isprintable()) or "\\" in name:
        return ""  # not ours, and no glob matches it
    return "/".join(part for part in parts if part not in ("", "."))


def _without_top(names: Sequence[str]) -> list[str]:
    """Forges put everything into one folder named after the commit; it is left out."""
    tops = {name.partition("/")[0] for name in names if name}
    if len(tops) != 1 or all("/" not in name for name in names):
        return list(names)
    return [name.partition("/")[2] for name in names]


def _matches(name: str, glob: str) -> bool:
    parts, patterns = name.split("/"), glob.split("/")
    return len(parts) == len(patterns) and all(map(fnmatchcase, parts, patterns))
