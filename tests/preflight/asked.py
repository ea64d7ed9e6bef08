"""Preflight of a plan that is made once, without the command around it."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from generator.azure.check import Local
from generator.azure.checks import checks
from generator.azure.clients import Clients
from generator.azure.preflight import Report, preflight
from generator.azure.reader import Reader
from generator.azure.session import Session
from generator.operate.asking import session_of
from generator.plan.deployment import Plan
from generator.problems.rule import SUBJECTS
from tests.bed.arm import Arm

HERE_OR_THERE = tuple(check for check in checks() if check.subject != SUBJECTS["48"])
"""All but those of the built folder: nothing is built here."""


class AskedOnce:
    """Between readers and Azure: what was answered without an error is answered so again, and is not asked for.

    `anew` is a method and a path that are always asked.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.anew = ("", "")
        self._clients = Clients(session, may_change=False)
        self._answers: dict[tuple[str, str, Any], Any] = {}

    def send(self, request: Any, *, only_asks: bool = False) -> Any:
        """As `Clients.send`."""
        key = (request.method, request.url, request.content)
        if (request.method, urlsplit(request.url).path) == self.anew:
            return self._clients.send(request, only_asks=only_asks)
        if key not in self._answers:
            self._answers[key] = self._clients.send(request, only_asks=only_asks)
        return self._answers[key]

    def reader(self) -> Reader:
        """One that has not asked anything yet."""
        made = Reader(self.session)
        made._clients.send = self.send  # type: ignore[method-assign]
        return made

    def __enter__(self) -> AskedOnce:
        return self

    def __exit__(self, *_: object) -> None:
        self._clients.close()


def signed_in(plan: Plan) -> Session:
    """By the environment of the process."""
    return session_of(plan)


def report_of(plan: Plan, reader: Reader | None = None) -> Report:
    """What preflight says, by the environment of the process if no reader is given."""
    reader = reader or Reader(signed_in(plan))
    try:
        return preflight(plan, reader, Local(Path("nowhere"), {}), HERE_OR_THERE)
    finally:
        reader.close()


def found_by(arm: Arm, plan: Plan, reader: Reader | None = None) -> list[str]:
    """Ids of what was found, and of what is not known with a question mark; nothing was changed or undocumented."""
    findings = report_of(plan, reader).findings
    assert arm.refused == []
    assert arm.changes == []
    return sorted(each.rule_id if each.is_known else f"{each.rule_id}?" for each in findings)
