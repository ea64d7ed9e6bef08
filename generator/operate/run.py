"""A job on the cluster: prepare, begin or reattach, follow, judge. A command that is repeated begins nothing twice."""

from __future__ import annotations

import getpass
import os
import re
import shlex
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec import Struct

from ..cyclecloud.jobs import prepared as preparing
from ..cyclecloud.jobs.connection import HOST, Connection, Line
from ..cyclecloud.jobs.prepared import Prepared
from ..cyclecloud.jobs.scheduler import Scheduler, Seen, Step
from ..cyclecloud.jobs.settings import given
from ..errors import AzureRefused, CannotRead, CannotWrite
from ..pipeline import Checked, check_source
from ..plan.jobs import JobPlan
from ..problems.problem import Problem, fails
from ..words.counts import first
from ..words.suggestions import suggestion
from . import way
from .built import Built, Tell, looked_for
from .cluster import Say, silent
from .reading import Target

Show = Callable[[Line], None]
"""Hears what happens on the cluster."""
_SPECIAL = re.compile(r'([\\"$`])')


class Order(Struct, frozen=True):
    job: str
    """A job of the built folder, or the path of a folder with a job.sbatch."""
    settings: Sequence[str] = ()
    """`K=V`."""
    begin_at: str | None = None
    """The step to begin at; earlier ones are done."""
    is_new: bool = False
    """Begin a new run in any case."""
    is_followed: bool = False
    fetch: Path | None = None
    """A folder that is new or empty, for the run's folder at its end."""


class Ran(Struct, frozen=True):
    seen: Seen
    result: Result | None
    """None: it is submitted, and its end was not awaited."""
    scheduler: Scheduler

    def told(self) -> None:
        """Note that the user was shown the result, so that the same order begins anew. Raises AzureRefused."""
        self.scheduler.told(self.seen.name)


def _ready(target: Target, order: Order, say: Say, tell: Tell) -> tuple[Built, Prepared, str | None]:
    """Return the deployment, what would be sent, and the step to begin at. Raises CannotRead and CannotWrite."""
    found = looked_for(target, tell)
    prepared = _prepared(found, order.job, given(order.settings), say)
    begin_at = None if order.begin_at is None else preparing.step_of(prepared, order.begin_at)
    must_be_free(order.fetch)
    way.tell_ssh(found, target)
    return found, prepared, begin_at


def _prepared(found: Built, word: str, settings: dict[str, str], say: Say) -> Prepared:
    jobs = {job.name: job for job in found.plan.jobs}
    job = jobs.get(word)
    if job is None:
        if Path(word).is_dir():
            return preparing.of_folder(Path(word), settings)
        hint = suggestion(word, jobs) or (f"jobs: {', '.join(jobs)}" if jobs else None)
        raise CannotRead(f"there is no job '{word}' in {found.folder}/jobs, and no folder of that name", hint)
    folder = found.folder / "jobs" / job.name
    if not (folder / preparing.JOB).is_file():
        raise CannotRead(f"{folder} is not built", f"cycleforge build {found.plan.definition_name}")
    slurm = found.plan.slurm
    arrays = slurm.node_arrays if slurm is not None else ()
    most = next((array.max_nodes for array in arrays if array.name == job.node_array), None)
    prepared = preparing.of_plan(job, folder, settings, most)
    for warning in settings_warnings(found, job, settings) if settings else ():
        say(warning)
    return prepared


def run(target: Target, order: Order, *, say: Say = silent, show: Show = silent, tell: Tell = silent) -> Ran:
    """Begin a job, or reattach to one; return its verdict when it is followed, fetched or over."""
    found, prepared, begin_at = _ready(target, order, say, tell)
    scheduler = Scheduler(connection_of(found))
    seen = _begun(scheduler, prepared, begin_at, say, is_new=order.is_new)
    if order.is_followed or order.fetch:
        # One that is over shows all that it has written.
        seen = _followed(scheduler, seen, say, show)
    elif seen.deciding is None:
        return Ran(seen, None, scheduler)
    step = seen.deciding
    if step is None:
        raise AzureRefused(seen.silent or "Slurm does not say how the job ended", "run the same command to ask again")
    content = scheduler.result(seen.name, step.file) if prepared.plan is not None else b""
    result = judged(prepared, seen, step, content)
    if order.fetch is not None:
        fetched(lambda folder: scheduler.fetch(seen.name, folder), order.fetch, say)
    return Ran(seen, result, scheduler)


