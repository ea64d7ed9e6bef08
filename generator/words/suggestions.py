"""The word that was probably meant."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

from ..records import record

CUTOFF = 0.7
"""Likeness from 0 to 1, as difflib counts it, from which a word may be meant."""
_BITS = 16
"""Occurrences of one letter that a bag tells apart."""


def did_you_mean(word: str, allowed: Iterable[str]) -> str | None:
    """The allowed word that was probably meant, or None when none is close."""
    choices = _prepared(tuple(allowed))
    folded = word.casefold()
    if folded in choices.by_case:
        return choices.by_case[folded]
    return _closest(folded.replace("-", "_"), choices)


def suggestion(word: str, allowed: Iterable[str]) -> str | None:
    """The hint `did you mean '…'?`, or None."""
    choice = did_you_mean(word, allowed)
    return None if choice is None else f"did you mean '{choice}'?"


@record
class _Candidate:
    text: str
    choice: str
    bag: int | None


@record
class _Choices:
    by_case: dict[str, str]
    """The first allowed word of each spelling without case."""
    candidates: tuple[_Candidate, ...]


@lru_cache(maxsize=256)
def _prepared(choices: tuple[str, ...]) -> _Choices:
    """What can be known of the allowed words before there is a word: a thousand misspelt sizes ask for the same."""
    by_case: dict[str, str] = {}
    for choice in choices:
        by_case.setdefault(choice.casefold(), choice)
    # Compared without case, and with - and _ alike: both are frequent slips in keys and VM sizes.
    plain = {choice.casefold().replace("-", "_"): choice for choice in reversed(choices)}
    return _Choices(by_case, tuple(_Candidate(text, choice, _bag(text)) for text, choice in plain.items()))


def _closest(word: str, choices: _Choices) -> str | None:
    """The best of `difflib.get_close_matches`, which looks at every candidate, found by looking at few.

    Two words are no more alike than their letters regardless of order; that is counted in one operation.
    """
    bag = _bag(word)
    ranked = []
    for candidate in choices.candidates:
        bound = _bound(word, bag, candidate)
        if bound >= CUTOFF:
            ranked.append((bound, candidate))
    ranked.sort(key=lambda pair: pair[0], reverse=True)
    matcher = difflib.SequenceMatcher()
    matcher.set_seq2(word)
    best: tuple[float, str, str] | None = None
    for bound, candidate in ranked:
        if best is not None and bound < best[0]:
            break
        matcher.set_seq1(candidate.text)
        found = (matcher.ratio(), candidate.text, candidate.choice)
        if found[0] >= CUTOFF and (best is None or found > best):
            best = found
    return None if best is None else best[2]


def _bag(text: str) -> int | None:
    """The letters of a text regardless of their order, as bits; None where a letter is too frequent for that."""
    counts = Counter(ord(letter) if ord(letter) < 128 else 0 for letter in text)
    if any(count > _BITS for count in counts.values()):
        return None
    return sum(((1 << count) - 1) << (_BITS * code) for code, count in counts.items())


def _bound(word: str, bag: int | None, candidate: _Candidate) -> float:
    """The likeness that is possible by the letters alone."""
    letters = len(word) + len(candidate.text)
    if letters == 0:
        return 1.0
    if bag is None or candidate.bag is None:
        return 2.0 * min(len(word), len(candidate.text)) / letters
    return 2.0 * (bag & candidate.bag).bit_count() / letters
