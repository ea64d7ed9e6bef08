"""Values of checks: decimal numbers written as text, compared as numbers and printed as they were written.

Text comparison is the classic defect of such checks: "9.5" passes a floor of "23.0", "100.2" fails one of "24".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache

_NUMBER = re.compile(r"[+-]?\d{1,40}(?:\.\d{1,40})?(?:[eE][+-]?\d{1,2})?", re.ASCII)
_WORDS = {"ge": "at least", "le": "at most", "lt": "below", "gt": "above", "eq": "expected", "ne": "other than"}


@lru_cache(maxsize=2**16)
def number(text: str) -> Decimal | None:
    """The number that a text is, or None."""
    return Decimal(text) if _NUMBER.fullmatch(text) else None


def holds(value: Decimal, relation: str, limit: Decimal) -> bool:
    """Whether `value relation limit` is true; a value without relation always fits."""
    match relation:
        case "ge":
            return value >= limit
        case "le":
            return value <= limit
        case "lt":
            return value < limit
        case "gt":
            return value > limit
        case "eq":
            return value == limit
        case "ne":
            return value != limit
        case _:
            return True


def median(values: Sequence[Decimal]) -> Decimal:
    """The middle value, of an even number the mean of the two in the middle."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def in_words(value: str, relation: str, limit: str, unit: str) -> str:
    """For example `41.2 GB/s, at least 48 GB/s`."""
    of_unit = f" {unit}" if unit else ""
    parts = [f"{value}{of_unit}"] if value else []
    if limit:
        parts.append(f"{_WORDS.get(relation, 'limit')} {limit}{of_unit}")
    return ", ".join(parts)
