"""From one node's results to findings: what failed, warns, was not measured, has no baseline.

The node has judged. Its judgement is checked here, so that nothing counts as a pass by mistake. Values are decimal
numbers written as text. They are compared as numbers: as text, "9.5" would pass a floor of "23.0".
"""

from __future__ import annotations

import operator
import re
from decimal import Decimal
from functools import lru_cache
from typing import Literal

from msgspec import Struct, to_builtins

from .read import Loaded
from .result import Check, NodeResult

Class = Literal["failure", "warning", "unmeasured", "no_baseline"]
WHOLE_RUN = "run"
"""The name of the check in findings about the whole run."""
_DEEP_FAILED = "deep_checks"
"""The quick check that repeats the verdict of the deep ones, so that Slurm gets to know it."""
_NUMBER = re.compile(r"[+-]?\d{1,40}(?:\.\d{1,40})?(?:[eE][+-]?\d{1,2})?", re.ASCII)
_WORDS = {"ge": "at least", "le": "at most", "lt": "below", "gt": "above", "eq": "expected", "ne": "other than"}
HOLDS = {
    "ge": operator.ge, "le": operator.le, "lt": operator.lt, "gt": operator.gt, "eq": operator.eq, "ne": operator.ne,
}  # fmt: skip
"""How a value compares with its limit."""


@lru_cache(maxsize=2**16)
def number(text: str) -> Decimal | None:
    """Return None for a text that is not a decimal number."""
    return Decimal(text) if _NUMBER.fullmatch(text) else None


def in_words(value: str, relation: str, limit: str, unit: str) -> str:
    """For example `41.2 GB/s, at least 48 GB/s`."""
    of_unit = f" {unit}" if unit else ""
    parts = [f"{value}{of_unit}"] if value else []
    if limit:
        parts.append(f"{_WORDS.get(relation, 'limit')} {limit}{of_unit}")
    return ", ".join(parts)


class Finding(Struct, frozen=True):
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
        return {name: value for name, value in to_builtins(self).items() if name != "sort"}


def findings_of(results: dict[str, Loaded]) -> tuple[Finding, ...]:
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
    """Return the kind whose result is from an earlier boot: since then, the machine may have been replaced."""
    quick, deep = results.get("quick"), results.get("deep")
    if quick is None or deep is None:
        return None
    boots = (quick.result.boot_id, deep.result.boot_id)
    if not all(boots) or boots[0] == boots[1]:
        return None
    return "deep" if deep.seconds < quick.seconds else "quick"


def _of_run(result: NodeResult, found: list[Finding]) -> list[Finding]:
    """Return the findings of the checks with those of the run as a whole."""
    sorts = {each.sort for each in found}
    if result.verdict == "fail" and "failure" not in sorts:
        why = result.reason or "failed without naming a check"
        found.append(Finding("failure", result.kind, WHOLE_RUN, detail=why))
    if why := _why_incomplete(result, named="unmeasured" in sorts):
        found.append(Finding("unmeasured", result.kind, WHOLE_RUN, detail=why))
    return found


def _why_incomplete(result: NodeResult, *, named: bool) -> str:
    """Explain why the run is not a pass; empty when it is one, or when the checks say so themselves (`named`)."""
    if not result.size_known:
        return "the catalogue has no figures for this VM size"
    if named:
        return ""
    if not any(check.verdict in ("pass", "warn", "fail") for check in result.checks):
        return result.reason or "no check gave a verdict"
    return (result.reason or "incomplete, without a reason") if result.verdict == "incomplete" else ""


def _judged(check: Check) -> tuple[Class | None, str]:
    """Return the class of a check, and the reason when it differs from the node's own verdict."""
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
        if check.verdict == "pass" and not HOLDS[check.relation](measured, allowed):
            return "failure", "the node reports pass, but its numbers fail"
    return ("warning", "") if check.verdict == "warn" else (None, "")
