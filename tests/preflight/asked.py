"""Preflight of a plan that is made once, without the command around it."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from generator.azure.check import Local
from generator.azure.checks import checks
from generator.azure.preflight import Report, preflight
from generator.azure.reader import Reader
from generator.cli.azure import session_of
from generator.plan.types import Plan
from generator.problems.rule import SUBJECTS
from tests.bed.arm import Arm

HERE_OR_THERE = tuple(check for check in checks() if check.subject != SUBJECTS["48"])
"""All but those of the built folder: nothing is built here."""


def report_of(plan: Plan) -> Report:
    """What preflight says, by the environment of the process."""
    reader = Reader(session_of(plan, Namespace(subscription=None)))
    try:
        return preflight(plan, reader, Local(Path("nowhere"), {}), HERE_OR_THERE)
    finally:
        reader.close()


def found_by(arm: Arm, plan: Plan) -> list[str]:
    """Ids of what was found, and of what is not known with a question mark; nothing was changed or undocumented."""
    findings = report_of(plan).findings
    assert arm.refused == []
    assert arm.changes == []
    return sorted(each.rule_id if each.is_known else f"{each.rule_id}?" for each in findings)
