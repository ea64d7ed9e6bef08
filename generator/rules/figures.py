"""Figures that only rules need, and the limits of the catalogue."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path as FilePath
from typing import Any

from .. import catalog


@cache
def figures() -> Mapping[str, Any]:
    """Figures that only rules need, each with its source."""
    content: Mapping[str, Any] = json.loads(
        (FilePath(catalog.__file__).parent / "rule_figures.json").read_text(encoding="utf-8")
    )
    return content


def limit(name: str) -> int:
    """The plain value of one entry of the catalogue's limits."""
    value: int = catalog.limits()[name]["value"]
    return value
