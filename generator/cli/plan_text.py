"""The plan as text."""

from __future__ import annotations

from ..plan.types import Plan
from ..render.plan_sections import Section, sections
from ..words.terminal import columns


def plan_text(plan: Plan) -> str:
    """The whole plan in sections."""
    return "\n".join(_text(section) for section in sections(plan))


def _text(section: Section) -> str:
    lines = "".join(f"  {line}\n" for line in section.lines)
    return f"{section.title}\n{lines}{columns(section.rows, indent='  ')}"
