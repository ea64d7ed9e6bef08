"""`cycleforge prove`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from functools import partial
from pathlib import Path

from ..errors import OK, CannotRead, ProblemsFound
from . import azure, common
from .run import noted, show

DESCRIPTION = """\
Prove a partition of the cluster with prove.sh of the built folder: copy the jobs to their own folder below ~/jobs, show
what would run and what that may cost, ask, start it, follow it, and write the report (`cycleforge report`).

prove.sh runs on the scheduler by itself. If this command is interrupted or the connection is lost, any user can run the
same command to reattach, until the result has been shown.

The exit code is that of prove.sh: 0 pass, 1 fail, 2 error, 3 warnings, 4 not proven. It is also 4 when the cluster
cannot be reached; --json distinguishes the two.
"""
LEVELS = ("quick", "standard", "burn")
_VALUES = {
    "partition": ("NAME", "the partition (default: the first with GPUs)"),
    "size": ("VM_SIZE", "VM size, for a partition with several"),
    "nodes": ("N|LIST", "number of nodes, or their names (gpu-[1-4]); default: all of the partition"),
    "max-hours": ("H", "stop after this many hours (default: twice what all gates may take once)"),
    "max-gpu-hours": ("H", "start no job that could exceed this (default: likewise)"),
    "burn-minutes": ("M", "length of each gate of the level burn (default: 60)"),
    "skip": ("GATE,GATE", "leave gates out; may be repeated"),
}
_LISTS = ("nodes", "skip")
"""Options whose values add up when they are repeated."""
_SWITCHES = {
    "no-drain": "leave bad nodes out of this run, but do not drain them",
    "new": "give up an unfinished run: its job is cancelled",
}
_VERDICTS = {0: "pass", 1: "fail", 2: "error", 3: "warn", 4: "no_baseline"}
PAGE = "report.html"


def add_arguments(parser: ArgumentParser) -> None:
    common.add(parser, "NAME", "--all", "--out", "--subscription")
    parser.add_argument("--level", choices=LEVELS, default=LEVELS[0], help="how much is tested (default: quick)")
    for name, (value, text) in _VALUES.items():
        parser.add_argument(f"--{name}", metavar=value, help=text, action="append" if name in _LISTS else "store")
    for name, text in _SWITCHES.items():
        parser.add_argument(f"--{name}", action="store_true", help=text)
    parser.add_argument("--yes", action="store_true", help="start without asking")
    parser.add_argument("--html", metavar="FILE", type=Path, help=f"the report to write (default: {PAGE})")
    parser.add_argument("--fetch", metavar="DIR", type=Path, help="keep the records of all runs in this folder")
    parser.add_argument("--print", action="store_true", help="print the lines that do the same; run nothing")
    common.add(parser, "--json")


def run(args: Namespace) -> int:
    from ..operate import prove
    from ..operate.run import must_be_free

    must_be_free(args.fetch)
    options, target, tell = _options(args), common.target_of(args), partial(common.tell, args=args)
    if args.print:
        common.emit("\n".join(prove.lines(target, options, tell=tell)))
        return OK
    proving = prove.look(target, options, say=common.say, tell=tell)
    if proving.plan is not None:
        for line in proving.plan:
            common.say(line)
        if not args.yes and not azure.asked("start?", "--yes starts without asking"):
            raise ProblemsFound("nothing was started")
    status = prove.follow(proving, say=common.say, show=show)
    page = args.html or Path(PAGE)
    has_page = prove.report(proving, page, args.fetch, say=common.say)
    verdict = _VERDICTS.get(status, "error")
    if args.json:
        common.emit_json(
            {"ok": status == 0, "run": proving.proofs.name, "verdict": verdict, "exit_status": status,
             "report": str(page) if has_page else None}
        )  # fmt: skip
    else:
        common.emit(f"verdict {verdict} (exit status {status} of prove.sh)")
        if has_page:
            common.say(f"the report is in {page}")
    noted(proving.proofs.told)
    return status


def _options(args: Namespace) -> list[str]:
    words = [args.level]
    for name in _VALUES:
        given = getattr(args, name.replace("-", "_"))
        values = given if isinstance(given, list) else [] if given is None else [given]
        if name in _LISTS:
            values = [",".join(value.replace(",", " ").split()) for value in values]
        if not all(value and value.isprintable() for value in values):
            raise CannotRead(f"--{name} needs a value")
        if len(values) > 1 and any(value.isdecimal() for value in values):
            raise CannotRead(f"--{name} is given more than once; a number stands alone")
        if values:
            words += [f"--{name}={','.join(values)}"]
    return [*words, *(f"--{name}" for name in _SWITCHES if getattr(args, name.replace("-", "_")))]
