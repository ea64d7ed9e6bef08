"""Figures of the newest runs with small drawings: node by node, and storage beside its floors."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from ...pages.charts import Marked, bar, strip
from ...pages.shell import Block, Cell, Column, Heading, Part, Table, bullets, columns, figure, two_lines
from ..assess import Assessment
from ..figures import Measured
from ..peers import far_out, outliers
from ..record import Check, Run, rank
from ..shown import figure as words
from ..shown import moment, percent, with_unit
from .cells import amount, judged

_MOST_NAMED = 8
_RECIPES = ("storage", "fio", "ior", "mdtest", "blobfuse")
"""Words in the names of recipes that measure storage."""


def spread(assessment: Assessment) -> Part | None:
    """Return a table for each newest run that has figures of single nodes."""
    head = columns("check", "nodes", "lowest, each node, highest", "median#", "floor#", "outliers")
    blocks = _tables(assessment, head, _spread_rows)
    intro = (
        "A dot is a node (its worst figure, where it has several); the grey line is the median, the red one the floor. "
        "Named are nodes that fail or warn, that are slower than their peers, or that are far from all others."
    )
    return Part("spread", "Node by node", tuple(blocks), intro) if blocks else None


def _tables(
    assessment: Assessment, head: tuple[Column, ...], rows_of: Callable[[Run, list[Measured]], list[list[Cell]]]
) -> list[Block]:
    """Return a table with its heading for each newest run that has rows."""
    blocks: list[Block] = []
    for run, checks in assessment.current:
        rows = rows_of(run, checks)
        if rows:
            blocks += [Heading(f"{run.label}, {moment(run.started)} UTC"), Table(head, rows)]
    return blocks


def _spread_rows(_: Run, checks: list[Measured]) -> list[list[Cell]]:
    return [_spread_row(each, of_nodes) for each in checks if len(of_nodes := each.of_nodes) > 1]


def _spread_row(each: Measured, values: dict[str, float]) -> list[Cell]:
    middle = median(values.values())
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
        judged(each.verdict),
        Cell(picture, "", str(len(values))),
        amount(middle, each.unit),
        amount(floor, each.unit),
        Cell(bullets(named_nodes), "long"),
    ]


def _marked(each: Measured, values: dict[str, float], middle: float) -> list[Marked]:
    """Return the nodes that are named, the worst first."""
    kinds: dict[str, str] = {}
    for check in sorted(each.checks, key=lambda check: -rank(check.verdict)):
        if check.verdict in ("fail", "warn", "error") and check.node in values:
            kinds.setdefault(check.node, f"tone-{check.verdict}")
    for outlier in outliers(values, each.unit):
        kinds.setdefault(outlier.node, "tone-warn")
    fences = far_out(list(values.values()))
    if fences:
        for node, value in values.items():
            if not fences[0] <= value <= fences[1]:
                kinds.setdefault(node, "s5")
    return [Marked(node, kind, _tip(node, values, middle, each.unit)) for node, kind in kinds.items()]


def _tip(node: str, values: dict[str, float], middle: float, unit: str) -> str:
    away = f", {percent((values[node] - middle) * 100 / abs(middle))}" if middle else ""
    return f"{node}: {with_unit(values[node], unit)}{away}"


def storage(assessment: Assessment) -> Part | None:
    """Return a table for each newest run of a job that measures storage."""
    head = columns(
        "measurement", "verdict", "measured against the floor", "measured#", "floor#", "of the floor#",
        "how, and where the floor is from",
    )  # fmt: skip
    blocks = _tables(assessment, head, _storage_rows)
    intro = (
        "The bar is what was measured; the line across it is the floor, from what the tier of the file system promises."
    )
    return Part("storage", "Storage", tuple(blocks), intro) if blocks else None


def _storage_rows(run: Run, checks: list[Measured]) -> list[list[Cell]]:
    if not any(word in run.recipe.replace("_", "-").split("-") for word in _RECIPES):
        return []
    found = [
        (each, check) for each in checks for check in each.checks if check.number is not None and len(check.nodes) != 1
    ]
    most: dict[str, float] = {}
    for each, check in found:
        most[each.unit] = max(most.get(each.unit, 0.0), check.number or 0.0, check.floor or 0.0)
    return [_storage_row(each, check, most[each.unit]) for each, check in found]


def _storage_row(each: Measured, check: Check, most: float) -> list[Cell]:
    value, floor = check.number or 0.0, check.floor
    share = None if not floor else value * 100 / floor
    label = f"{each.subject}: {with_unit(value, each.unit)}" + (f" of {with_unit(floor, each.unit)}" if floor else "")
    return [
        Cell(each.subject, "name"),
        judged(check.verdict),
        Cell(bar(label, value, floor, most, f"tone-{check.verdict}"), "", f"{value:.10g}"),
        amount(value, each.unit),
        amount(floor, each.unit),
        figure("" if share is None else f"{words(round(share))} %", share),
        Cell(two_lines(check.detail, check.source), "long"),
    ]
