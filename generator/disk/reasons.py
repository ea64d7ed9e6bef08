"""Why the system refused to write, in words, and as the error that ends the program."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import CannotWrite

_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EACCES: "no permission",
    errno.EPERM: "no permission",
    errno.EROFS: "the file system is read-only",
    errno.ENOTDIR: "a part of the path is a file, not a folder",
    errno.EEXIST: "a part of the path is a file, not a folder",
    errno.EISDIR: "a folder has this name",
    errno.ENAMETOOLONG: "the name is too long for the file system",
    errno.EFBIG: "a file would be larger than allowed",
    errno.ELOOP: "the path contains a loop of links",
}


def reason(error: OSError) -> str:
    """For example `the disk is full`; the system's own words where we have none."""
    return _REASONS.get(error.errno or 0) or (error.strerror or type(error).__name__).lower()


@contextmanager
def refusing(what: str, hint: str, *, unchanged: bool = True) -> Iterator[None]:
    """Errors of the system as CannotWrite: `<what>: <reason> (<path that failed>)`.

    `unchanged`: what was there before is as it was, and the message says so.
    """
    try:
        yield
    except OSError as error:
        path = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes | os.PathLike) else ""
        place = f" ({path})" if path and path not in what else ""
        after = "; what was there is unchanged" if unchanged else ""
        raise CannotWrite(f"{what}: {reason(error)}{place}{after}", hint) from error
