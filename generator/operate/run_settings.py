"""`cycleforge run --set`: what the rules say of a job that runs with other settings than the definition gives it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import CannotRead
from ..problems.problem import Problem, fails
from ..words.counts import first

if TYPE_CHECKING:
    from ..operate.built import Built
    from ..pipeline import Checked
    from ..plan.jobs import JobPlan

_NODES = "NODES"
_FOLLOWS = frozenset({"JOB", "PARTITION", "RECIPE", "RUNS_DIR", "VM_SIZE", _NODES})
"""Settings that other keys of the job decide, or nobody."""
_DECIDE = {
    "MODEL": "layers, sizes and division of the model follow from it",
    "DATA_DIR": "the folders of data and checkpoints follow from it",
}
"""Settings from which the build concludes others, and those would stay as they are."""
_SHOWN = 3


def check(found: Built, job: JobPlan, given: Mapping[str, str]) -> list[str]:
    """Warnings. Raises CannotRead for what `cycleforge validate` would stop, and for what the files contradict."""
    for name, why in _DECIDE.items():
        if name in given and given[name] != dict(job.settings).get(name):
            text = f"--set {name}: {why}, and would stay as they are"
            raise CannotRead(text, "change it in the definition, and build again")
    before, after = as_it_runs(found, job, {}), as_it_runs(found, job, given)
    # With an error of its own the job has not been looked at as a whole, and so nothing of it is known.
    known = {(problem.rule_id, problem.message) for problem in before.problems if before.plan is not None}
    new = [problem for problem in after.problems if (problem.rule_id, problem.message) not in known]
    errors = [problem for problem in new if fails([problem])]
    if errors:
        raise CannotRead("; ".join(_text(problem, given) for problem in errors[:_SHOWN]), _hint(errors[0]))
    _files_agree(_job_of(before), _job_of(after))
    return [f"warning: {_text(problem, given)}" for problem in new if problem.level == "warning"]


def as_it_runs(found: Built, job: JobPlan, given: Mapping[str, str]) -> Checked:
    """The definition with this job alone, each of whose settings is given as it will be in `settings.env`."""
    from ..pipeline import check_source

    source = found.definition.checked.source
    settings = {name: value for name, value in {**dict(job.settings), **given}.items() if name not in _FOLLOWS}
    entry: dict[str, Any] = {
        "name": job.name, "recipe": job.recipe, "partition": job.partition, "vm_size": job.vm_size,
        "nodes": int(given.get(_NODES, job.nodes)), "settings": settings,
    }  # fmt: skip
    data = {**(source.data or {}), "jobs": {"validation": [], "add_validation": [], "training": [], job.kind: [entry]}}
    return check_source(replace(source, data=data), os.environ, found.definition.folder)


def _job_of(checked: Checked) -> JobPlan | None:
    return checked.plan.jobs[0] if checked.plan is not None else None


def _files_agree(before: JobPlan | None, after: JobPlan | None) -> None:
    """Raises CannotRead where a batch file asks Slurm for something else than the settings say."""
    if before is None or after is None:
        return
    for is_now, would_be in zip(before.steps, after.steps, strict=True):
        # The number of nodes is given to sbatch.
        names = {name for name, _ in {*is_now.options} ^ {*would_be.options}} - {"nodes"}
        differ = [f"--{name}" for name in sorted(names)]
        if differ:
            raise CannotRead(
                f"--set needs another {first(differ, _SHOWN)} in {is_now.file}, by which Slurm gives the job its nodes",
                "change it in the definition, and build again",
            )


def _text(problem: Problem, given: Mapping[str, str]) -> str:
    """As the definition's reader is told it, but for the place."""
    named = [str(part) for part in problem.path if part in given]
    if not named and "nodes" in problem.path and _NODES in given:
        named = [_NODES]
    return f"--set {', '.join(named or given)}: {problem.message} ({problem.rule_id})"


def _hint(problem: Problem) -> str | None:
    return problem.hint or f"`cycleforge explain {problem.rule_id}` says why"
