"""`effective.yaml`: the plan as YAML, in the order of the declarations."""

from __future__ import annotations

from typing import Any

from ..files.file import File, text
from ..files.yaml_text import yaml_text

HEADER = "# The definition with all defaults, and everything that follows from it. Written by cycleforge build.\n"


def yaml_file(value: dict[str, Any]) -> File:
    """The plan as plain data, with a line that says what it is."""
    return text(HEADER + yaml_text(value))
