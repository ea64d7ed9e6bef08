"""Pairs of nodes: the heat map, and which nodes are slow with whom."""

from __future__ import annotations

from statistics import median

from ... import catalog
from ...pages.charts import LEGEND, heat
from ...pages.shell import Block, Cell, Drawing, Drawings, Part, Table, Text, columns, figure
from ...results.hostlist import natural_key
from ...words.counts import counted
from ..assess import Assessment
from ..record import Run
from ..shown import figure as words
from ..shown import moment, percent, with_unit

PREFIX = "pair "
_MOST_ROWS, _FEWEST_ROWS = 40, 5


def pairs(assessment: Assessment) -> Part | None:
    """Return a map for each figure of the newest run of each job."""
    blocks: list[Block] = []
    for run, _ in assessment.current:
        metrics = dict.fromkeys(
            (each.name, each.unit) for each in run.series if each.name.startswith(PREFIX) and len(each.nodes) == 2
        )
        for name, unit in metrics:
            blocks += _of_metric(run, name, unit)
    intro = "Every node against every other one. A red row is a node that is slow with all its partners."
    return Part("pairs", "Pairs of nodes", tuple(blocks), intro) if blocks else None


def _of_metric(run: Run, name: str, unit: str) -> list[Block]:
    found = [
        each for each in run.series if each.name == name and each.unit == unit and len(each.nodes) == 2 and each.points
    ]
    if not found:
        return []
    names = sorted({node for each in found for node in each.nodes} | {node.name for node in run.nodes}, key=natural_key)
    places = {node: place for place, node in enumerate(names)}
    measured: dict[tuple[str, str], list[float]] = {}
    for each in found:
        a, b = each.nodes
        pair = (a, b) if places[a] < places[b] else (b, a)
        measured.setdefault(pair, []).extend([value for _, value in each.points])
    values = {pair: ys[0] if len(ys) == 1 else median(ys) for pair, ys in measured.items()}
    middle = median(values.values())
    svg = heat(
        f"{name} of {len(names)} nodes",
        names,
        {(places[a], places[b]): value for (a, b), value in values.items()},
        middle,
        unit,
    )
    possible = len(names) * (len(names) - 1) // 2
    missing = f"; {counted(possible - len(values), 'pair')} not measured" if possible > len(values) else ""
    caption = (
        f"{run.label}, {moment(run.started)} UTC: {counted(len(values), 'pair')}, "
        f"median {with_unit(middle, unit)}{missing}"
    )
    title = name.removeprefix(PREFIX)
    blocks: list[Block] = [Drawings((Drawing(title, svg, LEGEND, caption),))] if svg else [Text(caption)]
    return [*blocks, *_slow(values, middle, unit)]


def _slow(values: dict[tuple[str, str], float], middle: float, unit: str) -> list[Block]:
    """Return the nodes by the median of their pairs, the slowest first."""
    of_node: dict[str, list[tuple[float, str]]] = {}
    for (a, b), value in values.items():
        of_node.setdefault(a, []).append((value, b))
        of_node.setdefault(b, []).append((value, a))
    allowed = catalog.health().fleet_statistics.warn_percent_below_expected
    limit = middle * (1 - allowed / 100)
    rows = []
    for node, found in of_node.items():
        own = median([value for value, _ in found])
        below = (own - middle) * 100 / middle if middle > 0 else 0.0
        worst = min(found)
        slow = len([value for value, _ in found if value < limit])
        rows.append((own, node, below, worst, slow, len(found)))
    rows.sort(key=lambda row: (row[0], natural_key(row[1])))
    shown = min(_MOST_ROWS, max(_FEWEST_ROWS, sum(row[2] < -allowed for row in rows)))
    head = columns(
        "node", f"median of its pairs, {unit}#", "against all pairs#", "slow pairs#", f"its slowest, {unit}#", "with"
    )
    return [
        Table(
            head,
            [
                [
                    Cell(node, "name"),
                    figure(words(own), own),
                    figure(percent(below), below),
                    figure(f"{slow} of {count}", slow),
                    figure(words(worst[0]), worst[0]),
                    Cell(worst[1]),
                ]
                for own, node, below, worst, slow, count in rows[:shown]
            ],
        )
    ]
