"""What is billed now: the rows of a plan's costs, each as often as the thing is there."""

from __future__ import annotations

from collections.abc import Callable

from ..plan.billing import Billed
from ..records import record
from .costs import Costs


@record
class Spending:
    """By the hour."""

    currency: str
    per_hour: float
    missing: tuple[str, ...]
    """Titles of what is there and has no price: the sum is a lower bound."""
    not_known: tuple[str, ...]
    """Titles of what is there in a number that nobody knows."""


def spending(costs: Costs, there: Callable[[Billed], int | None]) -> Spending:
    """`there` says how many of a thing there are now; None where that is not known."""
    total, missing, not_known = 0.0, [], []
    for row in costs.rows:
        count = there(row.billed)
        if count is None:
            not_known.append(row.billed.title)
        elif count and row.price.per_hour is None:
            missing.append(row.billed.title)
        elif count:
            total += count * (row.price.per_hour or 0.0)
    return Spending(costs.currency, total, tuple(dict.fromkeys(missing)), tuple(dict.fromkeys(not_known)))
