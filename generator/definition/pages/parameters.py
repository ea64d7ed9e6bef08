"""The table of `docs/cluster.md`: each parameter of Microsoft's template, and the key that decides it here.

It is a part of a page that is written by hand, between two comments that no reader sees.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...catalog import template_parameters
from ...catalog.slurm_facts import TemplateParameter
from ...files import assets

PAGE = "docs/cluster.md"
_BEGIN, _END = "<!-- parameters: make accept writes this table -->\n", "<!-- end of parameters -->\n"


def page() -> str:
    """The page with the table anew. ValueError: it has not exactly one place for it."""
    text = (assets.root() / PAGE).read_text(encoding="utf-8")
    if text.count(_BEGIN) != 1 or text.count(_END) != 1:
        raise ValueError(f"{PAGE} needs the lines {_BEGIN!r} and {_END!r} once each")
    before, _, rest = text.partition(_BEGIN)
    return f"{before}{_BEGIN}\n{''.join(_lines())}\n{_END}{rest.partition(_END)[2]}"


def _lines() -> Iterator[str]:
    yield "| parameter of cyclecloud-slurm 4.0.9 | key of the definition | remarks |\n|---|---|---|\n"
    for row in template_parameters().parameters:
        key = f"`{row.key}`" if row.key else "none"
        yield f"| {_code(row.name)} | {key} | {'; '.join(_remarks(row))} |\n"


def _code(name: str) -> str:
    return name if " " in name else f"`{name}`"


def _remarks(row: TemplateParameter) -> Iterator[str]:
    if row.reason:
        yield row.reason
    if row.own:
        yield f"here `{row.own}`"
    if row.in_ == "template":
        yield "in the template, not in a parameter"
    if row.note:
        yield row.note
