"""`cycleforge prove`."""

from __future__ import annotations

import shlex
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import OK, AzureRefused, CannotRead, ProblemsFound
from ..words.terminal import printable
from . import azure, common, whereabouts
from .run import CONFIG, connection_of, fetched, free, noted, show, whoami

if TYPE_CHECKING:
    from ..cyclecloud.jobs.proofs import Proof, Proofs

DESCRIPTION = """\
Prove a partition of the cluster with the built folder's prove.sh: copy the jobs to a folder of their own below ~/jobs,
show what would run and what that may cost, ask, start it, follow it, and write the report (`cycleforge report`).

prove.sh runs on the scheduler by itself. This command may be ended at any point, and the connection may be lost: the
same command attaches again, whoever types it, until someone was told the result.

The exit code is that of prove.sh: 0 pass, 1 fail, 2 error, 3 warnings, 4 not proven. It is 4, too, when the cluster
cannot be reached; --json tells them apart.
"""
LEVELS = ("quick", "standard", "burn")
_VALUES = {
    "partition": ("NAME", "the partition (default: the first with GPUs)"),
    "size": ("VM_SIZE", "of a partition with several VM sizes"),
    "nodes": ("N|LIST", "so many nodes, or these (gpu-[1-4]); default: all of the partition"),
    "max-hours": ("H", "end after so long (default: twice what each gate once may take)"),
    "max-gpu-hours": ("H", "start no job that could go beyond (default: likewise)"),
    "burn-minutes": ("M", "of each gate of the level burn (default: 60)"),
    "skip": ("GATE,GATE", "leave gates out; may be repeated"),
}
_LISTS = ("nodes", "skip")
"""Values that add up where an option is repeated."""
_SWITCHES = {
    "no-drain": "leave bad nodes out of this run, and leave Slurm alone",
    "new": "give up a run that is not over: its job is cancelled",
}
_VERDICTS = {0: "pass", 1: "fail", 2: "error", 3: "warn", 4: "no_baseline"}
PAGE = "report.html"


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the flags; those of prove.sh have its names."""
    common.add_definitions(parser, many=False)
    common.add_all(parser)
    common.add_out(parser)
    azure.add_subscription(parser)
    parser.add_argument("--level", choices=LEVELS, default=LEVELS[0], help="how much is tested (default: quick)")
    for name, (value, text) in _VALUES.items():
        parser.add_argument(f"--{name}", metavar=value, help=text, action="append" if name in _LISTS else "store")
    for name, text in _SWITCHES.items():
        parser.add_argument(f"--{name}", action="store_true", help=text)
    parser.add_argument("--yes", action="store_true", help="start without asking")
    parser.add_argument("--html", metavar="FILE", type=Path, help=f"the report to write (default: {PAGE})")
    parser.add_argument("--fetch", metavar="DIR", type=Path, help="keep the records of all runs there")
    parser.add_argument("--print", action="store_true", help="print the lines that do the same; run nothing")
    common.add_json(parser)


def run(args: Namespace) -> int:
    """Look, plan, ask, start, follow, report."""
    from ..cyclecloud.jobs.proofs import Proofs
    from .built import looked_for

    found = looked_for(args)
    jobs = found.folder / "jobs"
    if not (jobs / "prove.sh").is_file():
        raise CannotRead(f"{jobs}/prove.sh is not built", f"cycleforge build {args.name}")
    free(args.fetch)
    options = _options(args)
    whereabouts.tell(args, found)
    whereabouts.remember(found.plan.definition_name)
    if args.print:
        common.emit("\n".join(_lines(found.folder / CONFIG, jobs, options)))
        return OK
    proofs = Proofs(connection_of(found), jobs)
    shown: list[str] = []
    if _must_start(proofs, proofs.look(), options, args, shown):
        proofs.start(options, whoami())
    return _ended(proofs, _followed(proofs, shown), args)


def _options(args: Namespace) -> list[str]:
    """The words of prove.sh."""
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


def _must_start(proofs: Proofs, proof: Proof, options: list[str], args: Namespace, shown: list[str]) -> bool:
    """Whether it has to be started: it neither runs nor waits to be told; the user has seen the plan and agreed.

    `shown` gets the lines of the plan.
    """
    from ..cyclecloud.jobs.proofs import RUNNING

    same = proof.options == " ".join(options)
    if proof.status == RUNNING:
        _say(f"{proof.who} has started it with `{proof.options}`, and it runs; this command follows it")
        if not same:
            raise ProblemsFound(
                f"prove.sh runs with other options: {proof.options}",
                "wait for its end, or follow it with the same options",
            )
        return False
    if same and proof.exit_status is not None and not proof.is_told:
        _say(f"{proof.who} has started it, and it has ended: this is its result")
        return False
    if same and proof.status and not proof.is_told:
        _say(f"{proof.who} has started it, and it was ended; it goes on where it was")
        return True
    plan = proofs.plan(options, is_there=bool(proof.name))
    shown += plan.plan
    for line in shown:
        _say(line)
    _ask(args)
    return True


def _ask(args: Namespace) -> None:
    if args.yes:
        return
    if not sys.stdin.isatty():
        raise CannotRead("nothing was started: there is no terminal to ask on", "--yes starts without asking")
    print("Start? [y/N] ", end="", file=sys.stderr, flush=True)
    if not sys.stdin.readline().strip().lower().startswith("y"):
        raise ProblemsFound("nothing was started")


def _followed(proofs: Proofs, shown: list[str]) -> int:
    """The exit status of prove.sh, which begins with its plan: lines that the user has seen are not shown again."""
    left = list(shown)
    try:
        for line in proofs.follow():
            if left and line.kind == "log" and printable(line.words[-1].expandtabs()) == left[0]:
                del left[0]
                continue
            left = [] if line.kind == "log" else left
            show(line)
    except KeyboardInterrupt:
        print("\nprove.sh goes on; the same command attaches to it again", file=sys.stderr)
        raise
    status = proofs.look().exit_status
    if status is None:
        raise AzureRefused("prove.sh was ended before its end", "the same command goes on where it was")
    return status


def _ended(proofs: Proofs, status: int, args: Namespace) -> int:
    page: Path | None = args.html or Path(PAGE)
    with tempfile.TemporaryDirectory(prefix="cycleforge-") as scratch:
        records = args.fetch if args.fetch is not None else Path(scratch, "runs")
        try:
            fetched(proofs.fetch, records)
        except AzureRefused as none:
            # Nothing has run: prove.sh has said why.
            _say(f"no report: {none.message}")
            page = None
        if page is not None and not _report(records, page):
            page = None
    if args.json:
        common.emit_json(
            {"ok": status == 0, "run": proofs.name, "verdict": _VERDICTS.get(status, "error"), "exit_status": status,
             "report": None if page is None else str(page)}
        )  # fmt: skip
    else:
        common.emit(f"verdict {_VERDICTS.get(status, 'error')} (exit status {status} of prove.sh)")
        if page is not None:
            _say(f"the report is in {page}")
    noted(proofs.told)
    return status


def _report(records: Path, page: Path) -> bool:
    """The page of these records; whether there were any."""
    from ..pages.write import write
    from ..validation.assess import assess
    from ..validation.gather import gather
    from ..validation.page import report_page

    gathered = gather([str(records)])
    if not gathered.runs and not gathered.problems:
        _say("no report: no job has left a record")
        return False
    write(page, report_page(assess(gathered), None), "--html")
    return True


def _lines(config: Path, jobs: Path, options: list[str]) -> list[str]:
    ssh, scp = shlex.join(["ssh", "-F", str(config)]), shlex.join(["scp", "-r", "-F", str(config)])
    words = shlex.join(["./prove.sh", *options])
    return [
        f"{scp} {shlex.quote(str(jobs))} scheduler:",
        f"{ssh} -t scheduler {shlex.quote(f'cd jobs && {words}')}",
        f"{scp} scheduler:jobs/runs .",
        "cycleforge report runs",
    ]


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
