"""One self-contained page: every value is escaped, style and script are in it, and nothing else may be loaded.

A page consists of parts of blocks; the template escapes every text that is not Markup. Its policy allows only its own
style and script, by their digests, so that no text of a record could run or load anything even if it were not escaped.
It is written as a whole or not at all, and never over a file of someone else.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from markupsafe import Markup
from msgspec import Struct

from ..disk import file

if TYPE_CHECKING:
    from jinja2 import Template

_HERE = Path(__file__).parent
MARK = '<meta name="generator" content="CycleForge">'
"""How one of our pages is known, near its beginning."""


def page(
    title: str,
    parts: Sequence[Part],
    *,
    subtitle: Sequence[str] = (),
    banner: Banner | None = None,
    tiles: Sequence[tuple[str, str]] = (),
    footer: Sequence[str] = (),
) -> str:
    """The whole page. `tiles` are figures with what they count."""
    style, script = (_file(name) for name in ("page.css", "page.js"))
    return _template().render(
        title=title,
        subtitle=subtitle,
        banner=banner,
        tiles=tiles,
        parts=parts,
        footer=footer,
        style=Markup(style),  # noqa: S704 - a file of ours
        script=Markup(script),  # noqa: S704 - a file of ours
        style_hash=_digest(style),
        script_hash=_digest(script),
    )


@cache
def _template() -> Template:
    import jinja2  # heavy: only commands that make a page pay for it

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=True,
        auto_reload=False,
    )
    return environment.get_template("page.html.j2")


def _file(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """As a Content-Security-Policy names it. Source: https://www.w3.org/TR/CSP3/#external-hash"""
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()


def write(path: Path, text: str, option: str) -> None:
    """Replace the file in one step. CannotWrite leaves what was there; `option` names the file on the command line."""
    file.write_own(
        path,
        text.encode(),
        is_ours=lambda head: MARK.encode() in head,
        foreign="is not a page of CycleForge",
        hint=f"name another file with {option}",
    )


class Cell:
    """One cell of a table. `sort` is what it sorts by; None: its text."""

    __slots__ = ("content", "kind", "sort")

    def __init__(self, content: str, kind: str = "", sort: str | None = None) -> None:
        self.content = content
        self.kind = kind
        self.sort = sort


class Column(Struct, frozen=True):
    title: str
    kind: str = ""


class Table(Struct, frozen=True):
    """Rows that a reader may sort."""

    kind: ClassVar[str] = "table"
    columns: tuple[Column, ...]
    rows: Sequence[Sequence[Cell]]


class Drawing(Struct, frozen=True):
    """A chart with its legend: (label, class of colour)."""

    title: str
    svg: Markup
    legend: tuple[tuple[str, str], ...] = ()
    caption: str = ""


class Drawings(Struct, frozen=True):
    """Charts, beside each other where there is room; or one over the whole width."""

    kind: ClassVar[str] = "drawings"
    drawings: tuple[Drawing, ...]


class Heading(Struct, frozen=True):
    kind: ClassVar[str] = "heading"
    text: str


class Text(Struct, frozen=True):
    kind: ClassVar[str] = "text"
    text: str


class Command(Struct, frozen=True):
    kind: ClassVar[str] = "command"
    what: str
    command: str


class Facts(Struct, frozen=True):
    kind: ClassVar[str] = "facts"
    rows: tuple[tuple[str, str], ...]


Block: TypeAlias = Table | Drawings | Heading | Text | Command | Facts


class Part(Struct, frozen=True):
    """One part of the page, with an entry in its navigation."""

    id: str
    title: str
    blocks: tuple[Block, ...]
    intro: str = ""


class Banner(Struct, frozen=True):
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
    if len(items) < 2:
        return items[0] if items else ""
    return Markup("<ul>%s</ul>") % Markup("").join(Markup("<li>%s</li>") % each for each in items)


def verdict(word: str, words: str) -> Markup:
    return Markup('<span class="verdict tone-%s">%s</span>') % (word, words)


def chips(items: Sequence[str]) -> Markup:
    """Short texts side by side."""
    return Markup("").join(Markup('<span class="chip">%s</span>') % each for each in items)
