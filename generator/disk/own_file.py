"""A file that only its own kind may replace: written as a whole or not at all, and never over someone else's."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from ..errors import CannotWrite
from . import file
from .reasons import refusing

_HEAD_BYTES = 4096


def write(path: Path, content: bytes, *, is_ours: Callable[[bytes], bool], foreign: str, hint: str) -> None:
    """Replace the file in one step. CannotWrite leaves what was there.

    `is_ours` looks at the first bytes of the file that is there; one that is not ours `foreign` ("is not a page").
    """
    with refusing(f"cannot write {path}", hint):
        if refusal := _refusal(path, is_ours, foreign):
            raise CannotWrite(f"{path} {refusal}", hint)
        file.write(path, content)


def _refusal(path: Path, is_ours: Callable[[bytes], bool], foreign: str) -> str:
    if path.is_dir():
        return "is a folder, not a file"
    if not os.path.lexists(path):
        return ""
    if path.is_symlink() or not path.is_file():
        return "is a link or device, not a file"
    with path.open("rb") as stream:
        head = stream.read(_HEAD_BYTES)
    return f"{foreign}, so it is left unchanged" if head and not is_ours(head) else ""
