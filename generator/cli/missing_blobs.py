"""I1591 for all definitions of a run together: the machine lacks the same files for each of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..words.counts import listed

if TYPE_CHECKING:
    from ..pipeline import Checked
    from ..problems.problem import Problem

ID = "I1591"


def others(problems: Sequence[Problem]) -> list[Problem]:
    """The problems that are shown file by file."""
    return [problem for problem in problems if problem.rule_id != ID]


def message(definitions: Sequence[Checked]) -> str | None:
    """What this machine lacks, for which definitions, what nodes then do, and the way out; None if nothing is missing.

    A definition that silences the rule does not count.
    """
    from ..rules.projects import consequences

    lacking = [each.plan for each in definitions if each.plan and any(found.rule_id == ID for found in each.problems)]
    if not lacking:
        return None
    names = listed(dict.fromkeys(plan.name for plan in lacking))
    return "\n".join(
        (
            f"info {ID}: third-party files are missing on this machine, so nodes start without them ({names})",
            *(f"  {line}" for line in consequences(lacking)),
            "  hint: `cycleforge blobs fetch`, then build again",
            f"  more: cycleforge explain {ID}",
        )
    )
