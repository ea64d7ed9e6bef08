"""The one place that writes a page: as a whole or not at all, and never over a file that is not one of ours."""

from __future__ import annotations

import os
from pathlib import Path

from ..disk import file
from ..disk.reasons import refusing
from ..errors import CannotWrite
from .shell import MARK

_HEAD = 4096


def write(path: Path, text: str, option: str) -> None:
    """Replace the file in one step. CannotWrite leaves what was there; `option` names the file on the command line."""
    hint = f"name another file with {option}"
    with refusing(f"cannot write {path}", hint):
        _refuse_foreign(path, hint)
        file.write(path, text.encode())


def _refuse_foreign(path: Path, hint: str) -> None:
    if path.is_dir():
        raise CannotWrite(f"{path} is a folder, not a file", hint)
    if not os.path.lexists(path):
        return
    if path.is_symlink() or not path.is_file():
        raise CannotWrite(f"{path} is a link or device, not a file", hint)
    with path.open("rb") as stream:
        head = stream.read(_HEAD)
    if head and MARK.encode() not in head:
        raise CannotWrite(f"{path} is not a page of CycleForge, so it is left unchanged", hint)
