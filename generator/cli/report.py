"""`cycleforge report`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import OK, CannotRead, ProblemsFound
from . import common

if TYPE_CHECKING:
    from ..validation.assess import Assessment

DESCRIPTION = """\
Report what the validation jobs of a cluster prove, from the records (run.json) of their runs: the verdict, the nodes to
replace and why, collectives, pairs, single nodes, storage, temperatures, history, and the comparison of two runs.

Writes one HTML page that needs no network, and prints the same as text. No cluster is contacted.

The exit code is 0 when the newest run of every job passed, 1 when one failed, warns (0 with --allow-warn) or proves
nothing, or when a node has to be replaced, and 2 when a record cannot be used.
"""
PAGE = "report.html"
_HINT = "copy the folder of all runs from the cluster: scp -r <scheduler>:jobs/runs ."


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "folders", metavar="FOLDER", nargs="+", help="folder of runs (jobs/runs of the cluster), or a run.json"
    )
    parser.add_argument(
        "--compare",
        metavar=("A", "B"),
        nargs=2,
        help="compare two runs: folders, or runs as <job>-<run>; two FOLDERs are compared without it",
    )
    parser.add_argument("--html", metavar="FILE", type=Path, help=f"the page to write (default: {PAGE})")
    parser.add_argument("--text", action="store_true", help="print the report and write no page")
    parser.add_argument("--allow-warn", action="store_true", help="do not fail for warnings")
    common.add(parser, "--json")


def run(args: Namespace) -> int:
    from ..validation.assess import assess
    from ..validation.compare import compare, has_runs, side
    from ..validation.gather import gather

    extra = [word for word in args.compare or () if Path(word).exists() and word not in args.folders]
    gathered = gather([*args.folders, *extra])
    if not gathered.runs and not gathered.problems:
        raise CannotRead(f"there are no records of runs in {', '.join(args.folders)}", _HINT)
    assessment = assess(gathered)
    comparison = None
    if args.compare or (len(args.folders) == 2 and all(has_runs(word, gathered.runs) for word in args.folders)):
        comparison = compare(*(side(word, gathered.runs) for word in args.compare or args.folders))
    page = args.html or (None if args.json or args.text else Path(PAGE))
    if page is not None:
        from ..pages.shell import write
        from ..validation.page import report_page

        write(page, report_page(assessment, comparison), "--html")
    if args.json:
        from ..validation.machine import as_json

        common.emit_json(as_json(assessment, comparison))
    else:
        from ..validation.text import Report

        common.emit(Report(assessment, comparison, color=common.use_color(sys.stdout, args)).text())
    if page is not None:
        common.say(f"the page is in {page}")
    return _exit_code(assessment, allow_warn=args.allow_warn)


def _exit_code(assessment: Assessment, *, allow_warn: bool) -> int:
    if assessment.has_errors:
        return CannotRead.exit_code
    if assessment.verdict == "pass" or (allow_warn and assessment.verdict == "warn"):
        return OK
    return ProblemsFound.exit_code
