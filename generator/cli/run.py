"""`cycleforge run`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import OK, AzureRefused, CannotRead, CannotWrite
from . import azure, common, whereabouts

if TYPE_CHECKING:
    from ..cyclecloud.jobs.connection import Connection, Line
    from ..cyclecloud.jobs.prepared import Prepared
    from ..cyclecloud.jobs.scheduler import Scheduler
    from ..cyclecloud.jobs.seen import Seen
    from ..operate.built import Built
    from .run_verdict import Result

DESCRIPTION = """\
Run a job of the built folder, or of any folder with a job.sbatch, on the cluster: copy it to a folder of its own below
~/jobs, submit its steps (NN-*.sbatch, then job.sbatch) one after the other, follow what they write, fetch the results,
and end with the verdict. Without --wait it returns when the job is submitted.

It may be ended at any point, and the connection may be lost: the job runs on, nothing is submitted twice, and the same
command attaches to it again, whoever types it, until someone was told the result. Where a step before the last one
has failed, the same command then goes on at that step; steps that are done are found. --new always begins anew.

A job gets a name of its own, by which it is found again. Of an array of up to 32 tasks each line is shown behind the
task that wrote it. --set is held against the rules of definitions before anything is sent.

The exit code is that of the job: 0 pass, 1 fail, 2 error, 3 warning, 4 not proven; for a folder of your own it is the
exit status of job.sbatch. It is 4, too, when the cluster cannot be reached; --json tells them apart.
"""
CONFIG = "ssh_config"


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the flags."""
    common.add_definitions(parser, many=False)
    common.add_all(parser)
    common.add_out(parser)
    azure.add_subscription(parser)
    parser.add_argument("job", metavar="JOB", help="a job of the built folder (jobs/JOB), or a folder with job.sbatch")
    parser.add_argument(
        "--set", metavar="K=V", action="append", default=[], help="change a setting of the job; may be repeated"
    )
    parser.add_argument("--from", metavar="STEP", dest="begin_at", help="begin at this step; what is before it is done")
    parser.add_argument("--new", action="store_true", help="begin a new run, whatever became of an earlier one")
    parser.add_argument("--wait", action="store_true", help="follow the job to its end, and exit with its verdict")
    parser.add_argument("--fetch", metavar="DIR", type=Path, help="copy the run's folder there at its end (as --wait)")
    parser.add_argument("--print", action="store_true", help="print the lines that do the same; run nothing")
    common.add_json(parser)


def run(args: Namespace) -> int:
    """Prepare, look, submit, follow, judge."""
    from .built import looked_for

    found = looked_for(args)
    prepared = _prepared(found, args)
    begin_at = _begin_at(prepared, args)
    free(args.fetch)
    whereabouts.tell(args, found)
    whereabouts.remember(found.plan.definition_name)
    if args.print:
        from .run_print import lines

        common.emit("\n".join(lines(found.folder / CONFIG, prepared, begin_at, args)))
        return OK
    from ..cyclecloud.jobs.scheduler import Scheduler

    scheduler = Scheduler(connection_of(found))
    seen = _begun(scheduler, prepared, begin_at, args)
    if args.wait or args.fetch:
        # One that is over shows all that it has written.
        seen = _followed(scheduler, seen)
    elif seen.deciding is None:
        return _submitted(seen, args)
    return _ended(scheduler, prepared, seen, args)


def connection_of(found: Built) -> Connection:
    """The way to the scheduler that the built folder has."""
    from ..cyclecloud.jobs.connection import HOST, Connection
    from ..cyclecloud.shell import Shell

    config = found.folder / CONFIG
    if not config.is_file():
        raise CannotRead(f"{config} is missing", f"cycleforge build {found.plan.definition_name}")
    return Connection(Shell(config, HOST))


def whoami() -> str:
    """Who runs this, for others who meet the run."""
    import getpass
    import socket

    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = "someone"
    return f"{user}@{socket.gethostname()}"


def _prepared(found: Built, args: Namespace) -> Prepared:
    from ..cyclecloud.jobs import prepared as preparing
    from ..cyclecloud.jobs.settings import given
    from ..words.suggestions import suggestion

    settings = given(args.set)
    jobs = {job.name: job for job in found.plan.jobs}
    job = jobs.get(args.job)
    path = Path(args.job)
    if job is not None:
        folder = found.folder / "jobs" / job.name
        if not (folder / preparing.JOB).is_file():
            raise CannotRead(f"{folder} is not built", f"cycleforge build {args.name}")
        slurm = found.plan.slurm
        arrays = slurm.node_arrays if slurm is not None else ()
        most = next((array.max_nodes for array in arrays if array.name == job.node_array), None)
        prepared = preparing.of_plan(job, folder, settings, most)
        if settings:
            from .run_settings import check

            for warning in check(found, job, settings):
                _say(warning)
        return prepared
    if path.is_dir():
        return preparing.of_folder(path, settings)
    hint = suggestion(args.job, jobs) or (f"jobs: {', '.join(jobs)}" if jobs else None)
    raise CannotRead(f"there is no job '{args.job}' in {found.folder}/jobs, and no folder of that name", hint)


def _begin_at(prepared: Prepared, args: Namespace) -> str | None:
    from ..cyclecloud.jobs.prepared import step_of

    return None if args.begin_at is None else step_of(prepared, args.begin_at)


