"""How the nodes differ: each check with a figure for each node, outliers named."""

from __future__ import annotations

from ...pages.charts import Marked, strip
from ...pages.shell import Block, Cell, Heading, Part, Table, bullets, columns, figure, verdict
from ..assess import Assessment
from ..figures import Measured
from ..peers import far_out, median, outliers
from ..shown import moment, percent, with_unit
from ..verdicts import SHORT, rank

_MOST_NAMED = 8


def part(assessment: Assessment) -> Part | None:
    """A table of each newest run with figures of single nodes."""
    blocks: list[Block] = []
    for run, checks in assessment.current:
        rows = [_row(each, of_nodes) for each in checks if len(of_nodes := each.of_nodes) > 1]
        if rows:
            blocks.append(Heading(f"{run.label}, {moment(run.started)} UTC"))
            head = columns("check", "nodes", "lowest, each node, highest", "median#", "floor#", "outliers")
            blocks.append(Table(head, rows))
    intro = (
        "A dot is a node (its worst figure, where it has several); the grey line is the median, the red one the floor. "
        "Named are nodes that fail or warn, that are slower than their peers, or that are far from all others."
    )
    return Part("spread", "Node by node", tuple(blocks), intro) if blocks else None


def _row(each: Measured, values: dict[str, float]) -> list[Cell]:
    middle = median(list(values.values()))
    marked = _marked(each, values, middle)
    picture = strip(
        f"{each.subject}, {len(values)} nodes",
        values,
        median=middle,
        floors=each.floors,
        marked=marked,
        words=lambda value: with_unit(value, each.unit),
    )
    named_nodes = [each.tip for each in marked[:_MOST_NAMED]]
    if len(marked) > _MOST_NAMED:
        named_nodes.append(f"and {len(marked) - _MOST_NAMED} more")
    floor = each.floors[-1] if each.floors else None
    return [
        Cell(each.subject, "name"),
        Cell(verdict(each.verdict, SHORT[each.verdict]), "", str(rank(each.verdict))),
        Cell(picture, "", str(len(values))),
        figure(with_unit(middle, each.unit), middle),
        figure(with_unit(floor, each.unit), floor),
        Cell(bullets(named_nodes), "long"),
    ]


def _marked(each: Measured, values: dict[str, float], middle: float) -> list[Marked]:
    """The worst first."""
    found: dict[str, Marked] = {}
    for check in sorted(each.checks, key=lambda check: -rank(check.verdict)):
        if check.verdict in ("fail", "warn", "error") and check.node in values and check.node not in found:
            found[check.node] = Marked(check.node, f"tone-{check.verdict}", _tip(check.node, values, middle, each.unit))
    for outlier in outliers(values, each.unit):
        found.setdefault(outlier.node, Marked(outlier.node, "tone-warn", _tip(outlier.node, values, middle, each.unit)))
    fences = far_out(list(values.values()))
    if fences:
        for node, value in values.items():
            if not fences[0] <= value <= fences[1]:
                found.setdefault(node, Marked(node, "s5", _tip(node, values, middle, each.unit)))
    return list(found.values())


def _tip(node: str, values: dict[str, float], middle: float, unit: str) -> str:
    away = f", {percent((values[node] - middle) * 100 / abs(middle))}" if middle else ""
    return f"{node}: {with_unit(values[node], unit)}{away}"
