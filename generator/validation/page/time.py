"""What changed while a job ran: temperatures and clocks of all nodes, and every other curve of a record."""

from __future__ import annotations

from collections.abc import Sequence

from ...pages.charts import Axis, Band, Curve, chart
from ...pages.shell import Drawing, Drawings, Part
from ...results.hostlist import natural_key
from ..assess import Assessment
from ..peers import median
from ..record import Run, Series
from ..shown import figure, message_size, moment
from . import collectives, pairs

_DRAWN_ELSEWHERE = (collectives.PREFIX, collectives.IN_PLACE, collectives.PUBLISHED, pairs.PREFIX)
_COLOURS = ("s1", "s3", "s2", "s4")
"""Of the nodes that are farthest from the others."""
_FEW = 6
"""So many curves are drawn one by one; of more, the range and the farthest."""
_LOWEST_MATTERS = ("clock", "busbw", "bandwidth", "throughput", "tokens")
_UNITS = {"C": "°C", "Celsius": "°C"}
_MOST_CHARTS = 40


def part(assessment: Assessment) -> Part | None:
    """One chart for each kind of curve of the newest run of each job."""
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


def _points(each: Series) -> list[tuple[float, float]]:
    return sorted(zip(each.xs, each.ys, strict=True))


def _range(found: Sequence[Series]) -> tuple[list[float], list[float], list[float], list[float]]:
    """Places, lowest, median and highest value of all curves there."""
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
    """The curves with the highest means; of clocks and rates those with the lowest."""
    sign = 1 if any(word in name.lower() for word in _LOWEST_MATTERS) else -1
    means = {label: sum(each.ys) / len(each.ys) for label, each in of_node.items()}
    return sorted(means, key=lambda label: (sign * means[label], natural_key(label)))[: len(_COLOURS) - 1]
