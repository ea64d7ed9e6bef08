"""What a page consists of: parts of blocks. The template prints them and escapes every text that is not Markup."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, TypeAlias

from markupsafe import Markup

from ..records import record


class Cell:
    """One cell of a table. `sort` is what it sorts by; None: its text."""

    __slots__ = ("content", "kind", "sort")

    def __init__(self, content: str, kind: str = "", sort: str | None = None) -> None:
        self.content = content
        self.kind = kind
        self.sort = sort


@record
class Column:
    """The head of a column."""

    title: str
    kind_of_cell: str = ""

    @property
    def kind(self) -> str:
        """Its class."""
        return self.kind_of_cell


@record
class Table:
    """Rows that a reader may sort."""

    kind: ClassVar[str] = "table"
    columns: tuple[Column, ...]
    rows: Sequence[Sequence[Cell]]


@record
class Drawing:
    """A chart with its legend: (label, class of colour)."""

    title: str
    svg: Markup
    legend: tuple[tuple[str, str], ...] = ()
    caption: str = ""


@record
class Drawings:
    """Charts, beside each other where there is room; or one over the whole width."""

    kind: ClassVar[str] = "drawings"
    drawings: tuple[Drawing, ...]


@record
class Heading:
    """A title within a part."""

    kind: ClassVar[str] = "heading"
    text: str


@record
class Text:
    """A paragraph."""

    kind: ClassVar[str] = "text"
    text: str


@record
class Command:
    """What to type, and what for."""

    kind: ClassVar[str] = "command"
    what: str
    command: str


@record
class Facts:
    """Names with values."""

    kind: ClassVar[str] = "facts"
    rows: tuple[tuple[str, str], ...]


Block: TypeAlias = Table | Drawings | Heading | Text | Command | Facts


@record
class Part:
    """One part of the page, with an entry in its navigation."""

    id: str
    title: str
    blocks: tuple[Block, ...]
    intro: str = ""


@record
class Banner:
    """The verdict at the top."""

    verdict: str
    word: str
    why: str


def columns(*titles: str) -> tuple[Column, ...]:
    """Heads; one that ends in `#` is above numbers."""
    return tuple(Column(title.removesuffix("#"), "number" if title.endswith("#") else "") for title in titles)


def figure(text: str, value: float | None) -> Cell:
    """A number, sorted by its value."""
    return Cell(text, "number", "" if value is None else f"{value:.10g}")


def two_lines(first: str, second: str) -> str:
    """A text with a less important one below it."""
    if not first or not second:
        return first or second
    return Markup('%s<br><span class="muted small">%s</span>') % (first, second)


def bullets(items: Sequence[str]) -> str:
    """A list in a cell, or the only item."""
    if len(items) < 2:
        return items[0] if items else ""
    return Markup("<ul>%s</ul>") % Markup("").join(Markup("<li>%s</li>") % each for each in items)


def verdict(word: str, words: str) -> Markup:
    """A verdict in its colour, with a sign beside it."""
    return Markup('<span class="verdict tone-%s">%s</span>') % (word, words)


def chips(items: Sequence[str]) -> Markup:
    """Short texts side by side."""
    return Markup("").join(Markup('<span class="chip">%s</span>') % each for each in items)
