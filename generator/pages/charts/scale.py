"""Values to places on a chart, and the round values that an axis names."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log2, log10

from ...records import record


@record
class Scale:
    """From values between `low` and `high` to places between `start` and `end`."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    def __call__(self, value: float) -> float:
        """The place of a value."""
        low, high = (log2(self.low), log2(self.high)) if self.is_log else (self.low, self.high)
        at = log2(max(value, self.low)) if self.is_log else value
        if high == low:
            return (self.start + self.end) / 2
        return self.start + (at - low) / (high - low) * (self.end - self.start)


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round values from at most `low` to at least `high`: steps of 1, 2 or 5 times a power of ten."""
    span = high - low
    if span <= 0:
        span = abs(high) or 1.0
    rough = span / max(1, about)
    power = 10.0 ** floor(log10(rough))
    step = next(each * power for each in (1, 2, 5, 10) if each * power >= rough * (1 - 1e-9))
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    if last == first:
        last += 1
    return [round(place * step, 12) for place in range(first, last + 1)]


def powers_of_two(low: float, high: float, at_most: int = 7) -> list[float]:
    """Powers of two from `low` to `high`, evenly spaced."""
    first, last = floor(log2(low)), ceil(log2(high))
    step = max(1, ceil((last - first) / at_most))
    return [2.0**power for power in range(first, last + 1, step)]


def place(value: float) -> str:
    """A coordinate with one decimal at most: half the bytes, and no difference to see."""
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text


def path(points: Sequence[tuple[float, float]]) -> str:
    """The data of a path through points."""
    return "M" + "L".join(f"{place(x)} {place(y)}" for x, y in points) if points else ""
