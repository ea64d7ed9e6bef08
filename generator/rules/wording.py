"""How rules show values, list words and suggest what was meant."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache

from .. import catalog
from ..words.suggestions import did_you_mean

_LONGEST_SUGGESTION = 80
_LONGEST_SHOWN = 60


def quoted(text: str) -> str:
    """A value as the user wrote it, on one line and short."""
    short = text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"
    return "'" + "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in short) + "'"


def meant(word: str, allowed: Sequence[str]) -> str | None:
    """The hint `did you mean '…'?`; None when nothing is close or the word is too long to be a slip."""
    return _meant(word, tuple(allowed)) if 0 < len(word) <= _LONGEST_SUGGESTION else None


def near(word: str, allowed: Sequence[str]) -> str | None:
    """The allowed word that was probably meant; None as in `meant`."""
    return did_you_mean(word, allowed) if 0 < len(word) <= _LONGEST_SUGGESTION else None


@lru_cache(maxsize=1024)
def _meant(word: str, allowed: tuple[str, ...]) -> str | None:
    close = did_you_mean(word, allowed)
    return f"did you mean '{close}'?" if close and close != word else None


def size_meant(word: str) -> str | None:
    """The hint for a misspelt VM size; the common `Standard_` does not count as likeness."""
    if not 0 < len(word) <= _LONGEST_SUGGESTION:
        return None
    near = catalog.canonical_vm_size(word)
    if near:
        return f"did you mean '{near}'?"
    hint = meant(re.sub("^standard_", "", word, flags=re.IGNORECASE), _short_sizes())
    return hint.replace("'", "'Standard_", 1) if hint else None


@cache
def _short_sizes() -> tuple[str, ...]:
    return tuple(name.removeprefix("Standard_") for name in catalog.vm_size_names())


def choose_from(word: str, allowed: Sequence[str], few: int = 12) -> str | None:
    """A suggestion, else the allowed words when they are few."""
    return meant(word, allowed) or (f"allowed: {', '.join(allowed)}" if 0 < len(allowed) <= few else None)
