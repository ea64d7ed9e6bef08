"""The gates of the newest proof of each place."""

from __future__ import annotations

from ...pages.shell import Block, Cell, Facts, Heading, Part, Table, chips, columns, verdict
from ...results.hostlist import compress
from ...words.counts import counted
from ..assess import Assessment
from ..proof import Proof
from ..shown import figure, moment
from ..verdicts import SHORT, rank


def part(assessment: Assessment) -> Part | None:
    """What `prove.sh` ran, gate by gate."""
    blocks: list[Block] = []
    for proof in assessment.proofs:
        blocks += _of(proof)
    intro = "What prove.sh ran, in its order; the worst gate decides."
    return Part("proof", "Proof", tuple(blocks), intro) if blocks else None


def _of(proof: Proof) -> list[Block]:
    where = " ".join(text for text in (proof.cluster, proof.partition) if text)
    spent = f"{figure(proof.hours)} hours, {figure(proof.gpu_hours)} GPU hours"
    rows = [
        [
            Cell(gate.gate, "name"),
            Cell(
                "left out" if gate.verdict == "skipped" else verdict(gate.verdict, SHORT[gate.verdict]),
                "",
                str(-1 if gate.verdict == "skipped" else rank(gate.verdict)),
            ),
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
