"""The report as JSON, with stable keys."""

from __future__ import annotations

from typing import Any

from msgspec import to_builtins

from .assess import Assessment, commands, headline
from .compare import Comparison
from .figures import Line, Measured
from .nodes import NodeView
from .record import Proof, Run

FORMAT = 1
_OF_PROOF = (
    "prove", "level", "cluster", "partition", "vm_size", "started", "ended", "hours", "gpu_hours", "stated", "nodes",
)  # fmt: skip


def as_json(assessment: Assessment, comparison: Comparison | None = None) -> dict[str, Any]:
    newest = assessment.newest
    return {
        "format": FORMAT,
        "ok": assessment.verdict == "pass",
        "verdict": assessment.verdict,
        "proven": assessment.is_proven,
        "headline": headline(assessment),
        "newest": newest.started if newest else None,
        "counts": assessment.counts,
        "jobs": [_job(run, checks) for run, checks in assessment.current],
        "nodes": [_node(view) for view in assessment.nodes],
        "commands": [{"for": what, "command": command} for what, command in commands(assessment)],
        "proofs": [_proof(proof) for proof in assessment.proofs],
        "history": [_line(line) for line in assessment.lines],
        "comparison": _comparison(comparison) if comparison else None,
        "runs": [_named(run) | {"verdict": run.verdict, "started": run.started} for run in assessment.runs],
        "problems": [problem.as_json() for problem in assessment.problems],
    }


def _named(run: Run) -> dict[str, Any]:
    return {"job": run.job, "run": run.run, "file": run.file}


def _job(run: Run, checks: list[Measured]) -> dict[str, Any]:
    return _named(run) | {
        "recipe": run.recipe,
        "cluster": run.cluster,
        "partition": run.partition,
        "vm_size": run.vm_size,
        "nodes": [node.name for node in run.nodes],
        "started": run.started,
        "ended": run.ended or None,
        "verdict": run.verdict,
        "doubt": run.doubt or None,
        "summary": run.summary,
        "checks": to_builtins([each for measured in checks for each in measured.checks]),
    }


def _proof(proof: Proof) -> dict[str, Any]:
    return {name: getattr(proof, name) for name in _OF_PROOF} | {
        "gates": to_builtins(proof.gates),
        "replace": to_builtins(proof.replace),
        "file": proof.file,
        "verdict": proof.verdict,
    }


def _node(view: NodeView) -> dict[str, Any]:
    return {
        "cluster": view.cluster,
        "node": view.name,
        "physical_host": view.physical_host or None,
        "vm_size": view.vm_size,
        "state": view.state,
        "findings": to_builtins(view.findings),
    }


def _line(line: Line) -> dict[str, Any]:
    return {
        "cluster": line.run.cluster,
        "job": line.run.job,
        "check": line.subject,
        "unit": line.unit,
        "usual": line.usual,
        "change_percent": None if line.change_percent is None else round(line.change_percent, 2),
        "worse": line.is_worse,
        "points": [{"run": point.run.run, "started": point.run.started, "value": point.value, "verdict": point.verdict}
                   for point in line.points],
    }  # fmt: skip


def _comparison(comparison: Comparison) -> dict[str, Any]:
    return {
        "before": {"name": comparison.before.label, "runs": [_named(run) for run in comparison.before.runs]},
        "after": {"name": comparison.after.label, "runs": [_named(run) for run in comparison.after.runs]},
        "checks": [
            {
                "job": each.job,
                "check": each.subject,
                "unit": each.unit,
                "before": each.before.middle if each.before else None,
                "after": each.after.middle if each.after else None,
                "verdict_before": each.before.verdict if each.before else None,
                "verdict_after": each.after.verdict if each.after else None,
                "percent": None if each.percent is None else round(each.percent, 2),
                "tone": each.tone or None,
                "worse_nodes": list(each.worse_nodes),
            }
            for each in comparison.changes
        ],
        "differences": to_builtins(comparison.differences),
    }
