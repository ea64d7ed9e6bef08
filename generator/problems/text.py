"""Problems as text for people (`file:line:col`, source line, caret, hint) and as JSON for machines.

The carets are aligned by terminal columns.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate

from ..words.counts import counted
from ..words.terminal import is_control, on_one_line, printable
from .problem import LEVELS, Level, Place, Problem, Source, locate
from .sorting import sort_problems

_GUTTER = 5
_COLORS: dict[Level, str] = {"error": "\x1b[1;31m", "warning": "\x1b[1;33m", "info": "\x1b[1;36m"}
_BOLD, _DIM, _RESET = "\x1b[1m", "\x1b[2m", "\x1b[0m"
_NOUNS: dict[Level, str] = {"error": "error", "warning": "warning", "info": "info"}


def render(problems: Sequence[Problem], source: Source, *, color: bool = False, limit: int | None = None) -> str:
    """Problems of one file, sorted by position, one block each; empty without problems.

    Of more than `limit`, the most severe are shown, and a last line counts the rest.
    """
    ordered = sort_problems(problems, source)
    shown = _most_severe(ordered, limit)
    excerpts = Excerpts(source.lines, _secrets(ordered, source))
    blocks = [_block(each, source, excerpts, color=color) for each in shown]
    if len(shown) < len(ordered):
        blocks.append(f"and {len(ordered) - len(shown)} more: {_counts(ordered, shown)}; --all shows them\n")
    return "".join(blocks)


def _most_severe(ordered: Sequence[Problem], limit: int | None) -> Sequence[Problem]:
    """Errors before warnings before infos as far as the limit reaches, in the order in which they stood."""
    if limit is None or len(ordered) <= limit:
        return ordered
    ranked = sorted(range(len(ordered)), key=lambda index: LEVELS.index(ordered[index].level))
    return [ordered[index] for index in sorted(ranked[:limit])]


def _secrets(problems: Sequence[Problem], source: Source) -> dict[int, Place]:
    """The first secret of each line; it stays hidden for the other problems of that line, too."""
    found: dict[int, Place] = {}
    for each in problems:
        if each.hide_value:
            place = locate(each, source)
            found[place.line] = min(place, found.get(place.line, place))
    return found


def as_json(problems: Sequence[Problem], source: Source) -> list[dict[str, object]]:
    """The same as plain data, sorted alike. The keys are stable; `related` is there only when it says something."""
    result: list[dict[str, object]] = []
    for each in sort_problems(problems, source):
        place = locate(each, source)
        row: dict[str, object] = {
            "file": source.filename,
            "line": place.line,
            "column": place.column,
            "end_column": place.end_column,
            "level": each.level,
            "rule": each.rule_id,
            "message": each.message,
            "hint": each.hint,
            "path": list(each.path),
        }
        if each.related:
            row["related"] = [
                {"line": spot.line, "column": spot.column, "end_column": spot.end_column, "message": other.message}
                for other in each.related
                for spot in (locate(other, source),)
            ]
        result.append(row)
    return result


def summary(problems: Sequence[Problem], filename: str) -> str:
    """For example `2 errors, 1 warning in cluster.yaml`."""
    return f"{_counts(problems) or 'no problems'} in {printable(filename)}"


def _counts(problems: Sequence[Problem], without: Sequence[Problem] = ()) -> str:
    """For example `2 errors, 1 warning`; empty for none."""
    numbers = Counter(each.level for each in problems)
    numbers.subtract(each.level for each in without)
    return ", ".join(counted(numbers[level], _NOUNS[level]) for level in LEVELS if numbers[level])


def _block(problem: Problem, source: Source, excerpts: Excerpts, *, color: bool) -> str:
    def paint(text: str, code: str) -> str:
        return f"{code}{text}{_RESET}" if color else text

    place = locate(problem, source)
    where = f"{printable(source.filename)}:{place.line}:{place.column}"
    label = paint(f"{problem.level} {problem.rule_id}", _COLORS[problem.level])
    lines = [f"{paint(where, _BOLD)}: {label}: {on_one_line(problem.message)}"]
    margin = " " * (max(_GUTTER, len(str(place.line))) + 1)
    excerpt = excerpts.of(place)
    if excerpt is not None:
        text, caret = excerpt
        lines.append(f"{place.line:>{len(margin) - 1}} {paint('|', _DIM)} {text}".rstrip())
        lines.append(f"{margin}{paint('|', _DIM)} {paint(caret, _COLORS[problem.level])}")
    for other in problem.related:
        spot = locate(other, source)
        note = f"note: {printable(source.filename)}:{spot.line}:{spot.column}: {on_one_line(other.message)}"
        lines.append(f"{margin}{paint('=', _DIM)} {note}")
    if problem.hint:
        lines.append(f"{margin}{paint('=', _DIM)} hint: {on_one_line(problem.hint)}")
    lines.append(f"{margin}{paint('=', _DIM)} more: cycleforge explain {problem.rule_id}")
    return "\n".join(lines) + "\n"


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
