"""Figures that only rules need."""

from __future__ import annotations

from .. import catalog
from ..catalog.rule_facts import RuleFigures


def figures() -> RuleFigures:
    """Figures that only rules need, each with its source."""
    return catalog.rule_figures()
