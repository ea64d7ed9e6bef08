"""The heat map of pairs: one square for each two nodes, coloured by how far it is from the median."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Mapping, Sequence

from markupsafe import Markup, escape

from .scale import place

_STEPS = (-15.0, -7.0, -3.5, -1.5, 1.5, 4.0, 8.0)
"""Percent from the median: below the first is class h0, above the last h7. 3.5 and 7 are where peers are suspect."""
LEGEND = (
    ("more than 15 % below the median", "h0 box"),
    ("7 to 15 % below", "h1 box"),
    ("3.5 to 7 % below", "h2 box"),
    ("1.5 to 3.5 % below", "h3 box"),
    ("about the median", "h4 box"),
    ("above", "h6 box"),
)
_WIDTH, _LEFT, _TOP = 760.0, 92.0, 10.0
_MOST_NAMES = 60
_MOST_CELLS = 60_000
"""Squares of about 240 nodes; more cannot be told apart, and the page would grow without end."""


def heat(label: str, names: Sequence[str], values: Mapping[tuple[int, int], float], median: float, unit: str) -> Markup:
    """The map of values by two places in `names`, the smaller first; empty where it would be too large to see."""
    count = len(names)
    if count < 2 or count * count > _MOST_CELLS or median <= 0:
        return Markup("")
    size = (_WIDTH - _LEFT - 10) / count
    if size > 40:
        size = 40.0
    paths: list[list[str]] = [[] for _ in range(len(_STEPS) + 1)]
    side = place(size - (1 if size > 6 else 0.3 if size > 3 else 0))
    # A square is the start of its column and the rest from that of its row.
    across = [f"M{place(_LEFT + size * index)} " for index in range(count)]
    down = [f"{place(_TOP + size * index)}h{side}v{side}h-{side}z" for index in range(count)]
    limits = [median * (1 + step / 100) for step in _STEPS]
    # Of each row only what is right of the diagonal: the map is the same on both sides.
    rows: list[list[float | None]] = [[None] * (count - 1 - index) for index in range(count)]
    for (a, b), value in values.items():
        rows[a][b - a - 1] = round(value, 3)
        squares = paths[bisect_left(limits, value)]
        squares += (across[a] + down[b], across[b] + down[a])
    about = {"names": names, "rows": rows, "left": _LEFT, "top": _TOP, "size": size, "unit": unit}
    height = _TOP + size * count + 66
    data = escape(json.dumps(about, separators=(",", ":"), ensure_ascii=False))
    edge = place(size * count)
    parts = [
        f'<svg class="chart map" viewBox="0 0 760 {place(height)}" role="img" aria-label="{escape(label)}" '
        f'data-heat="{data}">',
        *(f'<path class="cell h{step}" d="{"".join(squares)}"/>' for step, squares in enumerate(paths) if squares),
        f'<rect class="hit" x="{place(_LEFT)}" y="{place(_TOP)}" width="{edge}" height="{edge}"/>',
        *_names(names, size),
        "</svg>",
    ]
    return Markup("".join(parts))  # noqa: S704 - every text in it was escaped


def _names(names: Sequence[str], size: float) -> list[str]:
    """Names beside the rows and below the columns, of as many nodes as have room."""
    every = max(1, -(-len(names) // _MOST_NAMES), -int(-13 // size))
    parts = []
    foot = _TOP + size * len(names) + 10
    for index in range(0, len(names), every):
        name, at = escape(names[index]), size * (index + 0.5)
        y = place(_TOP + at + 4)
        x = place(_LEFT + at)
        parts.append(f'<text x="{place(_LEFT - 6)}" y="{y}" text-anchor="end">{name}</text>')
        turned = f"rotate(-55 {x} {place(foot)})"
        parts.append(f'<text x="{x}" y="{place(foot)}" text-anchor="end" transform="{turned}">{name}</text>')
    return parts
