"""The one place that writes a page: as a whole or not at all, and never over a file that is not one of ours."""

from __future__ import annotations

from pathlib import Path

from ..disk import own_file
from .shell import MARK


def write(path: Path, text: str, option: str) -> None:
    """Replace the file in one step. CannotWrite leaves what was there; `option` names the file on the command line."""
    own_file.write(
        path,
        text.encode(),
        is_ours=lambda head: MARK.encode() in head,
        foreign="is not a page of CycleForge",
        hint=f"name another file with {option}",
    )
