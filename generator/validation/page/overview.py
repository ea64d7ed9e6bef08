"""The top of the page: verdict, jobs, nodes to replace."""

from __future__ import annotations

from collections.abc import Sequence

from ...pages.shell import Banner, Block, Cell, Command, Part, Table, Text, bullets, columns, figure, two_lines, verdict
from ...results.hostlist import compress, natural_key
from ...words.counts import counted
from ..assess import Assessment
from ..headline import commands, headline, word
from ..nodes import STATE_WORDS, NodeView
from ..shown import duration, moment
from ..verdicts import SHORT, rank

TONES = {"replace": "fail", "suspect": "warn", "watch": "warn", "unmeasured": "error", "good": "pass"}
_FEW, _LONGEST = 6, 300


def title(assessment: Assessment) -> str:
    """Which cluster."""
    clusters = sorted({run.cluster for run in assessment.runs if run.cluster})
    return f"Validation of {', '.join(clusters)}" if clusters else "Validation"


def subtitle(assessment: Assessment) -> list[str]:
    """Where, and over which time."""
    sizes = sorted({run.vm_size for run in assessment.runs if run.vm_size})
    partitions = sorted({run.partition for run in assessment.runs if run.partition})
    lines = []
    if partitions:
        of = f" of {', '.join(sizes)}" if sizes else ""
        lines.append(f"{'Partition' if len(partitions) == 1 else 'Partitions'} {', '.join(partitions)}{of}")
    if assessment.runs:
        first, last = assessment.runs[0], assessment.runs[-1]
        since = "" if first is last else f"{moment(first.started)} to "
        lines.append(f"Runs of {since}{moment(last.started)} UTC")
    return lines


def banner(assessment: Assessment) -> Banner:
    """The verdict in a word and a sentence."""
    return Banner(assessment.verdict, word(assessment.verdict), headline(assessment))


def tiles(assessment: Assessment) -> list[tuple[str, str]]:
    """The figures that a reader looks for first."""
    counts = assessment.counts
    unproven = counts.get("error", 0) + counts.get("no_baseline", 0)
    return [
        (f"{counts.get('pass', 0)} of {sum(counts.values())}", "jobs passed"),
        (str(counts.get("fail", 0)), "failed"),
        (str(counts.get("warn", 0)), "warn"),
        (str(unproven), "not proven"),
        (str(len(assessment.nodes)), "nodes"),
        (str(len(assessment.in_state("replace"))), "nodes to replace"),
        (str(len(assessment.runs)), "runs read"),
    ]


def jobs(assessment: Assessment) -> Part:
    """The newest run of each job, the worst first."""
    newest = assessment.newest
    ordered = sorted((run for run, _ in assessment.current), key=lambda run: (-rank(run.verdict), run.started, run.job))
    rows = []
    for run in ordered:
        behind = newest.seconds - run.seconds if newest else 0
        age = f"{duration(behind)} before the newest" if behind else ""
        rows.append(
            [
                Cell(run.job, "name"),
                Cell(verdict(run.verdict, SHORT[run.verdict]), "", str(rank(run.verdict))),
                Cell(bullets([run.doubt, run.summary]) if run.doubt else run.summary, "long"),
                figure(str(len(run.nodes)), len(run.nodes)),
                Cell(run.run, "short"),
                Cell(two_lines(moment(run.started), age), "short", run.started),
                figure(duration(run.duration_s) or "no end", run.duration_s),
            ]
        )
    head = columns("job", "verdict", "summary", "nodes#", "run", "started (UTC)", "took#")
    intro = "The newest run of each job decides; earlier runs are in the history."
    return Part("jobs", "Jobs", (Table(head, rows),), intro)


def nodes(assessment: Assessment) -> Part:
    """Which nodes to replace and why; then those to look at."""
    bad = [view for view in assessment.nodes if view.state != "good"]
    good = [view for view in assessment.nodes if view.state == "good"]
    blocks: list[Block] = []
    if bad:
        head = columns("node", "state", "why", "physical host", "VM size", "newest run (UTC)")
        blocks.append(Table(head, [_row(view) for view in bad]))
    shared = _shared_hosts(bad)
    if shared:
        blocks.append(Text(f"On one physical host: {'; '.join(shared)}"))
    blocks += [Command(what[0].upper() + what[1:], command) for what, command in commands(assessment)]
    if good:
        names = compress(view.name for view in good)
        blocks.append(Text(f"Nothing is known against {counted(len(good), 'node')}: {names}"))
    intro = (
        "Replace: a check of this node alone failed, and no later run of the same job on the same VM passed it. "
        "Suspect: it failed together with others or like most nodes, or is much slower than its peers. "
        "Watch: it warns, or is a little slower."
    )
    return Part("nodes", "Nodes to replace" if assessment.in_state("replace") else "Nodes", tuple(blocks), intro)


def _row(view: NodeView) -> list[Cell]:
    tone = TONES[view.state]
    reasons = [_cut(f"{each.check}: {each.text}" if each.text else each.check) for each in view.findings]
    more = [f"and {len(reasons) - _FEW} more"] if len(reasons) > _FEW else []
    return [
        Cell(view.name, "name"),
        Cell(verdict(tone, STATE_WORDS[view.state]), "", str(list(TONES).index(view.state))),
        Cell(bullets([*reasons[:_FEW], *more]), "long"),
        Cell(view.physical_host or "not known", "short"),
        Cell(view.vm_size.removeprefix("Standard_"), "short"),
        Cell(moment(view.seen), "short", view.seen),
    ]


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _shared_hosts(bad: Sequence[NodeView]) -> list[str]:
    """Physical hosts with several nodes that are not good."""
    of_host: dict[str, list[str]] = {}
    for view in bad:
        if view.physical_host:
            of_host.setdefault(view.physical_host, []).append(view.name)
    return [f"{host}: {', '.join(sorted(found, key=natural_key))}" for host, found in of_host.items() if len(found) > 1]
