"""Storage: what each mount delivers, beside the floor that follows from its tier."""

from __future__ import annotations

from ...pages.charts import bar
from ...pages.shell import Block, Cell, Heading, Part, Table, columns, figure, two_lines, verdict
from ..assess import Assessment
from ..figures import Measured
from ..record import Check, Run
from ..shown import figure as words
from ..shown import moment, with_unit
from ..verdicts import SHORT, rank

_RECIPES = ("storage", "fio", "ior", "mdtest", "blobfuse")


def part(assessment: Assessment) -> Part | None:
    """A table of each newest run of a job that measures storage."""
    blocks: list[Block] = []
    for run, checks in assessment.current:
        rows = _rows(checks) if is_storage(run) else []
        if rows:
            blocks.append(Heading(f"{run.label}, {moment(run.started)} UTC"))
            head = columns(
                "measurement",
                "verdict",
                "measured against the floor",
                "measured#",
                "floor#",
                "of the floor#",
                "how, and where the floor is from",
            )
            blocks.append(Table(head, rows))
    intro = (
        "The bar is what was measured; the line across it is the floor, from what the tier of the file system promises."
    )
    return Part("storage", "Storage", tuple(blocks), intro) if blocks else None


def is_storage(run: Run) -> bool:
    """By its recipe."""
    return any(word in run.recipe.replace("_", "-").split("-") for word in _RECIPES)


def _rows(checks: list[Measured]) -> list[list[Cell]]:
    found = [
        (each, check) for each in checks for check in each.checks if check.number is not None and len(check.nodes) != 1
    ]
    most: dict[str, float] = {}
    for each, check in found:
        most[each.unit] = max(most.get(each.unit, 0.0), check.number or 0.0, check.floor or 0.0)
    return [_row(each, check, most[each.unit]) for each, check in found]


def _row(each: Measured, check: Check, most: float) -> list[Cell]:
    value, floor = check.number or 0.0, check.floor
    share = None if not floor else value * 100 / floor
    label = f"{each.subject}: {with_unit(value, each.unit)}" + (f" of {with_unit(floor, each.unit)}" if floor else "")
    return [
        Cell(each.subject, "name"),
        Cell(verdict(check.verdict, SHORT[check.verdict]), "", str(rank(check.verdict))),
        Cell(bar(label, value, floor, most, f"tone-{check.verdict}"), "", f"{value:.10g}"),
        figure(with_unit(value, each.unit), value),
        figure(with_unit(floor, each.unit), floor),
        figure("" if share is None else f"{words(round(share))} %", share),
        Cell(two_lines(check.detail, check.source), "long"),
    ]
