"""`preflight`: what would make the deployment or its first job fail, and what can be done about it."""

from __future__ import annotations

import os
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

from .built import Built, difference

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..azure.check import Remedy
    from ..azure.fix import Fixed
    from ..azure.preflight import Report
    from ..azure.session import Session


def preflight(found: Built, session: Session) -> Report:
    """Ask Azure everything anew; nothing is changed, and what could not be asked is in the report."""
    from ..azure.check import Local
    from ..azure.preflight import preflight as ask
    from ..azure.reader import Reader

    with closing(Reader(session)) as reader:
        return ask(found.plan, reader, Local(found.folder, os.environ, partial(difference, found)))


def remedies(report: Report) -> tuple[Remedy, ...]:
    """What can be done about the findings."""
    from ..azure.fix import remedies as of

    return of(report.findings)


def fix(wanted: Sequence[Remedy], session: Session, say: Callable[[Fixed], None]) -> tuple[Fixed, ...]:
    """Do all of it at once, and say of each what became of it."""
    from ..azure.fix import fix as carry_out
    from ..azure.writer import Writer

    with closing(Writer(session)) as writer:
        return carry_out(wanted, writer, say)
