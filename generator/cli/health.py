"""`cycleforge health`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import OK, CannotRead, ProblemsFound
from . import common

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..health.assess import Assessment, Wishes
    from ..health.gather import Gathered

DESCRIPTION = """\
Read the results of the nodes' health checks, which slurm_nhc writes to a shared folder of the cluster (by default
/sched/cycleforge-health): gather them, or report which nodes to take out of service and why. No cluster is contacted.
"""
_COLLECT = """\
Write the newest result of every node into one file. Folders are read recursively; the content of a file counts,
not its name. Files that cannot be used are listed, and kept as problems in the summary.
"""
_REPORT = """\
Report which nodes failed, are missing, stale or not measured, and which pass every limit but are slower than
their peers.

The exit code is 0 when every node is healthy, 1 when one failed, is missing, stale or was not measured, and 2 when a
file that may be a result cannot be used. Suspects do not change it.
"""
_PATHS = "folder or file of results, or a summary of `health collect`"
_LISTS = ("failed", "held", "missing", "stale", "unmeasured", "suspect")


def add_arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", dest="action", required=True)
    collect = common.add_action(actions, "collect", "gather results into one file", _COLLECT)
    collect.add_argument("paths", metavar="PATH", nargs="+", help=_PATHS)
    collect.add_argument("--into", metavar="FILE", type=Path, required=True, help="the summary to write")
    common.add(collect, "--json")
    report = common.add_action(actions, "report", "report nodes, failures and suspects", _REPORT)
    report.add_argument("paths", metavar="PATH", nargs="+", help=_PATHS)
    report.add_argument(
        "--expect",
        metavar="NODES",
        action="append",
        help="nodes that must have results, as Slurm lists them: 'hpc-[1-16],gpu-[01-04]'; may be repeated",
    )
    report.add_argument(
        "--max-age", metavar="AGE", help="a quick result older than this (2h, 90m, 1d) is stale; ages count from now"
    )
    report.add_argument(
        "--max-deep-age", metavar="AGE", help="the same for deep results, which are made at boot and on idle nodes"
    )
    report.add_argument(
        "--now", metavar="TIME", help="count ages from this UTC time, or from 'now', instead of the newest result"
    )
    report.add_argument("--kind", choices=("quick", "deep"), help="only these checks (default: both)")
    report.add_argument("--allow-unmeasured", action="store_true", help="do not fail for nodes that were not measured")
    report.add_argument(
        "--nodes-only",
        metavar="STATE",
        action="append",
        choices=_LISTS,
        help=f"print only the host list of these nodes, for scontrol; may be repeated: {', '.join(_LISTS)}",
    )
    common.add(report, "--json")


def run(args: Namespace) -> int:
    return _collect(args) if args.action == "collect" else _report(args)


def _collect(args: Namespace) -> int:
    from ..health.gather import gather, summary_bytes, write_summary
    from ..health.text import problem_lines
    from ..words.counts import counted

    gathered = gather(args.paths, leave_out=str(args.into))
    if not args.json and gathered.problems:
        common.say("\n".join(problem_lines(gathered.problems)))
    if not gathered.newest and not gathered.has_errors:
        raise _nothing(args.paths)
    write_summary(args.into, summary_bytes(gathered))
    nodes = len({node for node, _ in gathered.newest})
    if args.json:
        common.emit_json(
            {
                "ok": not gathered.has_errors,
                "file": str(args.into),
                "nodes": nodes,
                "results": len(gathered.newest),
                "files": gathered.files,
                "superseded": gathered.superseded,
                "problems": [problem.as_json() for problem in gathered.problems],
            }
        )
    else:
        common.emit(
            f"{args.into}: {counted(len(gathered.newest), 'result')} of {counted(nodes, 'node')}, "
            f"from {counted(gathered.files, 'file')}; {counted(gathered.superseded, 'older result')} left out, "
            f"{counted(len(gathered.problems), 'problem')}"
        )
    return CannotRead.exit_code if gathered.has_errors else OK


def _report(args: Namespace) -> int:
    from ..health.assess import assess
    from ..health.gather import gather
    from ..health.text import Report, problem_lines
    from ..results.hostlist import compress

    wishes = _wishes(args)
    gathered: Gathered = gather(args.paths)
    if not gathered.newest and not gathered.problems and not wishes.expect:
        raise _nothing(args.paths)
    assessment = assess(gathered, wishes)
    if args.json:
        from ..health.machine import as_json

        common.emit_json(as_json(assessment))
    elif args.nodes_only:
        _left_out(assessment, args.nodes_only)
        if gathered.problems:
            common.say("\n".join(problem_lines(gathered.problems)))
        names = assessment.named(*args.nodes_only)
        if names:
            common.emit(compress(names))
    else:
        common.emit(Report(assessment, color=common.use_color(sys.stdout, args)).text())
    if gathered.has_errors:
        return CannotRead.exit_code
    return OK if assessment.is_healthy else ProblemsFound.exit_code


def _left_out(assessment: Assessment, states: Sequence[str]) -> None:
    """Name the failed nodes that the guard holds, which are not listed: drained by hand, they would stay out."""
    from ..results.hostlist import compress

    if "failed" in states and "held" not in states and (held := assessment.named("held")):
        text = (
            f"not listed: {compress(held)}, which fail nothing but the check of the alarm and come back by themselves"
        )
        common.say(f"{text}; --nodes-only held lists them")


def _wishes(args: Namespace) -> Wishes:
    from ..health.ages import age_s, moment_s
    from ..health.assess import Wishes
    from ..results.hostlist import expand

    now = None
    ages = [
        None if text is None else age_s(text, option)
        for text, option in ((args.max_age, "--max-age"), (args.max_deep_age, "--max-deep-age"))
    ]
    if args.now == "now" or (args.now is None and ages != [None, None]):
        import time

        now = time.time()
    elif args.now is not None:
        now = moment_s(args.now, "--now")
    return Wishes(
        expect=expand(",".join(args.expect)) if args.expect is not None else (),
        kinds=(args.kind,) if args.kind else ("quick", "deep"),
        now=now,
        max_age_s=ages[0],
        max_deep_age_s=ages[1],
        allow_unmeasured=args.allow_unmeasured,
    )


def _nothing(paths: list[str]) -> CannotRead:
    return CannotRead(
        f"there are no node health results in {', '.join(paths)}",
        "copy the folder from the cluster: scp -r <scheduler>:/sched/cycleforge-health .",
    )
