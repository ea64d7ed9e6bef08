"""The order in which problems are reported."""

from __future__ import annotations

from collections.abc import Iterable

from .concealment import Concealment
from .problem import LEVELS, Problem, Source, locate


def sort_problems(problems: Iterable[Problem], source: Source) -> tuple[Problem, ...]:
    """By position, then errors before warnings, then rule id; equal problems are reported once.

    Values of the environment are taken out of the sentences on the way.
    """
    concealment = Concealment(source.environment)
    shown = (concealment.of(each, is_from_environment=source.is_from_environment(each.path)) for each in problems)
    return tuple(
        sorted(
            dict.fromkeys(shown),
            key=lambda each: (locate(each, source), LEVELS.index(each.level), each.rule_id, each.message),
        )
    )
