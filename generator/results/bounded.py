"""The bytes of a file that another machine has written, as far as a limit."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable

from .unusable import Unusable


def regular_bytes(path: str, limit: int, larger: Callable[[bytes], int | None] = lambda _: None) -> bytes:
    """The content of a regular file of at most `limit` bytes; OSError where it cannot be read.

    `larger` looks at the beginning of one that has more, and gives the limit that counts for it, or None.
    """
    # Without O_NONBLOCK, opening a pipe would wait for its writer.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
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
    finally:
        os.close(handle)


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
