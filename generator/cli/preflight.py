"""`cycleforge preflight`."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from ..errors import OK, AzureRefused, ProblemsFound
from ..words.counts import counted
from . import azure, common

if TYPE_CHECKING:
    from ..azure.preflight import Report
    from ..azure.reader import Reader

DESCRIPTION = """\
Ask Azure for everything that would make the deployment or its first job fail. Nothing is changed. What could not be
asked, for want of rights or of a connection, is said as such and never counts as good.

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
    common.add_all(parser)
    common.add_json(parser)


def run(args: Namespace) -> int:
    """Ask and tell."""
    from ..azure.check import Local
    from ..azure.preflight import preflight
    from ..azure.reader import Reader
    from .built import Built, difference, looked_for

    found = looked_for(args)
    if not isinstance(found, Built):
        return found
    reader = Reader(azure.session_of(found.plan, args))
    try:
        report = preflight(found.plan, reader, Local(found.folder, os.environ, partial(difference, found)))
    finally:
        reader.close()
    _show(report, found.definition, reader, args)
    return exit_code(report)


def exit_code(report: Report) -> int:
    """1 when something would fail, 4 when something is not known, else 0."""
    if any(each.is_known and each.level == "error" for each in report.findings):
        return ProblemsFound.exit_code
    return OK if report.is_known else AzureRefused.exit_code


def _show(report: Report, definition: common.Definition, reader: Reader, args: Namespace) -> None:
    """The findings on standard output; with --print the lines go there, and the findings to standard error."""
    from ..azure.report import as_json, lines
    from ..problems.text import render

    source = definition.checked.source
    if args.json:
        common.emit_json(as_json(report, source, reader))
        return
    stream = sys.stderr if args.print else sys.stdout
    limit = None if args.all else common.SHOWN_PROBLEMS
    text = render(report.findings, source, color=common.use_color(stream, args), limit=limit) + summary(report)
    if args.print:
        print(text, file=sys.stderr)
        common.emit("\n".join(lines(reader)))
    else:
        common.emit(text)


def summary(report: Report) -> str:
    """For example `preflight: 21 checks, 19 ok, 1 found something, 1 not known, 4 not needed`."""
    numbers: Counter[str] = Counter(outcome for _, outcome in report.outcomes)
    words = ("ok", "found", "not known", "not needed")
    parts = [f"{numbers[word]} {_OUTCOMES.get(word, word)}" for word in words if numbers[word]]
    return f"preflight: {counted(len(report.outcomes), 'check')}: {', '.join(parts)}"
