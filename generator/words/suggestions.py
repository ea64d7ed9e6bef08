"""The word that was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(word: str, allowed: Iterable[str]) -> str | None:
    """The allowed word that was probably meant, or None when none is close."""
    choices = list(allowed)
    folded = word.casefold()
    for choice in choices:
        if choice.casefold() == folded:
            return choice
    # Compared without case, and with - and _ alike: both are frequent slips in keys and VM sizes.
    plain = {choice.casefold().replace("-", "_"): choice for choice in reversed(choices)}
    close = difflib.get_close_matches(folded.replace("-", "_"), plain, n=1, cutoff=0.7)
    return plain[close[0]] if close else None


def suggestion(word: str, allowed: Iterable[str]) -> str | None:
    """The hint `did you mean '…'?`, or None."""
    choice = did_you_mean(word, allowed)
    return None if choice is None else f"did you mean '{choice}'?"