def _begun(scheduler: Scheduler, prepared: Prepared, begin_at: str | None, say: Say, *, is_new: bool) -> Seen:
    seen = scheduler.look(prepared.key)
    failed = seen.deciding if seen.deciding is not None and not seen.deciding.is_good else None
    if seen.name and not is_new:
        if seen.deciding is None or not seen.is_told:
            say(f"run {seen.name}, which {seen.who} began: {'its result' if seen.deciding else 'it is running'}")
            if begin_at and not seen.deciding:
                say("--from applies only to a run that begins: --new begins one")
            return seen if seen.is_submitted else scheduler.go_on(seen)
        again = begin_at or (failed.file if failed is not None and failed.file != prepared.step_names[-1] else None)
        if again is not None:
            say(f"run {seen.name} continues at {again}; earlier steps are done")
            return scheduler.go_on(seen, again)
    command = preparing.shared_folders(prepared)
    if command:
        scheduler.prepare(command)
    fresh = scheduler.begin(prepared, seen.number + 1, who=whoami(), begin_at=begin_at)
    also = ", which someone else has begun as well" if fresh.joined else ""
    say(f"run {fresh.name}{also}, in ~/jobs on the cluster")
    return fresh


def _followed(scheduler: Scheduler, seen: Seen, say: Say, show: Show) -> Seen:
    try:
        for line in scheduler.follow(seen.name):
            show(line)
    except KeyboardInterrupt:
        say("\nthe job continues; run the same command to reattach")
        raise
    return scheduler.state(seen.name)


# ---------------------------------------------------------------- what `prove` does as well


def connection_of(found: Built) -> Connection:
    return Connection(way.shell_of(found, HOST))


