"""Problems as text for people (`file:line:col`, source line, caret, hint) and as JSON for machines."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from ..words.counts import counted
from ..words.terminal import is_control, printable
from .problem import LEVELS, Level, Place, Problem, Source, locate, sort_problems

LINE_WIDTH = 120
"""Terminal columns of a printed source line; a longer one is cut around the caret."""
_TAB = "    "
_GUTTER = 5
_HIDDEN = "********"
_COLORS: dict[Level, str] = {"error": "\x1b[1;31m", "warning": "\x1b[1;33m", "info": "\x1b[1;36m"}
_BOLD, _DIM, _RESET = "\x1b[1m", "\x1b[2m", "\x1b[0m"
_NOUNS: dict[Level, str] = {"error": "error", "warning": "warning", "info": "note"}


def render(problems: Sequence[Problem], source: Source, *, color: bool = False) -> str:
    """All problems of one file, sorted by position, one block each; empty without problems."""
    ordered = sort_problems(problems, source)
    # A line that holds a secret stays hidden for the other problems of that line, too.
    hidden = {place.line: place for each in ordered if each.hide_value for place in (locate(each, source),)}
    return "".join(_block(each, source, hidden, color=color) for each in ordered)


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
    counts = ((level, sum(each.level == level for each in problems)) for level in LEVELS)
    parts = [counted(count, _NOUNS[level]) for level, count in counts if count]
    return f"{', '.join(parts) or 'no problems'} in {printable(filename)}"


def _block(problem: Problem, source: Source, hidden: dict[int, Place], *, color: bool) -> str:
    def paint(text: str, code: str) -> str:
        return f"{code}{text}{_RESET}" if color else text

    place = locate(problem, source)
    where = f"{printable(source.filename)}:{place.line}:{place.column}"
    label = paint(f"{problem.level} {problem.rule_id}", _COLORS[problem.level])
    lines = [f"{paint(where, _BOLD)}: {label}: {printable(problem.message)}"]
    margin = " " * (max(_GUTTER, len(str(place.line))) + 1)
    if 1 <= place.line <= len(source.lines):
        text, caret = _excerpt(source.lines[place.line - 1], place, hidden.get(place.line))
        lines.append(f"{place.line:>{len(margin) - 1}} {paint('|', _DIM)} {text}".rstrip())
        lines.append(f"{margin}{paint('|', _DIM)} {paint(caret, _COLORS[problem.level])}")
    for other in problem.related:
        spot = locate(other, source)
        note = f"note: {printable(source.filename)}:{spot.line}:{spot.column}: {printable(other.message)}"
        lines.append(f"{margin}{paint('=', _DIM)} {note}")
    if problem.hint:
        lines.append(f"{margin}{paint('=', _DIM)} hint: {printable(problem.hint)}")
    lines.append(f"{margin}{paint('=', _DIM)} more: cycleforge explain {problem.rule_id}")
    return "\n".join(lines) + "\n"


def _excerpt(line: str, place: Place, hidden: Place | None) -> tuple[str, str]:
    """The source line as shown, and the carets below it, aligned by terminal columns."""
    start, end = place.column - 1, place.end_column - 1
    cells = [_cell(character) for character in line]
    if hidden is not None:
        # Everything after the secret's start goes: a flow mapping or a comment may repeat it.
        cells = [*cells[: hidden.column - 1], *((character, 1) for character in _HIDDEN)]
        start = min(start, hidden.column - 1)
        end = min(end, len(cells)) if start < hidden.column - 1 else len(cells)
    before = sum(width for _, width in cells[:start])
    under = sum(width for _, width in cells[start:end])
    first, shift = _window(cells, before, under)
    shown, used = "", 0
    for text, width in cells[first:]:
        if used + width > LINE_WIDTH:
            shown = f"{shown}…"
            break
        shown, used = shown + text, used + width
    before -= shift
    if first:
        shown, before = f"…{shown}", before + 1
    return shown, " " * before + "^" * max(1, min(under, LINE_WIDTH - before))


def _window(cells: list[tuple[str, int]], before: int, under: int) -> tuple[int, int]:
    """Index of the first shown character and the terminal columns left of it, so that the carets are visible."""
    if before + min(under, 20) <= LINE_WIDTH:
        return 0, 0
    skip = before - 20
    index = columns = 0
    while columns < skip:
        columns += cells[index][1]
        index += 1
    return index, columns


def _cell(character: str) -> tuple[str, int]:
    """A character as printed and the terminal columns that it takes."""
    if character == "\t":
        return _TAB, len(_TAB)
    if is_control(character):
        return "\N{REPLACEMENT CHARACTER}", 1
    if unicodedata.combining(character) or unicodedata.category(character) in {"Mn", "Me"}:
        return character, 0
    return character, 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1
