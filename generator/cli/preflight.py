"""`cycleforge preflight`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, TextIO

from ..errors import OK, AzureRefused, CannotRead, ProblemsFound
from ..words.counts import counted
from ..words.terminal import printable
from . import azure, common

if TYPE_CHECKING:
    from ..operate.preflight import Fixed, Remedy, Report
    from ..operate.reading import Definition

DESCRIPTION = """\
Ask Azure for everything that would make the deployment or its first job fail. Nothing is changed. What could not be
asked, for want of rights or of a connection, is said as such and never counts as good.

With --fix it then shows what it can do about the findings (register resource providers, accept the terms of marketplace
images), asks, does it, and looks again.

The exit code is 0 when nothing was found (warnings do not count), 1 when the deployment or a job would fail, and 4 when
something is not known.
"""
_OUTCOMES = {"found": "found something"}


def add_arguments(parser: ArgumentParser) -> None:
    common.add_definitions(parser, many=False)
    common.add_out(parser)
    azure.add_subscription(parser)
    azure.add_print(parser)
    parser.add_argument("--fix", action="store_true", help="then register providers and accept terms, after a question")
    parser.add_argument("--yes", action="store_true", help="--fix: do not ask")
    common.add_all(parser)
    common.add_json(parser)


def run(args: Namespace) -> int:
    from ..operate import preflight
    from ..operate.asking import session_of
    from ..operate.built import looked_for, must_be_one_name

    if args.yes and not args.fix:
        raise CannotRead("--yes is for --fix", "preflight itself changes nothing and does not ask")
    must_be_one_name(common.target_of(args))
    found = looked_for(common.target_of(args), partial(common.tell, args=args))
    session = session_of(found.plan, args.subscription)
    report = preflight.preflight(found, session)
    fixed: tuple[Fixed, ...] = ()
    if args.fix and not args.print:
        wanted = preflight.remedies(report)
        if _is_agreed(wanted, report.subscription, args):
            fixed = preflight.fix(wanted, session, _say)
            report = preflight.preflight(found, session)
    _show(report, found.definition, args, fixed)
    return exit_code(report)


def _is_agreed(wanted: Sequence[Remedy], subscription: str, args: Namespace) -> bool:
    """Whether somebody wants what can be done about the findings."""
    if not wanted:
        print("there is nothing that --fix could do", file=sys.stderr)
        return False
    print(f"--fix would, in the subscription {subscription}:", file=sys.stderr)
    for each in wanted:
        print(f"  {printable(each.text)}", file=sys.stderr)
    return args.yes or azure.confirmed("do this?", "--yes does it without asking")


def _say(fixed: Fixed) -> None:
    print(f"{printable(fixed.text)}: {printable(fixed.reason or 'done')}", file=sys.stderr, flush=True)


def exit_code(report: Report) -> int:
    """1 when something would fail, 4 when something is not known, else 0."""
    if report.fails:
        return ProblemsFound.exit_code
    return OK if report.is_known else AzureRefused.exit_code


def _show(report: Report, definition: Definition, args: Namespace, fixed: Sequence[Fixed]) -> None:
    """The findings on standard output; with --print the lines go there, and the findings to standard error."""
    from ..azure.report import as_json, fixing_lines

    if args.json:
        data = as_json(report, definition.checked.source) | {"fixed": [each.as_json() for each in fixed]}
        common.emit_json(data)
        return
    stream = sys.stderr if args.print else sys.stdout
    text = shown(report, definition, stream, args)
    if args.print:
        print(text, file=sys.stderr)
        common.emit("\n".join(fixing_lines(report) if args.fix else report.lines))
    else:
        common.emit(text)


def shown(report: Report, definition: Definition, stream: TextIO, args: Namespace) -> str:
    """The findings at their places, and how many checks found something."""
    from ..problems.text import render

    limit = None if args.all else common.SHOWN_PROBLEMS
    color = common.use_color(stream, args)
    return render(report.findings, definition.checked.source, color=color, limit=limit) + _summary(report)


def _summary(report: Report) -> str:
    """For example `preflight: 21 checks, 19 ok, 1 found something, 1 not known, 4 not needed`."""
    numbers: Counter[str] = Counter(outcome for _, outcome in report.outcomes)
    words = ("ok", "found", "not known", "not needed")
    parts = [f"{numbers[word]} {_OUTCOMES.get(word, word)}" for word in words if numbers[word]]
    return f"preflight: {counted(len(report.outcomes), 'check')}: {', '.join(parts)}"
