"""The one place that writes a summary: as a whole or not at all, and never over someone else's file."""

from __future__ import annotations

import os
from pathlib import Path

from ..disk import file
from ..disk.reasons import refusing
from ..errors import CannotWrite
from .read import MARK

_HINT = "choose another --into"


def write(path: Path, content: bytes) -> None:
    """Replace the file in one step. CannotWrite leaves what was there."""
    with refusing(f"cannot write {path}", _HINT):
        _refuse_foreign(path)
        file.write(path, content)


def _refuse_foreign(path: Path) -> None:
    if path.is_dir():
        raise CannotWrite(f"{path} is a folder, not a file", _HINT)
    if not os.path.lexists(path):
        return
    if path.is_symlink() or not path.is_file():
        raise CannotWrite(f"{path} is a link or device, not a file", _HINT)
    with path.open("rb") as stream:
        head = stream.read(4096)
    if head and MARK.match(head) is None:
        raise CannotWrite(f"{path} was not written by `health collect`, so it is left unchanged", _HINT)
