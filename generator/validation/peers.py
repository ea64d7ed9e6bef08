"""Nodes against their like: who passes every floor and is still slower than the others, and what is far out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from .. import catalog
from ..records import record
from ..results.units import is_rate

MIN_NODES = 5
"""Nodes that a median needs: with five, two slow nodes leave it where it is. The same as for health results."""
_RATES = frozenset(("IOPS", "ops/s", "files/s", "tokens/s", "msg/s"))


@record
class Limits:
    """By how many percent a value may be below the median."""

    suspect_percent: float
    strong_percent: float
    source: str


@record
class Outlier:
    """A node whose value is worse than the median of its peers by more than allowed."""

    node: str
    value: float
    percent: float
    """How much worse than the median."""
    is_strong: bool


@cache
def limits() -> Limits:
    """The catalogue's figures. Source: fleet_statistics in `health.json`, which names its own."""
    figures = catalog.health().fleet_statistics
    return Limits(
        float(figures.warn_percent_below_expected), float(figures.fail_percent_below_expected), figures.source
    )


def more_is_better(unit: str) -> bool:
    """Bandwidths, speeds of calculation, operations per second."""
    return unit in _RATES or is_rate(unit)


def median(values: Sequence[float]) -> float:
    """The middle value, of an even number the mean of the two in the middle."""
    return _at(sorted(values), 0.5)


def outliers(values: Mapping[str, float], unit: str) -> tuple[Outlier, ...]:
    """The nodes below the median, the worst first; nothing where nodes are too few, or more is not better."""
    if len(values) < MIN_NODES or not more_is_better(unit):
        return ()
    middle = median(list(values.values()))
    if middle <= 0:
        return ()
    allowed = limits()
    found = [
        Outlier(node, value, percent, percent > allowed.strong_percent)
        for node, value in values.items()
        if (percent := (middle - value) * 100 / middle) > allowed.suspect_percent
    ]
    return tuple(sorted(found, key=lambda each: (-each.percent, each.node)))


def far_out(values: Sequence[float]) -> tuple[float, float] | None:
    """Below and above which a value is far from the others (Tukey's outer fences); None where they are too few.

    Source: https://www.itl.nist.gov/div898/handbook/prc/section1/prc16.htm
    """
    if len(values) < MIN_NODES:
        return None
    ordered = sorted(values)
    low, high = _at(ordered, 0.25), _at(ordered, 0.75)
    return low - 3 * (high - low), high + 3 * (high - low)


def _at(ordered: Sequence[float], share: float) -> float:
    """The value at a share of the way, between two neighbours in proportion."""
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
