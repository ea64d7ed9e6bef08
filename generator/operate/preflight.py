"""`preflight`: what would make the deployment or its first job fail, and what can be done about it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial

from ..azure import preflight as fixing
from ..azure.check import Local, Remedy
from ..azure.preflight import Fixed, Report
from ..azure.preflight import preflight as ask
from ..azure.reader import Reader
from ..azure.session import Session
from ..azure.writer import Writer
from .built import Built, difference


def preflight(found: Built, session: Session) -> Report:
    """Ask Azure everything anew; nothing is changed, and what could not be asked is in the report."""
    with closing(Reader(session)) as reader:
        return ask(found.plan, reader, Local(found.folder, os.environ, partial(difference, found)))


def remedies(report: Report) -> tuple[Remedy, ...]:
    """What can be done about the findings."""
    return fixing.remedies(report.findings)


def fix(wanted: Sequence[Remedy], session: Session, say: Callable[[Fixed], None]) -> tuple[Fixed, ...]:
    """Do all of it at once, and say of each what became of it."""
    with closing(Writer(session)) as writer:
        return fixing.fix(wanted, writer, say)
