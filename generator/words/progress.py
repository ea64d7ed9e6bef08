"""How far something is, on a terminal, drawn by `rich`; nothing elsewhere.

`rich` is imported when the first bar is drawn: it takes as long as the whole of `cycleforge --help`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class Meter:
    """A bar on standard error for bytes that come or go; it leaves an empty line. `advance` may come from threads."""

    def __init__(self, *, is_shown: bool, no_color: bool = False) -> None:
        self._is_shown = is_shown
        self._no_color = no_color
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def begin(self, title: str, size_bytes: int | None) -> None:
        """Something of this size begins; None where nobody knows how much it will be."""
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
        """So much more is done."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, advance=size_bytes)

    def reach(self, size_bytes: int) -> None:
        """So much is done in all."""
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
