"""A job on the cluster: prepared, begun or taken up, followed, judged. Whatever is repeated begins nothing twice."""

from __future__ import annotations

import getpass
import re
import shlex
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

from ..cyclecloud.jobs import prepared as preparing
from ..cyclecloud.jobs.connection import HOST, Connection, Line
from ..cyclecloud.jobs.prepared import Prepared
from ..cyclecloud.jobs.scheduler import Scheduler, Seen
from ..cyclecloud.jobs.settings import given
from ..errors import AzureRefused, CannotRead, CannotWrite
from ..records import record
from ..words.suggestions import suggestion
from . import run_settings, way, whereabouts
from .built import Built, Tell, looked_for
from .cluster import Say, silent
from .reading import Target
from .run_verdict import Result, judged

Show = Callable[[Line], None]
"""Hears what happens on the cluster."""
_SPECIAL = re.compile(r'([\\"$`])')


@record
class Order:
    job: str
    """A job of the built folder, or the path of a folder with a job.sbatch."""
    settings: Sequence[str] = ()
    """`K=V`."""
    begin_at: str | None = None
    """The step; what is before it is done."""
    is_new: bool = False
    """Whatever became of an earlier run."""
    is_followed: bool = False
    fetch: Path | None = None
    """A folder that is new or empty, for the run's folder at its end."""


@record
class Ran:
    seen: Seen
    result: Result | None
    """None: it is submitted, and nobody has waited."""
    scheduler: Scheduler

    def told(self) -> None:
        """Note that the user knows the result: the same order begins anew. Raises AzureRefused."""
        self.scheduler.told(self.seen.name)


def _ready(target: Target, order: Order, say: Say, tell: Tell) -> tuple[Built, Prepared, str | None]:
    """The deployment, what would be sent, and the step to begin at. Raises CannotRead and CannotWrite."""
    found = looked_for(target, tell)
    prepared = _prepared(found, order.job, given(order.settings), say)
    begin_at = None if order.begin_at is None else preparing.step_of(prepared, order.begin_at)
    must_be_free(order.fetch)
    whereabouts.tell(found, target)
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
    for warning in run_settings.check(found, job, settings) if settings else ():
        say(warning)
    return prepared


def run(target: Target, order: Order, *, say: Say = silent, show: Show = silent, tell: Tell = silent) -> Ran:
    """Begin it, or take up what was begun; to its verdict where it is followed, fetched or over."""
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
        raise AzureRefused(seen.silent or "Slurm does not say how the job ended", "the same command asks again")
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
            say(f"run {seen.name}, which {seen.who} began: {'its result' if seen.deciding else 'goes on'}")
            if begin_at and not seen.deciding:
                say("--from is that of its start: --new begins another one")
            return seen if seen.is_submitted else scheduler.go_on(seen)
        again = begin_at or (failed.file if failed is not None and failed.file != prepared.step_names[-1] else None)
        if again is not None:
            say(f"run {seen.name} goes on at {again}; what is before it is done")
            return scheduler.go_on(seen, again)
    command = preparing.shared_folders(prepared)
    if command:
        scheduler.prepare(command)
    fresh = scheduler.begin(prepared, seen.number + 1, who=whoami(), begin_at=begin_at)
    also = ", which someone else has begun, too" if fresh.joined else ""
    say(f"run {fresh.name}{also}, in ~/jobs on the cluster")
    return fresh


def _followed(scheduler: Scheduler, seen: Seen, say: Say, show: Show) -> Seen:
    try:
        for line in scheduler.follow(seen.name):
            show(line)
    except KeyboardInterrupt:
        say("\nthe job runs on; the same command attaches to it again")
        raise
    return scheduler.state(seen.name)


# ---------------------------------------------------------------- what `prove` does as well


def connection_of(found: Built) -> Connection:
    return Connection(way.shell_of(found, HOST))


def whoami() -> str:
    """Who runs this, for others who meet the run."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = "someone"
    return f"{user}@{socket.gethostname()}"


def must_be_free(folder: Path | None) -> None:
    """Raises CannotWrite where something would be overwritten, which is known before anything is submitted."""
    if folder is None:
        return
    try:
        taken = folder.exists() and not (folder.is_dir() and not any(folder.iterdir()))
    except OSError as error:
        raise CannotWrite(f"cannot look into {folder}: {(error.strerror or 'error').lower()}") from error
    if taken:
        raise CannotWrite(f"{folder} is there already", "--fetch takes a folder that is new or empty")


def fetched(fetch: Callable[[Path], list[str]], folder: Path, say: Say) -> None:
    """Copy to this folder, which is new or empty; as a whole or not at all. Raises CannotWrite."""
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
    """What a person types for the same: `scp`, then `ssh` with each `sbatch`, and `scp` back."""
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
    """One word of the local shell, which puts the number of an earlier step into it."""
    return '"' + re.sub(r"@(step[0-9]+)@", r"${\1}", _SPECIAL.sub(r"\\\1", text)) + '"'
