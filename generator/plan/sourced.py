"""One line of text for nodes, and where it comes from."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from msgspec import Struct

from .. import catalog
from ..catalog.sizes import Figures


class Sourced(Struct, frozen=True):
    """A figure or a check as nodes read it; `source` is `null` where the figure is not published."""

    text: str
    source: str


def sourced(text: str, source: object) -> Sourced:
    """`source`: keys or addresses, one or several, or nothing."""
    words = " ".join(map(str, source)) if isinstance(source, list | tuple) else str(source or "")
    return Sourced(" ".join(text.split()), " ".join(words.split()) or "null")


def check_line(check: str, source: object, /, **arguments: object) -> Sourced:
    """`check key=value ...`; None becomes null, and every word is safe for the shell that reads it."""
    words = [f"{key}={shlex.quote('null' if value is None else str(value))}" for key, value in arguments.items()]
    return sourced(" ".join((check, *words)), source)


def figures_line(check: str, figures: Figures, *keys: str, **more: object) -> Sourced:
    """The line of a check whose arguments are keys of the catalogue's figures; null where these are not published."""
    return check_line(check, figures.get("source"), **more, **{key: figures.get(key) for key in keys})


def titles(keys: Iterable[str]) -> str:
    """Return titles and addresses of sources by their keys, each once."""
    rows = (catalog.sources()[key] for key in dict.fromkeys(keys))
    return "; ".join(f"{row.title} ({row.url})" if row.url else row.title for row in rows)
