"""Earlier runs: the history of each check, and two runs side by side."""

from __future__ import annotations

from collections import Counter

from ...pages.charts import spark
from ...pages.shell import Block, Cell, Facts, Part, Table, Text, columns, figure, verdict
from ...results.hostlist import compress
from ...words.counts import counted
from ..assess import Assessment
from ..compare import Change, Comparison, Side
from ..figures import Line
from ..record import SHORT
from ..shown import moment, percent, with_unit
from .cells import amount, judged

_MOST_POINTS = 40
"""Runs of a line that are drawn: the newest."""
_TONES = {"worse": "fail", "better": "pass", "same": "pass"}
_TONE_WORDS = {"worse": "worse", "better": "better", "same": "about the same", "": "not comparable"}
_ORDER = ("worse", "", "better", "same")


def history(assessment: Assessment) -> Part | None:
    """Return a row for each check that was measured more than once, the worse ones first."""
    if not assessment.lines:
        return None
    ordered = sorted(assessment.lines, key=lambda line: (not line.is_worse, line.run.job))
    head = columns("job", "check", "runs", "oldest to newest", "usual#", "newest#", "change#", "verdict")
    intro = (
        "Usual is the median of the earlier runs that did not fail; of a check with a figure for each node, each run "
        "counts with the median of its nodes."
    )
    return Part("history", "History", (Table(head, [_line_row(line) for line in ordered]),), intro)


def _line_row(line: Line) -> list[Cell]:
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
        amount(line.usual, line.unit),
        amount(newest.value, line.unit),
        Cell(verdict("warn", text) if line.is_worse else text, "number", "" if change is None else f"{change:.6g}"),
        judged(newest.verdict),
    ]


def sides(comparison: Comparison) -> Part:
    """Return the checks of both sides, the worse ones first, and the differences of their environments."""
    counts = Counter(change.tone for change in comparison.changes)
    words = ", ".join(f"{counted(counts[tone], 'check')} {word}" for tone, word in _TONE_WORDS.items() if counts[tone])
    blocks: list[Block] = [
        Facts((("before", _side(comparison.before)), ("after", _side(comparison.after)))),
        Text(f"{words[:1].upper()}{words[1:]}." if words else "The two sides have no check."),
    ]
    if comparison.changes:
        head = columns(
            "job", "check", "before#", "after#", "change#", "which is", "verdict before", "verdict after", "worse nodes"
        )
        ordered = sorted(comparison.changes, key=lambda change: _ORDER.index(change.tone))
        blocks.append(Table(head, [_change_row(change) for change in ordered]))
    if comparison.differences:
        head = columns("job", "what", "name", "before", "after")
        rows = [
            [Cell(each.job, "short"), Cell(each.what), Cell(each.name, "name"), Cell(each.before), Cell(each.after)]
            for each in comparison.differences
        ]
        blocks += [Text("What was not the same around the measurement:"), Table(head, rows)]
    return Part("comparison", "Comparison", tuple(blocks), "The newest run of each job on both sides.")


def _side(side: Side) -> str:
    runs = [f"{run.label} ({moment(run.started)} UTC)" for run in side.runs]
    return f"{side.label}: {', '.join(runs[:6])}" + (f" and {len(runs) - 6} more" if len(runs) > 6 else "")


def _change_row(change: Change) -> list[Cell]:
    before, after, moved = change.before, change.after, change.percent
    return [
        Cell(change.job, "short"),
        Cell(change.subject, "name"),
        amount(before.middle if before else None, change.unit),
        amount(after.middle if after else None, change.unit),
        figure(percent(moved), moved),
        Cell(verdict(_TONES[change.tone], change.tone) if change.tone else "", "", str(_ORDER.index(change.tone))),
        *(judged(side.verdict) if side else Cell("not there", "muted", "") for side in (before, after)),
        Cell(compress(change.worse_nodes) if change.worse_nodes else "", "long" if change.worse_nodes else ""),
    ]
