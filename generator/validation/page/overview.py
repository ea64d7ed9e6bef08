"""The top of the page: verdict, proofs, jobs, nodes to replace."""

from __future__ import annotations

from collections.abc import Sequence

from ...pages.shell import (
    Banner,
    Block,
    Cell,
    Command,
    Facts,
    Heading,
    Part,
    Table,
    Text,
    bullets,
    chips,
    columns,
    figure,
    two_lines,
    verdict,
)  # fmt: skip
from ...results.hostlist import compress, natural_key
from ...words.counts import counted
from ..assess import Assessment, commands, headline, word
from ..nodes import STATES, TONES, NodeView
from ..record import SHORT, Proof, rank
from ..shown import duration, moment
from ..shown import figure as words
from .cells import cut, judged

_FEW = 6


def title(assessment: Assessment) -> str:
    clusters = sorted({run.cluster for run in assessment.runs if run.cluster})
    return f"Validation of {', '.join(clusters)}" if clusters else "Validation"


def subtitle(assessment: Assessment) -> list[str]:
    """Return the partitions with their VM sizes, and the time of the runs."""
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
    return Banner(assessment.verdict, word(assessment.verdict), headline(assessment))


def tiles(assessment: Assessment) -> list[tuple[str, str]]:
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
    """Return the newest run of each job, the worst first."""
    newest = assessment.newest
    ordered = sorted((run for run, _ in assessment.current), key=lambda run: (-rank(run.verdict), run.started, run.job))
    rows = []
    for run in ordered:
        behind = newest.seconds - run.seconds if newest else 0
        age = f"{duration(behind)} before the newest" if behind else ""
        rows.append(
            [
                Cell(run.job, "name"),
                judged(run.verdict),
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
    """Return the nodes to replace with the reasons, then those to look at."""
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
    reasons = [cut(f"{each.check}: {each.text}" if each.text else each.check) for each in view.findings]
    more = [f"and {len(reasons) - _FEW} more"] if len(reasons) > _FEW else []
    return [
        Cell(view.name, "name"),
        Cell(verdict(TONES[view.state], view.state_words), "", str(STATES.index(view.state))),
        Cell(bullets([*reasons[:_FEW], *more]), "long"),
        Cell(view.physical_host or "not known", "short"),
        Cell(view.vm_size.removeprefix("Standard_"), "short"),
        Cell(moment(view.seen), "short", view.seen),
    ]


def _shared_hosts(bad: Sequence[NodeView]) -> list[str]:
    """Return the physical hosts with several nodes that are not good."""
    of_host: dict[str, list[str]] = {}
    for view in bad:
        if view.physical_host:
            of_host.setdefault(view.physical_host, []).append(view.name)
    return [f"{host}: {', '.join(sorted(found, key=natural_key))}" for host, found in of_host.items() if len(found) > 1]


def proofs(assessment: Assessment) -> Part | None:
    """Return the gates of the newest proofs."""
    blocks = [block for proof in assessment.proofs for block in _proof(proof)]
    intro = "What prove.sh ran, in its order; the worst gate decides."
    return Part("proof", "Proof", tuple(blocks), intro) if blocks else None


def _proof(proof: Proof) -> list[Block]:
    where = " ".join(text for text in (proof.cluster, proof.partition) if text)
    spent = f"{words(proof.hours)} hours, {words(proof.gpu_hours)} GPU hours"
    rows = [
        [
            Cell(gate.gate, "name"),
            Cell("left out", "", "-1") if gate.verdict == "skipped" else judged(gate.verdict),
            Cell(gate.summary, "long"),
            Cell(chips(gate.runs)),
        ]
        for gate in proof.gates
    ]
    return [
        Heading(f"{proof.level} on {where}"),
        Facts((
            ("verdict", verdict(proof.verdict, SHORT[proof.verdict])),
            ("when", f"{moment(proof.started)} to {moment(proof.ended)} UTC: {spent}"),
            ("nodes", f"{counted(len(proof.nodes), 'node')}: {compress(proof.nodes)}" if proof.nodes else "none"),
        )),
        Table(columns("gate", "verdict", "summary", "runs"), rows),
    ]  # fmt: skip
