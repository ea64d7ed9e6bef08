"""What a terminal may be shown: text that cannot steer it, and columns."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

NOTHING = "—"
_STYLE = re.compile(r"\x1b\[[0-9;]*m")


def printable(text: str) -> str:
    """The text with control characters escaped, so that nobody's name or file steers the terminal that shows it."""
    if text.isprintable():
        return text
    return "".join(
        character if not is_control(character) else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def on_one_line(text: str) -> str:
    """Return what may have several lines as one, for a place that has one; nothing in it steers the terminal."""
    first, *rest = [line.rstrip() for line in text.splitlines() if line.strip()] or [""]
    for line in rest:
        first += f"{' ' if first.endswith((':', ';', ',', '.')) else '; '}{line.lstrip()}"
    return printable(first)


def is_control(character: str) -> bool:
    """Control, direction-changing and unpaired surrogate characters; also line separators."""
    return unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"}


def columns(rows: Sequence[Sequence[object]], *, indent: str = "") -> str:
    """Rows as aligned columns, a line each; None is printed as a dash. Cells may have colours.

    Ours and not a library's: what is printed goes into scripts as well, so nothing is framed, wrapped or cut off at the
    width of a terminal, and 1,000 rows take 7 ms (with `rich`, which draws the progress, 0.7 s).
    """
    cells = [[NOTHING if cell is None else str(cell) for cell in row] for row in rows]
    widths = [
        max(_width(row[index]) for row in cells if index < len(row)) for index in range(max(map(len, cells), default=0))
    ]
    lines = (
        "  ".join(cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=False)).rstrip()
        for row in cells
    )
    return "".join(f"{indent}{line}\n" for line in lines)


def _width(text: str) -> int:
    return len(_STYLE.sub("", text)) if "\x1b" in text else len(text)
