"""`cycleforge run`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import OK, AzureRefused
from . import common

if TYPE_CHECKING:
    from ..operate.run import Line

DESCRIPTION = """\
Run a job of the built folder, or of any folder with a job.sbatch, on the cluster: copy it to its own folder below
~/jobs, submit its steps (NN-*.sbatch, then job.sbatch) one after the other, follow their output, fetch the results, and
end with the verdict. Without --wait it returns when the job is submitted.

If it is interrupted or the connection is lost, the job continues. Nothing is submitted twice: any user can run the same
command to reattach, until its result has been shown. If a step before the last one failed, the same command continues
at that step, without repeating earlier ones. --new always begins a new run.

For an array of up to 32 tasks, each line of output is shown with the task that wrote it. --set is checked against the
rules of definitions before anything is sent.

The exit code is that of the job: 0 pass, 1 fail, 2 error, 3 warning, 4 not proven; for a folder of your own it is the
exit status of job.sbatch. It is also 4 when the cluster cannot be reached; --json distinguishes the two.
"""


def add_arguments(parser: ArgumentParser) -> None:
    common.add(parser, "NAME", "--all", "--out", "--subscription")
    parser.add_argument("job", metavar="JOB", help="a job of the built folder (jobs/JOB), or a folder with job.sbatch")
    parser.add_argument(
        "--set", metavar="K=V", action="append", default=[], help="change a setting of the job; may be repeated"
    )
    parser.add_argument("--from", metavar="STEP", dest="begin_at", help="begin at this step; earlier ones are done")
    parser.add_argument("--new", action="store_true", help="begin a new run in any case")
    parser.add_argument("--wait", action="store_true", help="follow the job to its end, and exit with its verdict")
    parser.add_argument(
        "--fetch", metavar="DIR", type=Path, help="also copy the folder of the run there at its end (implies --wait)"
    )
    parser.add_argument("--print", action="store_true", help="print the lines that do the same; run nothing")
    common.add(parser, "--json")


def run(args: Namespace) -> int:
    from ..operate import run as running
    from ..operate.run import steps_json

    order = running.Order(args.job, args.set, args.begin_at, args.new, args.wait, args.fetch)
    target, tell = common.target_of(args), partial(common.tell, args=args)
    if args.print:
        common.emit("\n".join(running.lines(target, order, say=common.say, tell=tell)))
        return OK
    ran = running.run(target, order, say=common.say, show=show, tell=tell)
    seen, result = ran.seen, ran.result
    if result is None:
        if args.json:
            common.emit_json({"ok": True, "run": seen.name, "verdict": None, "steps": steps_json(seen)})
        else:
            for step in seen.steps:
                common.emit(f"{step.file}: job {step.job}")
            common.say(f"add --wait to follow it to its verdict; its folder is ~/jobs/{seen.name}")
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
            common.say(f"the run is in {args.fetch}")
    noted(ran.told)
    return result.status


def show(line: Line) -> None:
    """Print what happens on the cluster."""
    from ..words.terminal import printable

    if line.kind == "log":
        task, text = (printable(word.expandtabs()) for word in line.words)
        # A task of an array, or a part of a heterogeneous job.
        common.say(f"{task}: {text}" if "_" in task or "+" in task else text)
    elif line.kind == "state":
        job, states, reason = (printable(word) for word in line.words)
        if job:
            common.say(f"{line.step}: job {job}: {states}{f' ({reason})' if reason else ''}")
    elif line.kind == "silent":
        common.say(f"{printable(line.words[0])}; the job continues, and the question is repeated")
    elif line.kind == "answers":
        common.say("Slurm answers again")
    elif line.kind == "note":
        common.say(f"{line.step}: {printable(line.words[0])}")
    elif line.kind == "lost":
        common.say(f"{printable(line.words[0])}; the job continues, and the connection is tried again")


def noted(note: Callable[[], None]) -> None:
    """Note on the cluster that the result was shown; the verb has succeeded even if that fails."""
    try:
        note()
    except AzureRefused as lost:
        common.say(f"{lost.message}; the same command may show this result once more")
