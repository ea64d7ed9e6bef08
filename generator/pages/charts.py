"""Charts as inline SVG. Colours are classes of `page.css`; every text from outside is escaped here."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from math import ceil, floor, log2, log10

from markupsafe import Markup, escape
from msgspec import Struct


class Scale(Struct, frozen=True):
    """From values between `low` and `high` to places between `start` and `end`."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    def __call__(self, value: float) -> float:
        low, high = (log2(self.low), log2(self.high)) if self.is_log else (self.low, self.high)
        at = log2(max(value, self.low)) if self.is_log else value
        if high == low:
            return (self.start + self.end) / 2
        return self.start + (at - low) / (high - low) * (self.end - self.start)


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round values from at most `low` to at least `high`: steps of 1, 2 or 5 times a power of ten."""
    span = high - low
    if span <= 0:
        span = abs(high) or 1.0
    rough = span / max(1, about)
    power = 10.0 ** floor(log10(rough))
    step = next(each * power for each in (1, 2, 5, 10) if each * power >= rough * (1 - 1e-9))
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    if last == first:
        last += 1
    return [round(place * step, 12) for place in range(first, last + 1)]


def powers_of_two(low: float, high: float, at_most: int = 7) -> list[float]:
    """Powers of two from `low` to `high`, evenly spaced."""
    first, last = floor(log2(low)), ceil(log2(high))
    step = max(1, ceil((last - first) / at_most))
    return [2.0**power for power in range(first, last + 1, step)]


def place(value: float) -> str:
    """A coordinate with one decimal at most: half the bytes, and no difference to see."""
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text


def path(points: Sequence[tuple[float, float]]) -> str:
    """The data of a path through points."""
    return "M" + "L".join(f"{place(x)} {place(y)}" for x, y in points) if points else ""


# ---------------------------------------------------------------- curves over one axis


_WIDTH, _HEIGHT = 560.0, 300.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 28.0, 14.0, 44.0
_MOST_MARKS = 80
"""Points of a curve that still get a mark of their own, with what it says."""

Words = Callable[[float], str]


class Curve(Struct, frozen=True):
    """One line. `kind` is a class of colour, with `dashed` or `faint` behind it."""

    label: str
    kind: str
    points: Sequence[tuple[float, float]]
    has_marks: bool = False


class Band(Struct, frozen=True):
    """Between which values most of many curves are: (x, lowest, highest)."""

    kind: str
    points: Sequence[tuple[float, float, float]]


class Axis(Struct, frozen=True):
    """What an axis shows, and how it names its values."""

    title: str
    words: Words
    is_log: bool = False
    from_zero: bool = False


class Level(Struct, frozen=True):
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
    down = Scale(marks_y[0], marks_y[-1], _HEIGHT - _BOTTOM, _TOP)
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
        return Scale(min(positive), max(positive), _LEFT, _WIDTH - _RIGHT, is_log=True)
    return Scale(min(xs), max(xs), _LEFT, _WIDTH - _RIGHT)


def _grid(x: Axis, y: Axis, across: Scale, down: Scale, marks_y: Sequence[float]) -> list[str]:
    parts = []
    for value in marks_y:
        at = place(down(value))
        parts.append(f'<path class="grid" d="M{place(_LEFT)} {at}H{place(_WIDTH - _RIGHT)}"/>')
        parts.append(f'<text x="{place(_LEFT - 7)}" y="{at}" dy="4" text-anchor="end">{escape(y.words(value))}</text>')
    marks_x = powers_of_two(across.low, across.high) if across.is_log else ticks(across.low, across.high, 6)
    for value in marks_x:
        if across.low <= value <= across.high:
            at, foot = place(across(value)), _HEIGHT - _BOTTOM
            parts.append(f'<path class="axis" d="M{at} {place(foot)}v4"/>')
            parts.append(f'<text x="{at}" y="{place(foot + 18)}" text-anchor="middle">{escape(x.words(value))}</text>')
    parts.append(f'<path class="axis" d="M{place(_LEFT)} {place(_HEIGHT - _BOTTOM)}H{place(_WIDTH - _RIGHT)}"/>')
    middle = place((_LEFT + _WIDTH - _RIGHT) / 2)
    parts.append(f'<text x="{middle}" y="{place(_HEIGHT - 6)}" text-anchor="middle">{escape(x.title)}</text>')
    parts.append(f'<text x="14" y="{place(_HEIGHT / 2 - 15)}" text-anchor="middle" transform="rotate(-90 14 '
                 f'{place(_HEIGHT / 2 - 15)})">{escape(y.title)}</text>')  # fmt: skip
    return parts


def _level(level: Level, down: Scale) -> str:
    at = down(level.value)
    return (
        f'<path class="rule {level.kind}" d="M{place(_LEFT)} {place(at)}H{place(_WIDTH - _RIGHT)}"/>'
        f'<text x="{place(_LEFT + 6)}" y="{place(at - 6)}">{escape(level.label)}</text>'
    )


def _mark(curve: Curve, at: float, value: float, across: Scale, down: Scale, x: Axis, y: Axis) -> str:
    tip = escape(f"{curve.label}\n{x.words(at)}: {y.words(value)} {y.title}")
    colour = curve.kind.split()[0]
    cx, cy = place(across(at)), place(down(value))
    return f'<circle class="mark {colour}" cx="{cx}" cy="{cy}" r="3.5" data-tip="{tip}"/>'


# ---------------------------------------------------------------- drawings that fit in a cell of a table


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


# ---------------------------------------------------------------- how the values of many nodes are spread


_STRIP_WIDTH = 380.0
_STRIP_EDGE = 12.0
_LANES = (0.0, -6.0, 6.0, -3.0, 3.0)
"""Dots of equal values beside each other; by the place in the list, so that the picture is always the same."""


class Marked(Struct, frozen=True):
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
    right = _STRIP_WIDTH - _STRIP_EDGE
    across = Scale(low - pad, high + pad, _STRIP_EDGE, right)
    named = {each.node: each for each in marked}
    dots = "".join(
        f"M{place(across(value))} {place(18 + _LANES[index % len(_LANES)])}h0"
        for index, (node, value) in enumerate(values.items())
        if node not in named
    )
    parts = [
        Markup('<svg width="380" height="46" viewBox="0 0 380 46" role="img" aria-label="%s">') % label,
        f'<path class="grid" d="M{place(_STRIP_EDGE)} 30H{place(right)}"/>',
        *(f'<path class="rule tone-fail" d="M{place(across(floor))} 5v27"/>' for floor in floors[:3]),
        f'<path class="rule s5" d="M{place(across(median))} 5v27"/>',
        f'<path class="dots s0" d="{dots}"/>' if dots else "",
        *(
            f'<circle class="mark {each.kind}" cx="{place(across(values[each.node]))}" cy="18" r="4.5" '
            f'data-tip="{escape(each.tip)}"/>'
            for each in marked
        ),
        f'<text x="{place(_STRIP_EDGE)}" y="43">{escape(words(min(values.values())))}</text>',
        f'<text x="{place(right)}" y="43" text-anchor="end">{escape(words(max(values.values())))}</text>',
        "</svg>",
    ]
    return Markup("".join(parts))  # noqa: S704 - every text in it was escaped


# ---------------------------------------------------------------- the heat map of pairs


_MAP_STEPS = (-15.0, -7.0, -3.5, -1.5, 1.5, 4.0, 8.0)
"""Percent from the median: below the first is class h0, above the last h7. 3.5 and 7 are where peers are suspect."""
LEGEND = (
    ("more than 15 % below the median", "h0 box"),
    ("7 to 15 % below", "h1 box"),
    ("3.5 to 7 % below", "h2 box"),
    ("1.5 to 3.5 % below", "h3 box"),
    ("about the median", "h4 box"),
    ("above", "h6 box"),
)
_MAP_WIDTH, _MAP_LEFT, _MAP_TOP = 760.0, 92.0, 10.0
_MOST_NAMES = 60
_MOST_CELLS = 60_000
"""Squares of about 240 nodes; more cannot be told apart, and the page would grow without end."""


def heat(label: str, names: Sequence[str], values: Mapping[tuple[int, int], float], median: float, unit: str) -> Markup:
    """The map of values by two places in `names`, the smaller first; empty where it would be too large to see."""
    count = len(names)
    if count < 2 or count * count > _MOST_CELLS or median <= 0:
        return Markup("")
    size = (_MAP_WIDTH - _MAP_LEFT - 10) / count
    if size > 40:
        size = 40.0
    paths: list[list[str]] = [[] for _ in range(len(_MAP_STEPS) + 1)]
    side = place(size - (1 if size > 6 else 0.3 if size > 3 else 0))
    # A square is the start of its column and the rest from that of its row.
    across = [f"M{place(_MAP_LEFT + size * index)} " for index in range(count)]
    down = [f"{place(_MAP_TOP + size * index)}h{side}v{side}h-{side}z" for index in range(count)]
    limits = [median * (1 + step / 100) for step in _MAP_STEPS]
    # Of each row only what is right of the diagonal: the map is the same on both sides.
    rows: list[list[float | None]] = [[None] * (count - 1 - index) for index in range(count)]
    for (a, b), value in values.items():
        rows[a][b - a - 1] = round(value, 3)
        squares = paths[bisect_left(limits, value)]
        squares += (across[a] + down[b], across[b] + down[a])
    about = {"names": names, "rows": rows, "left": _MAP_LEFT, "top": _MAP_TOP, "size": size, "unit": unit}
    height = _MAP_TOP + size * count + 66
    data = escape(json.dumps(about, separators=(",", ":"), ensure_ascii=False))
    edge = place(size * count)
    parts = [
        f'<svg class="chart map" viewBox="0 0 760 {place(height)}" role="img" aria-label="{escape(label)}" '
        f'data-heat="{data}">',
        *(f'<path class="cell h{step}" d="{"".join(squares)}"/>' for step, squares in enumerate(paths) if squares),
        f'<rect class="hit" x="{place(_MAP_LEFT)}" y="{place(_MAP_TOP)}" width="{edge}" height="{edge}"/>',
        *_map_names(names, size),
        "</svg>",
    ]
    return Markup("".join(parts))  # noqa: S704 - every text in it was escaped


def _map_names(names: Sequence[str], size: float) -> list[str]:
    """Names beside the rows and below the columns, of as many nodes as have room."""
    every = max(1, -(-len(names) // _MOST_NAMES), -int(-13 // size))
    parts = []
    foot = _MAP_TOP + size * len(names) + 10
    for index in range(0, len(names), every):
        name, at = escape(names[index]), size * (index + 0.5)
        y = place(_MAP_TOP + at + 4)
        x = place(_MAP_LEFT + at)
        parts.append(f'<text x="{place(_MAP_LEFT - 6)}" y="{y}" text-anchor="end">{name}</text>')
        turned = f"rotate(-55 {x} {place(foot)})"
        parts.append(f'<text x="{x}" y="{place(foot)}" text-anchor="end" transform="{turned}">{name}</text>')
    return parts
