"""Charts of the newest runs: collectives over the size of their messages, and everything that changes with time."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from ...pages.charts import Axis, Band, Curve, Level, chart
from ...pages.shell import Drawing, Drawings, Part
from ...results.hostlist import natural_key
from ..assess import Assessment
from ..figures import Measured
from ..record import Run, Series
from ..shown import figure, message_size, moment, with_unit
from . import pairs

PREFIX, IN_PLACE, PUBLISHED, FLOOR = "busbw ", "in place ", "published ", "floor "
"""Series of a collective. `expected` of a check is what a published figure calls healthy; its floor is the last one."""
_EARLIER = 3
"""Earlier runs of the same job that are drawn faintly."""


def collectives(assessment: Assessment) -> Part | None:
    """Return a chart for each collective, with its floor and the published curve."""
    charts = [
        drawing
        for run, checks in assessment.current
        for curve in run.series
        if curve.name.startswith(PREFIX) and len(curve.xs) > 1
        for drawing in _charts(assessment, run, checks, curve)
    ]
    intro = "Bus bandwidth over the message size, as nccl-tests defines it: independent of the number of ranks."
    return Part("collectives", "Collectives", (Drawings(tuple(charts)),), intro) if charts else None


def _charts(assessment: Assessment, run: Run, checks: list[Measured], curve: Series) -> list[Drawing]:
    collective = curve.name.removeprefix(PREFIX)
    curves: list[Curve] = []
    legend = [(f"run {run.run}", "s0")]
    earlier = [other for other in assessment.runs if other.place == run.place and other is not run][-_EARLIER:]
    for other in earlier:
        curves += [Curve("", "s0 faint", _points(each)) for each in other.series if each.name == curve.name and each.xs]
    if curves:
        words = "the run before" if len(curves) == 1 else f"the {len(curves)} runs before"
        legend.append((words, "s0 faint"))
    for prefix, kind in ((IN_PLACE, "s5"), (PUBLISHED, "s2 dashed")):
        for each in run.series:
            if each.name == prefix + collective and each.xs:
                curves.append(Curve(prefix.strip(), kind, _points(each), has_marks=prefix == PUBLISHED))
                legend.append((prefix.strip(), kind))
    curves.append(Curve(f"run {run.run}", "s0", _points(curve), has_marks=True))
    levels, source = _levels(collective, run, checks, curve.unit)
    legend += [(level.label.rsplit(" ", 2)[0], level.kind) for level in levels]
    svg = chart(
        f"{collective}, bus bandwidth over message size",
        Axis("message size", message_size if curve.x_unit in ("bytes", "B") else figure, is_log=True),
        Axis(curve.unit, figure, from_zero=True),
        curves,
        levels=levels,
    )
    if not svg:
        return []
    where = f"{len(run.nodes)} nodes" if len(run.nodes) != 1 else "1 node"
    caption = f"{run.label}, {where}, {moment(run.started)} UTC" + (f". Judged by: {source}" if source else "")
    return [Drawing(collective, svg, tuple(legend), caption)]


def _points(each: Series) -> list[tuple[float, float]]:
    return sorted(zip(each.xs, each.ys, strict=True))


def _levels(collective: str, run: Run, checks: list[Measured], unit: str) -> tuple[list[Level], str]:
    """Return what a collective should reach at the judged size, and the source of that."""
    judged = next((each for each in checks if each.subject == collective and each.unit == unit), None)
    if judged is None:
        return [], ""
    found = [each.ys[-1] for each in run.series if (each.name, each.unit) == (FLOOR + collective, unit) and each.ys][:1]
    levels = [Level(f"floor {with_unit(value, unit)}", "s1 dashed", value) for value in found]
    expected = [value for value in judged.floors[-1:] if value not in found]
    levels += [Level(f"expected {with_unit(value, unit)}", "s3 dashed", value) for value in expected]
    return levels, "; ".join(judged.sources)


# ---------------------------------------------------------------- over time

_DRAWN_ELSEWHERE = (PREFIX, IN_PLACE, PUBLISHED, pairs.PREFIX)
_COLOURS = ("s1", "s3", "s2", "s4")
"""Colours of the nodes that are farthest from the others."""
_FEW = 6
"""Up to so many curves are drawn one by one; of more, the range and the farthest ones."""
_LOWEST_MATTERS = ("clock", "busbw", "bandwidth", "throughput", "tokens")
_UNITS = {"C": "°C", "Celsius": "°C"}
_MOST_CHARTS = 40


def over_time(assessment: Assessment) -> Part | None:
    """Return a chart for each kind of curve that is drawn nowhere else: temperatures, clocks and others."""
    charts: list[Drawing] = []
    for run, _ in assessment.current:
        kinds: dict[tuple[str, str, str], list[Series]] = {}
        for each in run.series:
            if not each.name.startswith(_DRAWN_ELSEWHERE) and len(each.xs) > 1:
                kinds.setdefault((each.name, each.unit, each.x_unit), []).append(each)
        for (name, unit, x_unit), found in kinds.items():
            if len(charts) < _MOST_CHARTS:
                charts += _of_kind(run, name, unit, x_unit, found)
    intro = (
        "Shaded is the range of all nodes, the line in it is their median; nodes that are farthest from it have lines "
        "of their own."
    )
    return Part("time", "Temperatures, clocks and other curves", (Drawings(tuple(charts)),), intro) if charts else None


def _of_kind(run: Run, name: str, unit: str, x_unit: str, found: Sequence[Series]) -> list[Drawing]:
    of_node = {_label(each, place): each for place, each in enumerate(found)}
    bands: list[Band] = []
    curves: list[Curve] = []
    legend: list[tuple[str, str]] = []
    if len(of_node) <= _FEW:
        chosen = sorted(of_node, key=natural_key)
    else:
        at, low, middle, high = _range(found)
        bands.append(Band("s0", list(zip(at, low, high, strict=True))))
        curves.append(Curve("median", "s0", list(zip(at, middle, strict=True))))
        legend += [(f"range of {len(of_node)} {_sort(found)}", "s0 box"), ("median", "s0")]
        chosen = _farthest(of_node, name)
    colours = _COLOURS if bands else ("s0", *_COLOURS, "s5")
    for label, colour in zip(chosen, colours, strict=False):
        curves.append(Curve(label, colour, _points(of_node[label])))
        legend.append((label, colour))
    svg = chart(
        f"{name} of {len(of_node)} {_sort(found)}",
        _across(x_unit),
        Axis(_UNITS.get(unit, unit), figure),
        curves,
        bands=bands,
    )
    return [Drawing(name, svg, tuple(legend), f"{run.label}, {moment(run.started)} UTC")] if svg else []


def _across(x_unit: str) -> Axis:
    if x_unit in ("bytes", "B"):
        return Axis("message size", message_size, is_log=True)
    return Axis({"s": "seconds since the start", "": "step"}.get(x_unit, x_unit), figure)


def _sort(found: Sequence[Series]) -> str:
    return "nodes" if all(len(each.nodes) == 1 for each in found) else "curves"


def _label(each: Series, place: int) -> str:
    return ", ".join(each.nodes[:2]) + (" …" if len(each.nodes) > 2 else "") if each.nodes else f"curve {place + 1}"


def _range(found: Sequence[Series]) -> tuple[list[float], list[float], list[float], list[float]]:
    """Return the places, and the lowest, median and highest value of all curves there."""
    first = found[0].xs
    if all(each.xs == first for each in found):
        columns = list(zip(*(each.ys for each in found), strict=True))
        return first, [min(ys) for ys in columns], [median(ys) for ys in columns], [max(ys) for ys in columns]
    values: dict[float, list[float]] = {}
    for each in found:
        for x, y in zip(each.xs, each.ys, strict=True):
            values.setdefault(x, []).append(y)
    # A place where only few nodes have a value would make the range jump.
    enough = len(found) / 2
    at = sorted(x for x, ys in values.items() if len(ys) >= enough) or sorted(values)
    return at, [min(values[x]) for x in at], [median(values[x]) for x in at], [max(values[x]) for x in at]


def _farthest(of_node: dict[str, Series], name: str) -> list[str]:
    """Return the curves with the highest means; of clocks and rates, those with the lowest."""
    sign = 1 if any(word in name.lower() for word in _LOWEST_MATTERS) else -1
    means = {label: sum(each.ys) / len(each.ys) for label, each in of_node.items()}
    return sorted(means, key=lambda label: (sign * means[label], natural_key(label)))[: len(_COLOURS) - 1]
