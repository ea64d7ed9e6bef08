"""What the actions of `cycleforge project` print alike."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from ..errors import CannotRead
from ..words.counts import first
from ..words.terminal import printable

if TYPE_CHECKING:
    from ..projects.find import Located
    from ..projects.package import Package, Payload

_SHOWN = 5
"""Names that a line shows before it only counts."""


def packaged(found: Sequence[Located]) -> tuple[list[tuple[Located, Package]], list[CannotRead]]:
    """The packages, and what keeps the others from being one."""
    from ..projects.package import package_of

    done, failures = [], []
    for each in found:
        try:
            done.append((each, package_of(each)))
        except CannotRead as error:
            failures.append(error)
    return done, failures


def print_failures(failures: Sequence[CannotRead]) -> None:
    """On standard error, each with its hint."""
    for error in failures:
        print(f"cycleforge: {printable(error.message)}", file=sys.stderr)
        if error.hint:
            print(f"  hint: {printable(error.hint)}", file=sys.stderr)


def errors_json(failures: Sequence[CannotRead]) -> list[dict[str, object]]:
    """The same as plain data; file and line where they are known."""
    return [
        {
            "file": str(getattr(error, "file", "")) or None,
            "line": getattr(error, "line", None),
            "message": error.message,
            "hint": error.hint,
        }
        for error in failures
    ]


def total_bytes(files: Mapping[PurePosixPath, Payload]) -> int:
    """Size of all files."""
    return sum(payload.size_bytes for payload in files.values())


def named(paths: Sequence[PurePosixPath]) -> str:
    """The first few, and how many more."""
    return first([printable(path.as_posix()) for path in paths], _SHOWN)
