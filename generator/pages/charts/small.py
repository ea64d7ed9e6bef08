"""Drawings that fit in a cell of a table: a bar against its floor, and a line of runs."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup, escape

from .scale import Scale, path, place

_BAR_WIDTH, _SPARK_WIDTH, _SPARK_HEIGHT = 260.0, 170.0, 34.0


def bar(label: str, value: float, floor: float | None, most: float, kind: str) -> Markup:
    """A bar from zero to the value, of at most `most`, with a line where the floor is."""
    across = Scale(0, most or 1, 0, _BAR_WIDTH)
    rule = "" if floor is None else f'<path class="rule ink" d="M{place(across(floor))} 0v22"/>'
    filled = place(max(1.0, across(max(value, 0))))
    return Markup(  # noqa: S704 - the label is escaped, the rest is numbers and names of classes
        f'<svg width="260" height="22" viewBox="0 0 260 22" role="img" aria-label="{escape(label)}">'
        f'<rect class="track" width="260" height="14" y="4" rx="3"/>'
        f'<rect class="bar {kind}" width="{filled}" height="14" y="4" rx="3"/>{rule}</svg>'
    )


def spark(label: str, points: Sequence[tuple[float, str, str]]) -> Markup:
    """Values in their order, each with its class of colour and what its dot says. The scale starts at the lowest."""
    values = [value for value, _, _ in points]
    low, high = min(values), max(values)
    across = Scale(0, max(1, len(points) - 1), 6, _SPARK_WIDTH - 6)
    # A tenth of the value is the least that the height stands for: noise must not look like a fall.
    room = max(high - low, abs(high) * 0.1) or 1.0
    middle = (low + high) / 2
    down = Scale(middle - room / 2, middle + room / 2, _SPARK_HEIGHT - 6, 6)
    line = path([(across(index), down(value)) for index, value in enumerate(values)])
    dots = "".join(
        f'<circle class="mark {kind}" cx="{place(across(index))}" cy="{place(down(value))}" r="3" '
        f'data-tip="{escape(tip)}"/>'
        for index, (value, kind, tip) in enumerate(points)
    )
    return Markup(  # noqa: S704 - texts are escaped
        f'<svg width="170" height="34" viewBox="0 0 170 34" role="img" aria-label="{escape(label)}">'
        f'<path class="curve s5 faint" d="{line}"/>{dots}</svg>'
    )
