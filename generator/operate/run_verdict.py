"""What a run has shown: the verdict of its record, held against Slurm, or the exit status of the user's own job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..records import record
from ..words.counts import first

if TYPE_CHECKING:
    from ..cyclecloud.jobs.prepared import Prepared
    from ..cyclecloud.jobs.scheduler import Seen, Step

STATUS = {"pass": 0, "fail": 1, "error": 2, "warn": 3, "no_baseline": 4}
"""As recipes/lib/verdicts.sh ends a job."""
_ALLOW_WARN = "ALLOW_WARN"
_SHOWN = 8
"""Tasks of an array that are named."""


@record
class Result:
    """The verdict, the exit status of the command, and why."""

    verdict: str
    status: int
    text: str


def judged(prepared: Prepared, seen: Seen, step: Step, content: bytes) -> Result:
    """Of the step that decides; `content` is the record that its job has left."""
    if prepared.plan is None:
        return _by_status(step)
    if step.file != seen.steps[-1].file and not content:
        result = _by_status(step)
        return Result("error" if result.status else result.verdict, result.status or 2, result.text)
    return _by_record(prepared, step, content)


def _by_status(step: Step) -> Result:
    where = f"{step.file}, job {step.job}"
    if step.status is None:
        text = f"{where}: its exit status is not known, because Slurm has forgotten the job, and no accounts know it"
        return Result("no_baseline", STATUS["no_baseline"], text)
    text = f"{where}: {step.states}, exit status {step.status}{_not_well(step)}"
    return Result("pass" if step.status == 0 else "fail", step.status, text)


def _not_well(step: Step) -> str:
    """The tasks of an array that ended otherwise than they should; nothing for a single job."""
    bad = [f"{task.id} {task.state} {task.exit}" for task in step.tasks if task.state != "COMPLETED"]
    if len(step.tasks) == 1 or not bad:
        return ""
    return f"; {len(bad)} of {len(step.tasks)} tasks did not end well: {first(bad, _SHOWN)}"


def _by_record(prepared: Prepared, step: Step, content: bytes) -> Result:
    from ..results.problems import Unusable
    from ..validation.gather import read
    from ..validation.record import Run

    if not content:
        return _error(f"{step.file}, job {step.job}: it has left no record (Slurm: {step.states})")
    try:
        found = read(content, "run.json")
    except Unusable as unusable:
        return _error(f"the record of job {step.job} cannot be used: {unusable}")
    if not isinstance(found, Run):
        return _error(f"job {step.job} has left the record of a proof, not of a run")
    if found.run != step.job and not found.run.startswith(f"{step.job}-restart"):
        return _error(f"the record belongs to run '{found.run}', not to job {step.job}")
    if not found.ended:
        return _error(f"job {step.job} stopped before its end (Slurm: {step.states})")
    if found.doubt:
        return _error(f"the record of job {step.job}: {found.doubt}")
    if found.verdict == "pass" and step.states not in ("COMPLETED", "FORGOTTEN"):
        return _error(f"the record says pass, but Slurm says that job {step.job} ended as {step.states}")
    allowed = found.verdict == "warn" and found.settings.get(_ALLOW_WARN) == "1"
    return Result(found.verdict, 0 if allowed else STATUS[found.verdict], found.summary)


def _error(text: str) -> Result:
    return Result("error", STATUS["error"], text)


def steps_json(seen: Seen) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for step in seen.steps:
        tasks = [{"id": task.id, "state": task.state, "exit": task.exit or None} for task in step.tasks]
        rows.append({"step": step.file, "job": step.job or None, "tasks": tasks})
    return rows
