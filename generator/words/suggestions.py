"""The word that was probably meant, and the command to type."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterable
from functools import lru_cache

_CUTOFF = 0.7
"""Likeness from 0 to 1, as difflib counts it, from which a word may be meant."""
_OURS = re.compile(r"(cycleforge [a-z-]+(?: --[a-z-]+)*) NAME\b")


def did_you_mean(word: str, allowed: Iterable[str]) -> str | None:
    """The allowed word that was probably meant, or None when none is close."""
    return _closest(word.casefold(), tuple(allowed))


def suggestion(word: str, allowed: Iterable[str]) -> str | None:
    """The hint `did you mean '…'?`, or None."""
    choice = did_you_mean(word, allowed)
    return None if choice is None else f"did you mean '{choice}'?"


def with_name(text: str, name: str) -> str:
    """The text with the definition's name in the commands that take one: `cycleforge status NAME`."""
    return _OURS.sub(lambda found: f"{found[1]} {shlex.quote(name)}", text)


@lru_cache(maxsize=1024)
def _closest(word: str, allowed: tuple[str, ...]) -> str | None:
    by_case, plain = _spellings(allowed)
    if word in by_case:
        return by_case[word]
    close = difflib.get_close_matches(word.replace("-", "_"), plain, n=1, cutoff=_CUTOFF)
    return plain[close[0]] if close else None


@lru_cache(maxsize=64)
def _spellings(allowed: tuple[str, ...]) -> tuple[dict[str, str], dict[str, str]]:
    """The allowed words without case, and with - and _ alike: frequent slips in keys and VM sizes. The first wins."""
    by_case = {choice.casefold(): choice for choice in reversed(allowed)}
    return by_case, {choice.casefold().replace("-", "_"): choice for choice in reversed(allowed)}
