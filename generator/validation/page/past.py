"""The history of the cluster: each check of each job, run by run."""

from __future__ import annotations

from ...pages.charts import spark
from ...pages.shell import Cell, Part, Table, columns, figure, verdict
from ..assess import Assessment
from ..history import Line
from ..shown import moment, percent, with_unit
from ..verdicts import SHORT, rank

_MOST_POINTS = 40
"""Runs of a line that are drawn; the newest."""


def part(assessment: Assessment) -> Part | None:
    """One row for each check that was measured more than once; what got worse comes first."""
    if not assessment.lines:
        return None
    ordered = sorted(assessment.lines, key=lambda line: (not line.is_worse, line.run.job))
    head = columns("job", "check", "runs", "oldest to newest", "usual#", "newest#", "change#", "verdict")
    intro = (
        "Usual is the median of the earlier runs that did not fail; of a check with a figure for each node, each run "
        "counts with the median of its nodes."
    )
    return Part("history", "History", (Table(head, [_row(line) for line in ordered]),), intro)


def _row(line: Line) -> list[Cell]:
    shown = line.points[-_MOST_POINTS:]
    newest, change = line.points[-1], line.change_percent
    dots = [
        (
            point.value,
            f"tone-{point.verdict}",
            f"{moment(point.run.started)} UTC, run {point.run.run}\n"
            f"{with_unit(point.value, line.unit)}, {SHORT[point.verdict]}",
        )
        for point in shown
    ]
    text = percent(change)
    return [
        Cell(line.run.job, "short"),
        Cell(line.subject, "name"),
        figure(str(len(line.points)), len(line.points)),
        Cell(spark(f"{line.subject} over {len(line.points)} runs", dots), "", f"{newest.value:.10g}"),
        figure(with_unit(line.usual, line.unit), line.usual),
        figure(with_unit(newest.value, line.unit), newest.value),
        Cell(verdict("warn", text) if line.is_worse else text, "number", "" if change is None else f"{change:.6g}"),
        Cell(verdict(newest.verdict, SHORT[newest.verdict]), "", str(rank(newest.verdict))),
    ]
