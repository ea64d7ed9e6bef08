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
    from ..operate.questions import Fixed, Remedy, Report
    from ..operate.reading import Definition

DESCRIPTION = """\
Ask Azure for everything that would make the deployment or its first job fail. Nothing is changed. What could not be
checked, because rights or a connection are missing, is reported as unknown and never counts as good.

With --fix it then shows what it can do about the findings (register resource providers, accept the terms of marketplace
images), asks, does it, and checks again.

The exit code is 0 when nothing was found (warnings do not count), 1 when the deployment or a job would fail, and 4 when
something is unknown.
"""
_OUTCOMES = {"found": "found something"}


def add_arguments(parser: ArgumentParser) -> None:
    common.add(parser, "NAME", "--out", "--subscription", "--print")
    parser.add_argument("--fix", action="store_true", help="then register providers and accept terms, after asking")
    parser.add_argument("--yes", action="store_true", help="--fix: do not ask")
    common.add(parser, "--all", "--json")


def run(args: Namespace) -> int:
    from ..operate import questions
    from ..operate.asking import session_of
    from ..operate.built import looked_for, must_be_one_name

    if args.yes and not args.fix:
        raise CannotRead("--yes is for --fix", "preflight itself changes nothing and does not ask")
    must_be_one_name(common.target_of(args))
    found = looked_for(common.target_of(args), partial(common.tell, args=args))
    session = session_of(found.plan, args.subscription)
    report = questions.preflight(found, session)
    fixed: tuple[Fixed, ...] = ()
    if args.fix and not args.print:
        wanted = questions.remedies(report)
        if _is_agreed(wanted, report.subscription, args):
            fixed = questions.fix(wanted, session, _say)
            report = questions.preflight(found, session)
    _show(report, found.definition, args, fixed)
    return exit_code(report)


def _is_agreed(wanted: Sequence[Remedy], subscription: str, args: Namespace) -> bool:
    if not wanted:
        common.say("--fix cannot do anything about it")
        return False
    common.say(f"--fix would, in the subscription {subscription}:")
    for each in wanted:
        common.say(f"  {printable(each.text)}")
    return args.yes or azure.confirmed("do this?", "--yes does it without asking")


def _say(fixed: Fixed) -> None:
    common.say(f"{printable(fixed.text)}: {printable(fixed.reason or 'done')}")


def exit_code(report: Report) -> int:
    """Return 1 when something would fail, 4 when something is unknown, else 0."""
    if report.fails:
        return ProblemsFound.exit_code
    return OK if report.is_known else AzureRefused.exit_code


def _show(report: Report, definition: Definition, args: Namespace, fixed: Sequence[Fixed]) -> None:
    """Print the findings on standard output; with --print the lines go there, and the findings to standard error."""
    from ..azure.report import as_json, fixing_lines

    if args.json:
        data = as_json(report, definition.checked.source) | {"fixed": [each.as_json() for each in fixed]}
        common.emit_json(data)
        return
    stream = sys.stderr if args.print else sys.stdout
    text = shown(report, definition, stream, args)
    if args.print:
        common.say(text)
        common.emit("\n".join(fixing_lines(report) if args.fix else report.lines))
    else:
        common.emit(text)


def shown(report: Report, definition: Definition, stream: TextIO, args: Namespace) -> str:
    from ..problems.text import render

    limit = None if args.all else common.SHOWN_PROBLEMS
    color = common.use_color(stream, args)
    return render(report.findings, definition.checked.source, color=color, limit=limit) + _summary(report)


def _summary(report: Report) -> str:
    """Return, for example, `preflight: 21 checks, 19 ok, 1 found something, 1 not known, 4 not needed`."""
    numbers: Counter[str] = Counter(outcome for _, outcome in report.outcomes)
    words = ("ok", "found", "not known", "not needed")
    parts = [f"{numbers[word]} {_OUTCOMES.get(word, word)}" for word in words if numbers[word]]
    return f"preflight: {counted(len(report.outcomes), 'check')}: {', '.join(parts)}"
