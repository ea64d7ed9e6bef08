"""From one node's results to findings: what failed, warns, was not measured, has no baseline.

The node has judged; this looks whether the judgement can be right, and counts nothing as a pass that is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .read import Loaded
from .result import Check, NodeResult
from .values import holds, in_words, number

Class = Literal["failure", "warning", "unmeasured", "no_baseline"]
WHOLE_RUN = "run"
"""Stands for a check where the whole run is meant."""
_DEEP_FAILED = "deep_checks"
"""The quick check that repeats the verdict of the deep ones, so that Slurm gets to know it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding about one check of one node."""

    sort: Class
    kind: str
    check: str
    value: str = ""
    relation: str = ""
    limit: str = ""
    unit: str = ""
    detail: str = ""

    @property
    def text(self) -> str:
        """For example `gpu_count 7 GPUs, expected 8 GPUs (GPU 3)`."""
        words = in_words(self.value, self.relation, self.limit, self.unit)
        text = " ".join(part for part in (self.check, words) if part)
        return f"{text} ({self.detail})" if self.detail else text

    def as_json(self) -> dict[str, object]:
        """Plain data with stable keys."""
        return {
            "kind": self.kind,
            "check": self.check,
            "value": self.value,
            "relation": self.relation,
            "limit": self.limit,
            "unit": self.unit,
            "detail": self.detail,
        }


def findings_of(results: dict[str, Loaded]) -> tuple[Finding, ...]:
    """Return all findings of one node; `results` by kind."""
    outdated = _outdated(results)
    deep = results.get("deep")
    found: list[Finding] = []
    for kind, loaded in results.items():
        result = loaded.result
        own = _of_run(result, [each for check in result.checks if (each := _of_check(result.kind, check))])
        if kind == "quick" and deep is not None and outdated is None and deep.result.verdict == "fail":
            # The deep result itself says more.
            own = [each for each in own if each.check != _DEEP_FAILED]
        found += own
    if outdated is not None:
        found.append(Finding("unmeasured", outdated, WHOLE_RUN, detail=f"no {outdated} checks since the last boot"))
    return tuple(found)


def _of_check(kind: str, check: Check) -> Finding | None:
    sort, why = _judged(check)
    if sort is None:
        return None
    detail = why or check.detail
    return Finding(sort, kind, check.check, check.value, check.relation, check.limit, check.unit, detail)


def _outdated(results: dict[str, Loaded]) -> str | None:
    """The kind whose result is of an earlier boot than the other one: the machine may be another one by now."""
    quick, deep = results.get("quick"), results.get("deep")
    if quick is None or deep is None:
        return None
    boots = (quick.result.boot_id, deep.result.boot_id)
    if not all(boots) or boots[0] == boots[1]:
        return None
    return "deep" if deep.seconds < quick.seconds else "quick"


def _of_run(result: NodeResult, found: list[Finding]) -> list[Finding]:
    """The findings of the checks, and those of the run as a whole."""
    sorts = {each.sort for each in found}
    if result.verdict == "fail" and "failure" not in sorts:
        why = result.reason or "failed without naming a check"
        found.append(Finding("failure", result.kind, WHOLE_RUN, detail=why))
    if why := _why_incomplete(result, named="unmeasured" in sorts):
        found.append(Finding("unmeasured", result.kind, WHOLE_RUN, detail=why))
    return found


def _why_incomplete(result: NodeResult, *, named: bool) -> str:
    """Why the run as a whole is not a pass; empty when it is one, or when the checks say it themselves (`named`)."""
    if not result.size_known:
        return "the catalogue has no figures for this VM size"
    if named:
        return ""
    if not any(check.verdict in ("pass", "warn", "fail") for check in result.checks):
        return result.reason or "no check gave a verdict"
    return (result.reason or "incomplete, without a reason") if result.verdict == "incomplete" else ""


def _judged(check: Check) -> tuple[Class | None, str]:
    """What a check counts as, and the reason where it is not the node's own."""
    match check.verdict:
        case "fail":
            return "failure", ""
        case "not_measured":
            return "unmeasured", ""
        case "no_baseline":
            return "no_baseline", ""
    if check.limit and check.relation:
        measured, allowed = number(check.value), number(check.limit)
        if measured is None or allowed is None:
            return "unmeasured", f"the node reports {check.verdict} without two numbers to compare"
        if check.verdict == "pass" and not holds(measured, check.relation, allowed):
            return "failure", "the node reports pass, but the numbers do not"
    return ("warning", "") if check.verdict == "warn" else (None, "")
