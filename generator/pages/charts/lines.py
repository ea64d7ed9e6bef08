"""Curves over one axis: sweeps of message sizes, and what changes over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from markupsafe import Markup, escape

from ...records import record
from .scale import Scale, path, place, powers_of_two, ticks

WIDTH, HEIGHT = 560.0, 300.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 28.0, 14.0, 44.0
_MOST_MARKS = 80
"""Points of a curve that still get a mark of their own, with what it says."""

Words = Callable[[float], str]


@record
class Curve:
    """One line. `kind` is a class of colour, with `dashed` or `faint` behind it."""

    label: str
    kind: str
    points: Sequence[tuple[float, float]]
    has_marks: bool = False


@record
class Band:
    """Between which values most of many curves are: (x, lowest, highest)."""

    kind: str
    points: Sequence[tuple[float, float, float]]


@record
class Axis:
    """What an axis shows, and how it names its values."""

    title: str
    words: Words
    is_log: bool = False
    from_zero: bool = False


@record
class Level:
    """A horizontal line across the chart."""

    label: str
    kind: str
    value: float


def chart(
    label: str, x: Axis, y: Axis, curves: Sequence[Curve], *, bands: Sequence[Band] = (), levels: Sequence[Level] = ()
) -> Markup:
    """The whole drawing; an empty text where there is not a single point."""
    xs = [each for curve in curves for each, _ in curve.points] + [p[0] for band in bands for p in band.points]
    ys = [each for curve in curves for _, each in curve.points] + [v for b in bands for p in b.points for v in p[1:]]
    ys += [level.value for level in levels]
    if not xs or not ys:
        return Markup("")
    across = _across(xs, x)
    marks_y = ticks(0 if y.from_zero else min(ys), max(ys))
    down = Scale(marks_y[0], marks_y[-1], HEIGHT - _BOTTOM, _TOP)
    parts = [
        Markup('<svg class="chart" viewBox="0 0 560 300" role="img" aria-label="%s">') % label,
        *_grid(x, y, across, down, marks_y),
    ]
    for band in bands:
        upper = [(across(at), down(high)) for at, _, high in band.points]
        lower = [(across(at), down(low)) for at, low, _ in reversed(band.points)]
        parts.append(f'<path class="band {band.kind}" d="{path([*upper, *lower])}Z"/>')
    parts += [_level(each, down) for each in levels]
    for curve in curves:
        parts.append(
            f'<path class="curve {curve.kind}" d="{path([(across(at), down(value)) for at, value in curve.points])}"/>'
        )
    for curve in curves:
        if curve.has_marks and len(curve.points) <= _MOST_MARKS:
            parts += [_mark(curve, at, value, across, down, x, y) for at, value in curve.points]
    parts.append("</svg>")
    return Markup("".join(parts))  # noqa: S704 - every text in it was escaped


def _across(xs: Sequence[float], axis: Axis) -> Scale:
    positive = [value for value in xs if value > 0]
    if axis.is_log and positive:
        return Scale(min(positive), max(positive), _LEFT, WIDTH - _RIGHT, is_log=True)
    return Scale(min(xs), max(xs), _LEFT, WIDTH - _RIGHT)


def _grid(x: Axis, y: Axis, across: Scale, down: Scale, marks_y: Sequence[float]) -> list[str]:
    parts = []
    for value in marks_y:
        at = place(down(value))
        parts.append(f'<path class="grid" d="M{place(_LEFT)} {at}H{place(WIDTH - _RIGHT)}"/>')
        parts.append(f'<text x="{place(_LEFT - 7)}" y="{at}" dy="4" text-anchor="end">{escape(y.words(value))}</text>')
    marks_x = powers_of_two(across.low, across.high) if across.is_log else ticks(across.low, across.high, 6)
    for value in marks_x:
        if across.low <= value <= across.high:
            at, foot = place(across(value)), HEIGHT - _BOTTOM
            parts.append(f'<path class="axis" d="M{at} {place(foot)}v4"/>')
            parts.append(f'<text x="{at}" y="{place(foot + 18)}" text-anchor="middle">{escape(x.words(value))}</text>')
    parts.append(f'<path class="axis" d="M{place(_LEFT)} {place(HEIGHT - _BOTTOM)}H{place(WIDTH - _RIGHT)}"/>')
    middle = place((_LEFT + WIDTH - _RIGHT) / 2)
    parts.append(f'<text x="{middle}" y="{place(HEIGHT - 6)}" text-anchor="middle">{escape(x.title)}</text>')
    parts.append(f'<text x="14" y="{place(HEIGHT / 2 - 15)}" text-anchor="middle" transform="rotate(-90 14 '
                 f'{place(HEIGHT / 2 - 15)})">{escape(y.title)}</text>')  # fmt: skip
    return parts


def _level(level: Level, down: Scale) -> str:
    at = down(level.value)
    return (
        f'<path class="rule {level.kind}" d="M{place(_LEFT)} {place(at)}H{place(WIDTH - _RIGHT)}"/>'
        f'<text x="{place(_LEFT + 6)}" y="{place(at - 6)}">{escape(level.label)}</text>'
    )


def _mark(curve: Curve, at: float, value: float, across: Scale, down: Scale, x: Axis, y: Axis) -> str:
    tip = escape(f"{curve.label}\n{x.words(at)}: {y.words(value)} {y.title}")
    colour = curve.kind.split()[0]
    cx, cy = place(across(at)), place(down(value))
    return f'<circle class="mark {colour}" cx="{cx}" cy="{cy}" r="3.5" data-tip="{tip}"/>'
