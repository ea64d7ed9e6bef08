"""The source line of a problem with carets below it, aligned by terminal columns."""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate

from ..words.terminal import is_control
from .problem import Place

LINE_WIDTH = 120
"""Terminal columns of a printed source line; a longer one is cut around the caret."""
_TAB = "    "
_HIDDEN = "********"
_BEFORE = 20
"""Columns that a cut line shows before the caret."""


class Excerpts:
    """The lines of one file as they are shown. Each is prepared once, since many problems may share a long one.

    `secrets` are the places after whose start a line is hidden, by line: a flow mapping or a comment may repeat one.
    """

    def __init__(self, lines: Sequence[str], secrets: Mapping[int, Place]) -> None:
        self._lines = lines
        self._secrets = secrets
        self._prepared: dict[int, _Line] = {}

    def of(self, place: Place) -> tuple[str, str] | None:
        """The line and its carets; None where there is no such line."""
        if not 1 <= place.line <= len(self._lines):
            return None
        if place.line not in self._prepared:
            self._prepared[place.line] = _Line(self._lines[place.line - 1], self._secrets.get(place.line))
        return self._prepared[place.line].excerpt(place)


class _Line:
    """One line as cells: what is printed for a character, and the terminal columns that it takes."""

    def __init__(self, text: str, secret: Place | None) -> None:
        self._secret = secret
        self._cells = list(map(_cell, text if secret is None else text[: secret.column - 1]))
        if secret is not None:
            self._cells += [(character, 1) for character in _HIDDEN]
        self._columns = [0, *accumulate(width for _, width in self._cells)]
        """The terminal column at which each cell begins, and the one after the last."""

    def excerpt(self, place: Place) -> tuple[str, str]:
        """The line around the place, and the carets below it."""
        start, end = self._stretch(place)
        before = self._columns[start]
        under = self._columns[end] - before
        first = 0
        if before + min(under, _BEFORE) > LINE_WIDTH:
            first = bisect_left(self._columns, before - _BEFORE)
            before -= self._columns[first]
        shown, used = [], 0
        for count, (text, width) in enumerate(self._cells[first : first + 2 * LINE_WIDTH + 1]):
            # Characters without a width could be any number.
            if used + width > LINE_WIDTH or count == 2 * LINE_WIDTH:
                shown.append("…")
                break
            shown.append(text)
            used += width
        if first:
            shown.insert(0, "…")
            before += 1
        return "".join(shown), " " * before + "^" * max(1, min(under, LINE_WIDTH - before))

    def _stretch(self, place: Place) -> tuple[int, int]:
        """First cell of the place, and the one after its last."""
        start, end, last = place.column - 1, place.end_column - 1, len(self._cells)
        if self._secret is not None:
            visible = self._secret.column - 1
            start = min(start, visible)
            end = min(end, last) if start < visible else last
        return min(start, last), max(min(start, last), min(end, last))


@lru_cache(maxsize=4096)  # a file has few different characters
def _cell(character: str) -> tuple[str, int]:
    """A character as printed and the terminal columns that it takes."""
    if character == "\t":
        return _TAB, len(_TAB)
    if is_control(character):
        return "\N{REPLACEMENT CHARACTER}", 1
    if unicodedata.combining(character) or unicodedata.category(character) in {"Mn", "Me"}:
        return character, 0
    return character, 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1
