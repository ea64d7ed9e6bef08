"""One self-contained page: every value is escaped, style and script are in it, and nothing else may be loaded.

The page's policy allows only its own style and script, by their digests, so that no text of a record could run or load
anything even if it were not escaped. It is written as a whole or not at all, and never over a file of someone else.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from .blocks import Banner, Part

if TYPE_CHECKING:
    from jinja2 import Template


from ..disk import own_file

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
    from markupsafe import Markup

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
    own_file.write(
        path,
        text.encode(),
        is_ours=lambda head: MARK.encode() in head,
        foreign="is not a page of CycleForge",
        hint=f"name another file with {option}",
    )