def whoami() -> str:
    """Return who runs this command, for others who find the run."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = "someone"
    return f"{user}@{socket.gethostname()}"


def must_be_free(folder: Path | None) -> None:
    """Raise CannotWrite when something would be overwritten, before anything is submitted."""
    if folder is None:
        return
    try:
        taken = folder.exists() and not (folder.is_dir() and not any(folder.iterdir()))
    except OSError as error:
        raise CannotWrite(f"cannot look into {folder}: {(error.strerror or 'error').lower()}") from error
    if taken:
        raise CannotWrite(f"{folder} already exists", "--fetch takes a folder that is new or empty")


def fetched(fetch: Callable[[Path], list[str]], folder: Path, say: Say) -> None:
    """Copy into a new or empty folder, as a whole or not at all. Raises CannotWrite."""
    must_be_free(folder)
    try:
        if folder.exists():
            folder.rmdir()
        for line in fetch(folder):
            say(line)
    except OSError as error:
        raise CannotWrite(f"cannot write {folder}: {(error.strerror or 'error').lower()}") from error


# ---------------------------------------------------------------- what is printed


def lines(target: Target, order: Order, *, say: Say = silent, tell: Tell = silent) -> list[str]:
    """Return the lines that do the same: `scp`, then `ssh` with each `sbatch`, and `scp` back."""
    found, prepared, begin_at = _ready(target, order, say, tell)
    config = way.config_of(found)
    ssh = shlex.join(["ssh", "-F", str(config), "scheduler"])
    scp = shlex.join(["scp", "-r", "-F", str(config)])
    folder = f"jobs/{prepared.name}-{prepared.key}-1"
    first = prepared.step_names.index(begin_at) if begin_at else 0
    library = preparing.library_of(prepared.folder)
    typed = [f"{ssh} mkdir -p jobs{'/lib' if library else ''}"]
    typed += [f"{scp} {shlex.quote(str(library))} scheduler:jobs/lib/"] if library else []
    typed.append(f"{scp} {shlex.quote(str(prepared.folder))} scheduler:{folder}")
    for name, value in sorted(prepared.settings.items()):
        setting = shlex.quote(f"{name}={shlex.quote(value)}")
        typed.append(f"{ssh} {_word(f'echo {setting} >>{folder}/settings.env')}")
    before = ""
    for number, (file, *options) in enumerate(prepared.steps[first:], first + 1):
        is_last = number == len(prepared.steps)
        waits = ["--wait"] if is_last and (order.is_followed or order.fetch) else []
        environment = "".join(f"{name}={shlex.quote(value)} " for name, value in sorted(prepared.environment.items()))
        sbatch = f"{environment}{shlex.join(['sbatch', '--parsable', *waits, *options])}"
        line = f"{ssh} {_word(f'cd {folder} && {sbatch}{before} {shlex.quote(file)}')}"
        typed.append(line if is_last else f"step{number}=$({line})")
        before = f" --dependency=afterok:@step{number}@"
    if order.fetch is not None:
        typed.append(f"{scp} scheduler:{folder} {shlex.quote(str(order.fetch))}")
    return typed


def _word(text: str) -> str:
    """Quote one word of the local shell, into which that puts the number of an earlier step."""
    return '"' + re.sub(r"@(step[0-9]+)@", r"${\1}", _SPECIAL.sub(r"\\\1", text)) + '"'


_NODES = "NODES"
_FOLLOWS = frozenset({"JOB", "PARTITION", "RECIPE", "RUNS_DIR", "VM_SIZE", _NODES})
"""Settings that other keys of the job decide, or that cannot be chosen."""
_DECIDE = {
    "MODEL": "layers, sizes and division of the model follow from it",
    "DATA_DIR": "the folders of data and checkpoints follow from it",
}
"""Settings from which the build derives others, which would not change."""
_SHOWN = 3


# ---------------------------------------------------------------- settings


def settings_warnings(found: Built, job: JobPlan, given: Mapping[str, str]) -> list[str]:
    """Check a job with other settings than the definition gives it.

    Raises CannotRead for what `cycleforge validate` would stop, and for what the files contradict.
    """
    for name, why in _DECIDE.items():
        if name in given and given[name] != dict(job.settings).get(name):
            text = f"--set {name}: {why}, and would not change"
            raise CannotRead(text, "change it in the definition, and build again")
    before, after = as_it_runs(found, job, {}), as_it_runs(found, job, given)
    # With an error of its own the job has not been looked at as a whole, and so nothing of it is known.
    known = {(problem.rule_id, problem.message) for problem in before.problems if before.plan is not None}
    new = [problem for problem in after.problems if (problem.rule_id, problem.message) not in known]
    errors = [problem for problem in new if fails([problem])]
    if errors:
        hint = errors[0].hint or f"`cycleforge explain {errors[0].rule_id}` says why"
        raise CannotRead("; ".join(_text(problem, given) for problem in errors[:_SHOWN]), hint)
    if before.plan is not None and after.plan is not None:
        _files_agree(before.plan.jobs[0], after.plan.jobs[0])
    return [f"warning: {_text(problem, given)}" for problem in new if problem.level == "warning"]


def as_it_runs(found: Built, job: JobPlan, given: Mapping[str, str]) -> Checked:
    """Check the definition with this job alone, and with all its settings as they will be in `settings.env`."""
    source = found.definition.checked.source
    settings = {name: value for name, value in {**dict(job.settings), **given}.items() if name not in _FOLLOWS}
    entry: dict[str, Any] = {
        "name": job.name, "recipe": job.recipe, "partition": job.partition, "vm_size": job.vm_size,
        "nodes": int(given.get(_NODES, job.nodes)), "settings": settings,
    }  # fmt: skip
    data = {**(source.data or {}), "jobs": {"validation": [], "add_validation": [], "training": [], job.kind: [entry]}}
    return check_source(replace(source, data=data), os.environ, found.definition.folder)


def _files_agree(before: JobPlan, after: JobPlan) -> None:
    """Raise CannotRead where a batch file asks Slurm for something else than the settings say."""
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
    named = [str(part) for part in problem.path if part in given]
    if not named and "nodes" in problem.path and _NODES in given:
        named = [_NODES]
    return f"--set {', '.join(named or given)}: {problem.message} ({problem.rule_id})"


# ---------------------------------------------------------------- the verdict


STATUS = {"pass": 0, "fail": 1, "error": 2, "warn": 3, "no_baseline": 4}
"""Exit statuses, as in recipes/lib/verdicts.sh."""
_ALLOW_WARN = "ALLOW_WARN"
_TASKS_SHOWN = 8
"""Tasks of an array that are named."""


class Result(Struct, frozen=True):
    verdict: str
    status: int
    text: str


def judged(prepared: Prepared, seen: Seen, step: Step, content: bytes) -> Result:
    """Judge the step that decides; `content` is the record that its job has left."""
    if prepared.plan is None:
        return _by_status(step)
    if step.file != seen.steps[-1].file and not content:
        result = _by_status(step)
        return Result("error" if result.status else result.verdict, result.status or 2, result.text)
    return _by_record(prepared, step, content)


def _by_status(step: Step) -> Result:
    where = f"{step.file}, job {step.job}"
    if step.status is None:
        text = f"{where}: its exit status is unknown: Slurm has forgotten the job, and accounting has no record of it"
        return Result("no_baseline", STATUS["no_baseline"], text)
    text = f"{where}: {step.states}, exit status {step.status}{_not_well(step)}"
    return Result("pass" if step.status == 0 else "fail", step.status, text)


def _not_well(step: Step) -> str:
    """Name the tasks of an array that failed; empty for a single job."""
    bad = [f"{task.id} {task.state} {task.exit}" for task in step.tasks if task.state != "COMPLETED"]
    if len(step.tasks) == 1 or not bad:
        return ""
    return f"; {len(bad)} of {len(step.tasks)} tasks failed: {first(bad, _TASKS_SHOWN)}"


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
