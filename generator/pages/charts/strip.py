"""How the values of many nodes are spread: a dot for each, the median, the floors, and the outliers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from markupsafe import Markup, escape

from ...records import record
from .scale import Scale, place

WIDTH, HEIGHT = 380.0, 46.0
_EDGE = 12.0
_LANES = (0.0, -6.0, 6.0, -3.0, 3.0)
"""Dots of equal values beside each other; by the place in the list, so that the picture is always the same."""


@record
class Marked:
    """A node that gets a name: class of its colour, and what its dot says."""

    node: str
    kind: str
    tip: str


def strip(
    label: str,
    values: Mapping[str, float],
    *,
    median: float,
    floors: Sequence[float],
    marked: Sequence[Marked],
    words: Callable[[float], str],
) -> Markup:
    """One row: the scale reaches from the lowest to the highest of everything in it."""
    every = [*values.values(), median, *floors]
    low, high = min(every), max(every)
    pad = (high - low) * 0.04 or abs(high) * 0.02 or 1.0
    across = Scale(low - pad, high + pad, _EDGE, WIDTH - _EDGE)
    named = {each.node: each for each in marked}
    dots = "".join(
        f"M{place(across(value))} {place(18 + _LANES[index % len(_LANES)])}h0"
        for index, (node, value) in enumerate(values.items())
        if node not in named
    )
    parts = [
        Markup('<svg width="380" height="46" viewBox="0 0 380 46" role="img" aria-label="%s">') % label,
        f'<path class="grid" d="M{place(_EDGE)} 30H{place(WIDTH - _EDGE)}"/>',
        *(f'<path class="rule tone-fail" d="M{place(across(floor))} 5v27"/>' for floor in floors[:3]),
        f'<path class="rule s5" d="M{place(across(median))} 5v27"/>',
        f'<path class="dots s0" d="{dots}"/>' if dots else "",
        *(
            f'<circle class="mark {each.kind}" cx="{place(across(values[each.node]))}" cy="18" r="4.5" '
            f'data-tip="{escape(each.tip)}"/>'
            for each in marked
        ),
        f'<text x="{place(_EDGE)}" y="43">{escape(words(min(values.values())))}</text>',
        f'<text x="{place(WIDTH - _EDGE)}" y="43" text-anchor="end">{escape(words(max(values.values())))}</text>',
        "</svg>",
    ]
    return Markup("".join(parts))  # noqa: S704 - every text in it was escaped
