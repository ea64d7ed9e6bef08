"""The tree of a deployment as lines, and what is new in it since the last look."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..words.terminal import columns, printable
from .operation_tree import Part

_SIGNS = {"running": "…", "done": "✓", "failed": "✗", "canceled": "-"}


def duration(seconds: float | None) -> str:
    """`12 s`, `4 min 12 s`, `1 h 3 min`."""
    if seconds is None:
        return ""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def tree_lines(parts: Sequence[Part]) -> list[str]:
    """A line for each part; what is inside only of those that run or failed."""
    return columns([*_rows(parts, "")], indent="  ").splitlines()


def _rows(parts: Iterable[Part], indent: str) -> Iterator[tuple[str, str, str]]:
    for part in parts:
        yield f"{indent}{_SIGNS[part.state]} {printable(part.title)}", part.state, duration(part.seconds)
        if part.state != "done":
            yield from _rows(part.parts, f"{indent}  ")


def news(parts: Sequence[Part], said: dict[str, str]) -> list[str]:
    """A line for each part whose state is new; `said` is what was said before, and is brought up to date.

    A resource that ended well is said only with its module; a step of the first boot always.
    """
    lines = []
    for part, depth in _walk(parts, 0):
        before, key = said.get(part.resource.id.lower()), part.resource.id.lower()
        if before == part.state or (depth and part.state == "done" and not part.step):
            continue
        said[key] = part.state
        took = duration(part.seconds) if part.state != "running" else ""
        lines.append(f"{printable(part.title)}: {part.state}{f' after {took}' if took else ''}")
    return lines


def _walk(parts: Iterable[Part], depth: int) -> Iterator[tuple[Part, int]]:
    for part in parts:
        yield from _walk(part.parts, depth + 1)
        yield part, depth
