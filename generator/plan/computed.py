"""Answers about an object that are kept for the next caller."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

Given = TypeVar("Given")
Result = TypeVar("Result")


def computed_once(function: Callable[[Given], Result]) -> Callable[[Given], Result]:
    """Keep the result for the last argument, for callers that pass the same object one after the other.

    The argument is compared by identity, because comparing or hashing a whole definition takes longer than most
    results. Neither the argument nor the result may be changed.
    """
    last: tuple[Given, Result] | None = None

    @wraps(function)
    def kept(about: Given) -> Result:
        nonlocal last
        known = last
        if known is None or known[0] is not about:
            last = known = (about, function(about))
        return known[1]

    return kept
