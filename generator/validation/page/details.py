"""The end of the page: every check of the newest runs, what they ran on, and files that could not be used."""

from __future__ import annotations

from collections.abc import Sequence

from ...pages.shell import Block, Cell, Facts, Heading, Part, Table, Text, chips, columns, two_lines
from ...results.hostlist import compress
from ...words.counts import counted
from ..assess import Assessment
from ..compare import facts_of
from ..figures import Measured
from ..record import Check, Run, rank
from ..shown import figure as words
from ..shown import with_unit
from .cells import cut, judged

_MOST_ROWS, _MOST_PROBLEMS, _MOST_NAMED = 1500, 200, 6


def checks(assessment: Assessment) -> Part:
    """Return the checks of the newest runs, the worst first; all nodes that pass a check are one row."""
    rows = [(run, each, same) for run, measured in assessment.current for each in measured for same in _groups(each)]
    rows.sort(key=lambda row: -rank(row[2][0].verdict))
    left_out = len(rows) - _MOST_ROWS
    head = columns(
        "job", "check", "verdict", "measured", "expected", "nodes", "detail, and where the expected value is from"
    )
    blocks: list[Block] = [Table(head, [_check(*row) for row in rows[:_MOST_ROWS]])] if rows else []
    if left_out > 0:
        blocks.append(Text(f"{counted(left_out, 'row')} more, none of them worse; `--json` has all."))
    return Part("checks", "All checks", tuple(blocks), "Of the newest run of each job, the worst first.")


def _groups(each: Measured) -> list[list[Check]]:
    """Return the entries that pass as one group, every other one as its own."""
    good = [check for check in each.checks if check.verdict == "pass"]
    return [[check] for check in each.checks if check.verdict != "pass"] + ([good] if good else [])


def _check(run: Run, each: Measured, same: Sequence[Check]) -> list[Cell]:
    first = same[0]
    values = [check.number for check in same if check.number is not None]
    if len(same) == 1:
        value = with_unit(first.value, each.unit)
    elif not values:
        value = ""
    elif min(values) == max(values):
        value = with_unit(values[0], each.unit)
    else:
        value = f"{words(min(values))} to {with_unit(max(values), each.unit)}"
    nodes = {node for check in same for node in check.nodes}
    details = list(dict.fromkeys(check.detail for check in same if check.detail))
    detail = (
        cut(details[0]) + (f" (and {len(details) - 1} other details)" if len(details) > 1 else "") if details else ""
    )
    return [
        Cell(run.job, "short"),
        Cell(each.subject, "name"),
        judged(first.verdict),
        Cell(cut(value), "", f"{values[0]:.10g}" if values else None),
        Cell(cut(with_unit(first.expected, each.unit))),
        Cell(_nodes(nodes)),
        Cell(two_lines(detail, cut(first.source)), "long"),
    ]


def _nodes(nodes: set[str]) -> str:
    if not nodes:
        return "all"
    return next(iter(nodes)) if len(nodes) == 1 else f"{len(nodes)}: {cut(compress(nodes))}"


def surroundings(assessment: Assessment) -> Part:
    """Return versions, settings, variables and facts of the nodes, and the nodes that differ from the others."""
    blocks: list[Block] = []
    differing = _differing(assessment)
    if differing:
        blocks.append(Heading("Nodes that are not like the others"))
        blocks.append(Table(columns("fact", "value", "nodes"), differing))
    for run, _ in assessment.current:
        blocks.append(Heading(run.label))
        facts = [
            (name, ", ".join(counts)) for name, counts in sorted(facts_of([run]).items()) if len(counts) <= _MOST_NAMED
        ]
        rows = [
            ("VM size", run.vm_size),
            ("nodes", cut(compress(node.name for node in run.nodes)) if run.nodes else ""),
            ("versions", chips(_pairs(run.versions))),
            ("on the nodes", chips([f"{name} {value}" for name, value in facts])),
            ("variables", chips(_pairs(run.environment, "="))),
            ("settings", chips(_pairs(run.settings, "="))),
            ("record", run.file),
        ]
        blocks.append(Facts(tuple((name, value) for name, value in rows if value)))
    intro = "In what environment the newest run of each job was made: figures hold for this one."
    return Part("surroundings", "Environment", tuple(blocks), intro)


def _pairs(table: dict[str, str], between: str = " ") -> list[str]:
    return [cut(f"{name}{between}{value}") for name, value in sorted(table.items())]


def _differing(assessment: Assessment) -> list[list[Cell]]:
    """Return the facts that have more than one value among the nodes of the newest runs, every value with its nodes."""
    facts: dict[tuple[str, str], dict[str, set[str]]] = {}
    for run, _ in assessment.current:
        for node in run.nodes:
            for name, value in node.facts.items():
                facts.setdefault((run.vm_size, name), {}).setdefault(value, set()).add(node.name)
    rows = []
    for (_, name), values in sorted(facts.items()):
        ordered = sorted(values.items(), key=lambda item: (-len(item[1]), item[0]))
        if len(ordered) > 1:
            rows += [[Cell(name, "name"), Cell(cut(value)), Cell(_nodes(nodes), "long")] for value, nodes in ordered]
    return rows


def files(assessment: Assessment) -> Part | None:
    problems = assessment.problems
    if not problems:
        return None
    rows = [
        [Cell(each.place, "mono"), Cell(each.level), Cell(cut(each.message), "long"), Cell(each.hint, "long")]
        for each in problems[:_MOST_PROBLEMS]
    ]
    blocks: list[Block] = [Table(columns("file", "level", "what is wrong", "what to do"), rows)]
    if len(problems) > _MOST_PROBLEMS:
        blocks.append(Text(f"{counted(len(problems) - _MOST_PROBLEMS, 'file')} more; `--json` lists all."))
    return Part("files", "Files that cannot be used", tuple(blocks), "What they would prove is unknown.")
