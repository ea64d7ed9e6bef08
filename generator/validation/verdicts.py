"""Verdicts of checks and runs, and which of several decides."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

Verdict = Literal["pass", "warn", "no_baseline", "error", "fail"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""From the best to the worst, as `worst` of recipes/lib/common.sh ranks them."""
PROVEN = frozenset(("pass", "warn", "fail"))
"""Everything else means "not proven"."""
_RANKS: dict[str, int] = {verdict: rank for rank, verdict in enumerate(VERDICTS)}
WORDS: dict[str, str] = {
    "pass": "pass",
    "warn": "warn",
    "no_baseline": "not proven: no baseline",
    "error": "not proven: error",
    "fail": "fail",
}


SHORT: dict[str, str] = WORDS | {"no_baseline": "no baseline", "error": "error"}
"""Where there is little room; the colour and the sign say that nothing is proven."""


def rank(verdict: str) -> int:
    """How bad it is; an unknown word is an error."""
    return _RANKS.get(verdict, _RANKS["error"])


def worst(verdicts: Iterable[str]) -> Verdict:
    """The verdict that decides. Nothing proves nothing, so it is an error."""
    return VERDICTS[max((rank(each) for each in verdicts), default=_RANKS["error"])]
