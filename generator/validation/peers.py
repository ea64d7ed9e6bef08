"""Nodes against their like: who passes every floor and is still slower than the others, and what is far out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median, quantiles

from msgspec import Struct

from .. import catalog
from ..results.units import is_rate

MIN_NODES = 5
"""Nodes that a median needs: with five, two slow nodes do not shift it. The same as for health results."""
_RATES = frozenset(("IOPS", "ops/s", "files/s", "tokens/s", "msg/s"))


class Outlier(Struct, frozen=True):
    """A node whose value is worse than the median of its peers by more than allowed."""

    node: str
    value: float
    percent: float
    """How much worse than the median."""
    is_strong: bool


def more_is_better(unit: str) -> bool:
    """Return True for bandwidths, speeds of calculation, and operations per second."""
    return unit in _RATES or is_rate(unit)


def outliers(values: Mapping[str, float], unit: str) -> tuple[Outlier, ...]:
    """Return the nodes that are too far below the median, the worst first.

    There are none when the nodes are too few or more is not better. The limits are those of the catalogue:
    fleet_statistics in `health.json`, which names its source.
    """
    if len(values) < MIN_NODES or not more_is_better(unit):
        return ()
    middle = median(values.values())
    if middle <= 0:
        return ()
    allowed = catalog.health().fleet_statistics
    found = [
        Outlier(node, value, percent, percent > allowed.fail_percent_below_expected)
        for node, value in values.items()
        if (percent := (middle - value) * 100 / middle) > allowed.warn_percent_below_expected
    ]
    return tuple(sorted(found, key=lambda each: (-each.percent, each.node)))


def far_out(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the limits below and above which a value is far from the others; None where values are too few.

    They are Tukey's outer fences.

    Source: https://www.itl.nist.gov/div898/handbook/prc/section1/prc16.htm
    """
    if len(values) < MIN_NODES:
        return None
    low, _, high = quantiles(values, method="inclusive")
    return low - 3 * (high - low), high + 3 * (high - low)
