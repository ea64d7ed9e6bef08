"""What a terminal may be shown: text that cannot steer it, columns, and how far something is."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

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


class Meter:
    """A bar on standard error for bytes that come or go; it leaves an empty line. `advance` may come from threads.

    `rich` is imported when the first bar is drawn: it takes as long as the whole of `cycleforge --help`.
    """

    def __init__(self, *, is_shown: bool, no_color: bool = False) -> None:
        self._is_shown = is_shown
        self._no_color = no_color
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def begin(self, title: str, size_bytes: int | None) -> None:
        """Something of this size begins; None where that is unknown."""
        self.close()
        if not self._is_shown:
            return
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TaskProgressColumn,
            TextColumn,
            TimeRemainingColumn,
        )

        # What is printed meanwhile goes where it belongs, and not through the bar.
        self._bar = Progress(
            TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(),
            DownloadColumn(binary_units=True), TimeRemainingColumn(),
            console=Console(stderr=True, no_color=self._no_color or None), transient=True,
            redirect_stdout=False, redirect_stderr=False,
        )  # fmt: skip
        self._bar.start()
        self._task = self._bar.add_task(title, total=size_bytes)

    def advance(self, size_bytes: int) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, advance=size_bytes)

    def reach(self, size_bytes: int) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=size_bytes)

    def say(self, text: str) -> None:
        """A line on standard error that people should see now, above the bar."""
        if self._bar is None:
            print(text, file=sys.stderr, flush=True)
        else:
            self._bar.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def close(self) -> None:
        """The bar goes, and what comes next begins on an empty line."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = self._task = None
