"""`cycleforge preflight`."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from ..errors import OK, AzureRefused, CannotRead, ProblemsFound
from ..words.counts import counted
from ..words.terminal import printable
from . import azure, common

if TYPE_CHECKING:
    from ..azure.fix import Fixed
    from ..azure.preflight import Report
    from ..azure.reader import Reader
    from ..azure.session import Session
    from ..operate.built import Built
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
    """Declare the flags."""
    common.add_definitions(parser, many=False)
    common.add_out(parser)
    azure.add_subscription(parser)
    azure.add_print(parser)
    parser.add_argument("--fix", action="store_true", help="then register providers and accept terms, after a question")
    parser.add_argument("--yes", action="store_true", help="--fix: do not ask")
    common.add_all(parser)
    common.add_json(parser)


def run(args: Namespace) -> int:
    """Ask and tell."""
    from ..operate.built import must_be_one_name
    from .built import looked_for

    if args.yes and not args.fix:
        raise CannotRead("--yes is for --fix", "preflight itself changes nothing and does not ask")
    must_be_one_name(common.target_of(args))
    found = looked_for(args)
    session = azure.session_of(found.plan, args)
    report, reader = _looked(found, session, args)
    fixed: tuple[Fixed, ...] = ()
    if args.fix and not args.print:
        fixed = _fixed(found, report, session, args)
        if fixed:
            report, reader = _looked(found, session, args)
    _show(report, found.definition, reader, args, fixed)
    return exit_code(report)


def _looked(found: Built, session: Session, args: Namespace) -> tuple[Report, Reader]:
    """Everything asked anew."""
    from ..azure.check import Local
    from ..azure.preflight import preflight
    from ..azure.reader import Reader
    from ..operate.built import difference

    reader = Reader(session)
    try:
        local = Local(found.folder, os.environ, partial(difference, found))
        return preflight(found.plan, reader, local), reader
    finally:
        reader.close()


def _fixed(found: Built, report: Report, session: Session, args: Namespace) -> tuple[Fixed, ...]:
    """What was done about the findings; nothing where there is nothing to do, or nobody agrees."""
    from ..azure.fix import fix, remedies
    from ..azure.writer import Writer

    wanted = remedies(report.findings)
    if not wanted:
        print("there is nothing that --fix could do", file=sys.stderr)
        return ()
    print(f"--fix would, in the subscription {session.subscription}:", file=sys.stderr)
    for each in wanted:
        print(f"  {printable(each.text)}", file=sys.stderr)
    if not args.yes and not azure.confirmed("do this?", "--yes does it without asking"):
        return ()
    writer = Writer(session)
    try:
        return fix(wanted, writer, _say)
    finally:
        writer.close()


def _say(fixed: Fixed) -> None:
    print(f"{printable(fixed.text)}: {printable(fixed.reason or 'done')}", file=sys.stderr, flush=True)


def exit_code(report: Report) -> int:
    """1 when something would fail, 4 when something is not known, else 0."""
    if any(each.is_known and each.level == "error" for each in report.findings):
        return ProblemsFound.exit_code
    return OK if report.is_known else AzureRefused.exit_code


def _show(report: Report, definition: Definition, reader: Reader, args: Namespace, fixed: Sequence[Fixed]) -> None:
    """The findings on standard output; with --print the lines go there, and the findings to standard error."""
    from ..azure.report import as_json, fixing_lines, lines
    from ..problems.text import render

    source = definition.checked.source
    if args.json:
        common.emit_json(as_json(report, source, reader) | {"fixed": [each.as_json() for each in fixed]})
        return
    stream = sys.stderr if args.print else sys.stdout
    limit = None if args.all else common.SHOWN_PROBLEMS
    text = render(report.findings, source, color=common.use_color(stream, args), limit=limit) + summary(report)
    if args.print:
        print(text, file=sys.stderr)
        common.emit("\n".join(fixing_lines(report) if args.fix else lines(reader)))
    else:
        common.emit(text)


def summary(report: Report) -> str:
    """For example `preflight: 21 checks, 19 ok, 1 found something, 1 not known, 4 not needed`."""
    numbers: Counter[str] = Counter(outcome for _, outcome in report.outcomes)
    words = ("ok", "found", "not known", "not needed")
    parts = [f"{numbers[word]} {_OUTCOMES.get(word, word)}" for word in words if numbers[word]]
    return f"preflight: {counted(len(report.outcomes), 'check')}: {', '.join(parts)}"
