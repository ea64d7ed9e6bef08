"""Two runs side by side."""

from __future__ import annotations

from ...pages.shell import Block, Cell, Facts, Part, Table, Text, columns, figure, verdict
from ...results.hostlist import compress
from ...words.counts import counted
from ..compare import Change, Comparison, Side
from ..figures import Measured
from ..shown import moment, percent, with_unit
from ..verdicts import SHORT, rank

_TONES = {"worse": "fail", "better": "pass", "same": "pass"}
_ORDER = ("worse", "", "better", "same")


def part(comparison: Comparison) -> Part:
    """What got worse first; then what was not the same around the measurement."""
    counts = {tone: comparison.count(tone) for tone in ("worse", "better", "same")}
    rest = len(comparison.changes) - sum(counts.values())
    words = ", ".join(
        text
        for text, count in (
            (f"{counted(counts['worse'], 'check')} worse", counts["worse"]),
            (f"{counted(counts['better'], 'check')} better", counts["better"]),
            (f"{counted(counts['same'], 'check')} about the same", counts["same"]),
            (f"{counted(rest, 'check')} not comparable", rest),
        )
        if count
    )
    blocks: list[Block] = [
        Facts((("before", _side(comparison.before)), ("after", _side(comparison.after)))),
        Text(f"{words[:1].upper()}{words[1:]}." if words else "The two sides have no check."),
    ]
    if comparison.changes:
        head = columns(
            "job", "check", "before#", "after#", "change#", "which is", "verdict before", "verdict after", "worse nodes"
        )
        ordered = sorted(comparison.changes, key=lambda change: _ORDER.index(change.tone))
        blocks.append(Table(head, [_row(change) for change in ordered]))
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


def _row(change: Change) -> list[Cell]:
    before, after, moved = change.before, change.after, change.percent
    return [
        Cell(change.job, "short"),
        Cell(change.subject, "name"),
        _value(before, change.unit),
        _value(after, change.unit),
        figure(percent(moved), moved),
        Cell(verdict(_TONES[change.tone], change.tone) if change.tone else "", "", str(_ORDER.index(change.tone))),
        _verdict(before),
        _verdict(after),
        Cell(compress(change.worse_nodes) if change.worse_nodes else "", "long" if change.worse_nodes else ""),
    ]


def _value(side: Measured | None, unit: str) -> Cell:
    return figure("" if side is None else with_unit(side.middle, unit), side.middle if side else None)


def _verdict(side: Measured | None) -> Cell:
    if side is None:
        return Cell("not there", "muted", "")
    return Cell(verdict(side.verdict, SHORT[side.verdict]), "", str(rank(side.verdict)))
