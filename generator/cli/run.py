"""`cycleforge run`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import OK, AzureRefused
from . import azure, cluster, common

if TYPE_CHECKING:
    from ..operate.run import Line

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


def add_arguments(parser: ArgumentParser) -> None:
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
    from ..operate import run as running
    from ..operate.run_verdict import steps_json

    order = running.Order(args.job, args.set, args.begin_at, args.new, args.wait, args.fetch)
    target, tell = common.target_of(args), partial(common.tell, args=args)
    if args.print:
        common.emit("\n".join(running.lines(target, order, say=cluster.say, tell=tell)))
        return OK
    ran = running.run(target, order, say=cluster.say, show=show, tell=tell)
    seen, result = ran.seen, ran.result
    if result is None:
        if args.json:
            common.emit_json({"ok": True, "run": seen.name, "verdict": None, "steps": steps_json(seen)})
        else:
            for step in seen.steps:
                common.emit(f"{step.file}: job {step.job}")
            cluster.say(f"the same command with --wait follows it to its verdict; its folder is ~/jobs/{seen.name}")
        return OK
    if args.json:
        common.emit_json(
            {"ok": result.verdict == "pass", "run": seen.name, "verdict": result.verdict, "summary": result.text,
             "exit_status": result.status, "steps": steps_json(seen),
             "fetched": None if args.fetch is None else str(args.fetch)}
        )  # fmt: skip
    else:
        common.emit(f"verdict {result.verdict}: {result.text}")
        if args.fetch is not None:
            cluster.say(f"the run is in {args.fetch}")
    noted(ran.told)
    return result.status


def show(line: Line) -> None:
    """What has happened on the cluster, on standard error."""
    from ..words.terminal import printable

    if line.kind == "log":
        task, text = (printable(word.expandtabs()) for word in line.words)
        # One of several: an array's, or a part of a heterogeneous job.
        cluster.say(f"{task}: {text}" if "_" in task or "+" in task else text)
    elif line.kind == "state":
        job, states, reason = (printable(word) for word in line.words)
        if job:
            cluster.say(f"{line.step}: job {job}: {states}{f' ({reason})' if reason else ''}")
    elif line.kind == "silent":
        cluster.say(f"{printable(line.words[0])}; the job runs on, and this is tried again")
    elif line.kind == "answers":
        cluster.say("Slurm answers again")
    elif line.kind == "note":
        cluster.say(f"{line.step}: {printable(line.words[0])}")
    elif line.kind == "lost":
        cluster.say(f"{printable(line.words[0])}; the job runs on, and the connection is tried again")


def noted(note: Callable[[], None]) -> None:
    """That the result was told, which it was, whether or not that can be noted."""
    try:
        note()
    except AzureRefused as lost:
        cluster.say(f"{lost.message}; the same command may tell this result once more")
