"""The three Chef folders of a spec travel as one archive each, `site-cookbooks.tgz` and so on.

Form: https://learn.microsoft.com/azure/cyclecloud/cluster-references/chef-reference and the archive that
Azure/cyclecloud-symphony committed at b405523: a gzip tar whose one folder at the top has the name of the Chef folder.

The same files must give the same bytes on every machine, because a version in the locker never changes: no times,
owners or modes of a checkout, and stored instead of compressed, since each release of zlib compresses differently.
"""

from __future__ import annotations

import io
import struct
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import PurePosixPath

from .payload import Payload

FOLDERS = ("data_bags", "roles", "site-cookbooks")
MAX_BYTES = 64 * 1024 * 1024
"""Content of one Chef folder; what is larger is not a recipe but belongs in `blobs/`."""
_BLOCK = 0xFFFF
_HEADER = b"\x1f\x8b\x08\x00" + bytes(4) + b"\x00\xff"
"""gzip without name and time, of no particular system. Source: RFC 1952."""


def archive(folder: str, files: Mapping[PurePosixPath, Payload]) -> bytes:
    """The `.tgz` of one Chef folder; paths are relative to it. Sorted, without empty folders."""
    top = PurePosixPath(folder)
    folders = {top, *(parent for path in files for parent in (top / path).parents if parent.parts)}
    members: dict[PurePosixPath, Payload | None] = dict.fromkeys(folders) | {
        top / path: payload for path, payload in files.items()
    }
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path, payload in sorted(members.items(), key=lambda item: item[0].parts):
            info = tarfile.TarInfo(path.as_posix())
            if payload is None:
                info.type, info.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(info)
                continue
            with payload.open() as stream:
                content = stream.read()
            info.size, info.mode = len(content), 0o755 if content.startswith(b"#!") else 0o644
            tar.addfile(info, io.BytesIO(content))
    return _gzip_stored(buffer.getvalue())


def _gzip_stored(content: bytes) -> bytes:
    """gzip of stored blocks. Source: RFC 1951, section 3.2.4."""
    blocks = [_HEADER]
    for start in range(0, len(content), _BLOCK):
        piece = content[start : start + _BLOCK]
        is_last = start + _BLOCK >= len(content)
        blocks += [struct.pack("<BHH", is_last, len(piece), len(piece) ^ 0xFFFF), piece]
    return b"".join([*blocks, struct.pack("<II", zlib.crc32(content), len(content) & 0xFFFFFFFF)])
