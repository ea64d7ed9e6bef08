"""What the actions of `cycleforge project` print alike."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from ..errors import CannotRead
from ..problems.text import printable

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


def size(size_bytes: int) -> str:
    """For people: `512 B`, `12 KiB`, `2.0 GiB`."""
    if size_bytes < 1024:
        return f"{size_bytes} B"
    amount, unit = size_bytes / 1024, "KiB"
    for unit in ("KiB", "MiB", "GiB"):  # noqa: B007 - the unit that fits stays
        if amount < 1024:
            break
        amount /= 1024
    else:
        amount *= 1024
    return f"{amount:.0f} {unit}" if unit == "KiB" else f"{amount:.1f} {unit}"


def count(number: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def names(paths: Sequence[PurePosixPath]) -> str:
    """The first few, and how many more."""
    shown = ", ".join(printable(path.as_posix()) for path in paths[:_SHOWN])
    return shown if len(paths) <= _SHOWN else f"{shown} and {len(paths) - _SHOWN} more"
