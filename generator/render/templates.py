"""The Jinja2 environment of all templates: a missing name stops the render, every format has its quoting filter."""

from __future__ import annotations

import json
import shlex
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from jinja2 import Environment


def bicep_string(value: str) -> str:
    """A single-quoted Bicep string literal. Source: https://learn.microsoft.com/azure/azure-resource-manager/bicep/data-types#strings"""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("${", "\\${")
    for character, escape in (("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        escaped = escaped.replace(character, escape)
    return f"'{escaped}'"


def cc_bool(value: bool) -> str:
    """A boolean as CycleCloud templates write it."""
    return "true" if value else "false"


@cache
def environment(folder: Path) -> Environment:
    """The environment that loads templates from one folder."""
    import jinja2  # heavy: only commands that render pay for it

    env = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - none of our formats is HTML
        auto_reload=False,
        optimized=False,  # templates run once: folding constants costs more than it saves
    )
    env.filters |= {"bicep": bicep_string, "cc_bool": cc_bool, "json": json.dumps, "sh": shlex.quote}
    return env
