"""The progress of a deployment: a tree that is redrawn on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..azure.operation_tree import news, tree_lines
from ..words.terminal import printable
from . import common

if TYPE_CHECKING:
    from rich.live import Live

    from ..azure.operation_tree import Part


class Shown:
    """A `Show` of generator.azure.deployment; the end of `with` leaves the last tree."""

    def __init__(self, *, is_drawn: bool, no_color: bool = False) -> None:
        self._is_drawn, self._no_color = is_drawn, no_color
        self._live: Live | None = None
        self._said: dict[str, str] = {}
        self._lost = False

    def __enter__(self) -> Shown:
        if self._is_drawn:
            from rich.console import Console
            from rich.live import Live

            console = Console(stderr=True, no_color=self._no_color or None)
            self._live = Live(console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def parts(self, parts: tuple[Part, ...]) -> None:
        self._lost = False
        if self._live is None:
            for line in news(parts, self._said):
                common.say(line)
        else:
            self._draw(tree_lines(parts))

    def lost(self, reason: str) -> None:
        """Say once that Azure cannot be reached at the moment."""
        if not self._lost:
            self.note(f"{reason}; Azure continues, and is asked again")
        self._lost = True

    def note(self, text: str) -> None:
        """Print a sentence above the tree."""
        if self._live is None:
            common.say(printable(text))
        else:
            self._live.console.print(printable(text), markup=False, highlight=False)

    def _draw(self, lines: list[str]) -> None:
        from rich.text import Text

        assert self._live is not None
        self._live.update(Text("\n".join(lines)), refresh=True)


@contextmanager
def drawn(*, is_drawn: bool) -> Iterator[Callable[[str], None]]:
    """Draw each text over the one before; without a terminal print it when it has changed."""
    if not is_drawn:
        last = [""]

        def say(text: str) -> None:
            if text != last[0]:
                common.emit(f"\n{text}" if last[0] else text)
                last[0] = text

        yield say
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    with Live(console=Console(), auto_refresh=False, screen=False, redirect_stderr=False) as live:
        yield lambda text: live.update(Text(text), refresh=True)
