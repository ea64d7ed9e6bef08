"""The one place that writes a summary: as a whole or not at all, and never over someone else's file."""

from __future__ import annotations

from pathlib import Path

from ..disk import file
from .read import MARK


def write(path: Path, content: bytes) -> None:
    """Replace the file in one step. CannotWrite leaves what was there."""
    file.write_own(
        path,
        content,
        is_ours=lambda head: MARK.match(head) is not None,
        foreign="was not written by `health collect`",
        hint="choose another --into",
    )
