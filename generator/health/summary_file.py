"""The one place that writes a summary: as a whole or not at all, and never over somebody else's file."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from ..errors import CannotWrite
from .read import MARK

_HINT = "choose another --into"


def write(path: Path, content: bytes) -> None:
    """Replace the file in one step. CannotWrite leaves what was there."""
    try:
        _refuse_foreign(path)
        temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}.tmp")
        try:
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(handle)
            temporary.replace(path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
    except OSError as error:
        reason = (error.strerror or "error").lower()
        raise CannotWrite(f"cannot write {path}: {reason}; what was there is unchanged", _HINT) from error


def _refuse_foreign(path: Path) -> None:
    if path.is_dir():
        raise CannotWrite(f"{path} is a folder, not a file", _HINT)
    if not os.path.lexists(path):
        return
    if path.is_symlink() or not path.is_file():
        raise CannotWrite(f"{path} is a link or device, not a file", _HINT)
    with path.open("rb") as file:
        head = file.read(4096)
    if head and MARK.match(head) is None:
        raise CannotWrite(f"{path} was not written by `health collect`, so it is left alone", _HINT)