def free(folder: Path | None) -> None:
    """Raises CannotWrite where something would be overwritten, which is known before anything is submitted."""
    if folder is None:
        return
    try:
        taken = folder.exists() and not (folder.is_dir() and not any(folder.iterdir()))
    except OSError as error:
        raise CannotWrite(f"cannot look into {folder}: {(error.strerror or 'error').lower()}") from error
    if taken:
        raise CannotWrite(f"{folder} is there already", "--fetch takes a folder that is new or empty")


def _begun(scheduler: Scheduler, prepared: Prepared, begin_at: str | None, args: Namespace) -> Seen:
    """The run: one that goes on, or a new one."""
    from ..cyclecloud.jobs.prepared import shared_folders

    seen = scheduler.look(prepared.key)
    failed = seen.deciding if seen.deciding is not None and not seen.deciding.is_good else None
    if seen.name and not args.new:
        if seen.deciding is None or not seen.is_told:
            _say(f"run {seen.name}, which {seen.who} began: {'its result' if seen.deciding else 'goes on'}")
            if args.begin_at and not seen.deciding:
                _say("--from is that of its start: --new begins another one")
            return seen if seen.is_submitted else scheduler.go_on(seen)
        again = begin_at or (failed.file if failed is not None and failed.file != prepared.step_names[-1] else None)
        if again is not None:
            _say(f"run {seen.name} goes on at {again}; what is before it is done")
            return scheduler.go_on(seen, again)
    command = shared_folders(prepared)
    if command:
        scheduler.prepare(command)
    fresh = scheduler.begin(prepared, seen.number + 1, who=whoami(), begin_at=begin_at)
    also = ", which someone else has begun, too" if fresh.joined else ""
    _say(f"run {fresh.name}{also}, in ~/jobs on the cluster")
    return fresh


def _submitted(seen: Seen, args: Namespace) -> int:
    if args.json:
        from .run_verdict import steps_json

        common.emit_json({"ok": True, "run": seen.name, "verdict": None, "steps": steps_json(seen)})
    else:
        for step in seen.steps:
            common.emit(f"{step.file}: job {step.job}")
        _say(f"the same command with --wait follows it to its verdict; its folder is ~/jobs/{seen.name}")
    return OK


def _followed(scheduler: Scheduler, seen: Seen) -> Seen:
    try:
        for line in scheduler.follow(seen.name):
            show(line)
    except KeyboardInterrupt:
        print("\nthe job runs on; the same command attaches to it again", file=sys.stderr)
        raise
    return scheduler.state(seen.name)


def show(line: Line) -> None:
    """What has happened on the cluster, on standard error."""
    from ..words.terminal import printable

    if line.kind == "log":
        task, text = (printable(word.expandtabs()) for word in line.words)
        # One of several: an array's, or a part of a heterogeneous job.
        _say(f"{task}: {text}" if "_" in task or "+" in task else text)
    elif line.kind == "state":
        job, states, reason = (printable(word) for word in line.words)
        if job:
            _say(f"{line.step}: job {job}: {states}{f' ({reason})' if reason else ''}")
    elif line.kind == "silent":
        _say(f"{printable(line.words[0])}; the job runs on, and this is tried again")
    elif line.kind == "answers":
        _say("Slurm answers again")
    elif line.kind == "note":
        _say(f"{line.step}: {printable(line.words[0])}")
    elif line.kind == "lost":
        _say(f"{printable(line.words[0])}; the job runs on, and the connection is tried again")


def _ended(scheduler: Scheduler, prepared: Prepared, seen: Seen, args: Namespace) -> int:
    from .run_verdict import judged

    step = seen.deciding
    if step is None:
        raise AzureRefused(seen.silent or "Slurm does not say how the job ended", "the same command asks again")
    record = scheduler.result(seen.name, step.file) if prepared.plan is not None else b""
    result = judged(prepared, seen, step, record)
    if args.fetch is not None:
        fetched(lambda folder: scheduler.fetch(seen.name, folder), args.fetch)
    _report(result, seen, args)
    noted(lambda: scheduler.told(seen.name))
    return result.status


def noted(note: Callable[[], None]) -> None:
    """That the result was told, which it was, whether or not that can be noted."""
    try:
        note()
    except AzureRefused as lost:
        _say(f"{lost.message}; the same command may tell this result once more")


def fetched(fetch: Callable[[Path], list[str]], folder: Path) -> None:
    """Copy to this folder, which is new or empty; as a whole or not at all. Raises CannotWrite."""
    free(folder)
    try:
        if folder.exists():
            folder.rmdir()
        for line in fetch(folder):
            _say(line)
    except OSError as error:
        raise CannotWrite(f"cannot write {folder}: {(error.strerror or 'error').lower()}") from error


def _report(result: Result, seen: Seen, args: Namespace) -> None:
    from .run_verdict import steps_json

    if args.json:
        common.emit_json(
            {"ok": result.verdict == "pass", "run": seen.name, "verdict": result.verdict, "summary": result.text,
             "exit_status": result.status, "steps": steps_json(seen),
             "fetched": None if args.fetch is None else str(args.fetch)}
        )  # fmt: skip
    else:
        common.emit(f"verdict {result.verdict}: {result.text}")
        if args.fetch is not None:
            _say(f"the run is in {args.fetch}")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
