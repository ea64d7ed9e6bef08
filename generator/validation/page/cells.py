"""Cells that several tables of the page have."""

from __future__ import annotations

from ...pages.shell import Cell, figure, verdict
from ..record import SHORT, rank
from ..shown import with_unit

_LONGEST = 300
"""Characters of a text on the page; --json has all of it."""


def judged(word: str) -> Cell:
    """Return the cell of a verdict, which sorts from the best to the worst."""
    return Cell(verdict(word, SHORT[word]), "", str(rank(word)))


def amount(value: float | None, unit: str) -> Cell:
    """Return the cell of a figure with its unit; empty when it is None."""
    return figure(with_unit(value, unit), value)


def cut(text: str) -> str:
    """Return a text, shortened when it is too long for the page."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
