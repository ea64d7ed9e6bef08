"""What preflight found, as plain data, and what --fix would do, as lines for `az`."""

from __future__ import annotations

from typing import Any

from ..problems.problem import Source
from ..problems.text import as_json as problems_json
from .preflight import Report


def as_json(report: Report, source: Source) -> dict[str, Any]:
    """The keys are stable. `ok` is true only when nothing was found and everything could be asked."""
    known = problems_json([each for each in report.findings if each.is_known], source)
    unknown = problems_json([each for each in report.findings if not each.is_known], source)
    return {
        "ok": report.is_known and not report.fails,
        "cloud": report.cloud,
        "subscription": report.subscription,
        "problems": known,
        "not_known": unknown,
        "checks": [{"rule": check.id, "outcome": outcome} for check, outcome in report.outcomes],
        "lines": list(report.lines),
    }


def fixing_lines(report: Report) -> list[str]:
    """What --fix would do, as the findings say it: their hints are these lines."""
    return list(dict.fromkeys(each.hint for each in report.findings if each.remedy is not None and each.hint))
