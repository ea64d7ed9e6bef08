"""Figures that only rules need, and the limits of the catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import catalog


def figures() -> Mapping[str, Any]:
    """Figures that only rules need, each with its source."""
    return catalog.rule_figures()


def limit(name: str) -> int:
    """The plain value of one entry of the catalogue's limits."""
    value: int = catalog.limits()[name]["value"]
    return value
