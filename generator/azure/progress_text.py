"""The tree of a deployment as lines, and what is new in it since the last look."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from .. import catalog
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


def usual(kind: str) -> str:
    """`usually about 10 min`: how long a resource of a type takes; empty where nobody documents it."""
    row = catalog.resource_types().get(kind.lower())
    if row is None or row.minutes is None:
        return ""
    return f"usually {row.minutes} min or more" if row.or_more else f"usually about {row.minutes} min"


def tree_lines(parts: Sequence[Part]) -> list[str]:
    """A line for each part; what is inside only of those that run or failed."""
    return columns([*_rows(parts, "")], indent="  ").splitlines()


def _rows(parts: Iterable[Part], indent: str) -> Iterator[tuple[str, str, str]]:
    for part in parts:
        yield f"{indent}{_SIGNS[part.state]} {printable(part.title)}", part.state, _times(part)
        if part.state != "done":
            yield from _rows(part.parts, f"{indent}  ")


def _times(part: Part) -> str:
    return ", ".join(filter(None, (duration(part.seconds), _expected(part))))


def _expected(part: Part) -> str:
    """What to expect of a resource that is being created; modules and steps have no type that takes time."""
    return usual(part.resource.type) if part.state == "running" and not part.step else ""


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
        took, expected = duration(part.seconds) if part.state != "running" else "", _expected(part)
        more = f" after {took}" if took else f" ({expected})" if expected else ""
        lines.append(f"{printable(part.title)}: {part.state}{more}")
    return lines


def _walk(parts: Iterable[Part], depth: int) -> Iterator[tuple[Part, int]]:
    for part in parts:
        yield from _walk(part.parts, depth + 1)
        yield part, depth
