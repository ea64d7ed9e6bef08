"""Measured ratios and figures, and how they are printed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Ratio:
    """Fastest or median times (seconds) of what is measured and of its yardstick, from alternating runs."""

    what: str
    seconds: float
    yardstick: str
    yardstick_seconds: float
    limit: float

    @property
    def value(self) -> float:
        """How many times the yardstick."""
        return self.seconds / self.yardstick_seconds

    @property
    def is_within(self) -> bool:
        """True when the ratio keeps its limit."""
        return self.value <= self.limit

    def line(self) -> str:
        """One line of the table."""
        verdict = "ok" if self.is_within else "OVER"
        return (
            f"{verdict:4}  {self.value:5.2f} x (limit {self.limit:.3g} x)  {self.what}: {self.seconds * 1000:.0f} ms"
            f"  |  {self.yardstick}: {self.yardstick_seconds * 1000:.0f} ms"
        )


@dataclass(frozen=True)
class Limit:
    """A measured figure that must not be larger than its limit."""

    what: str
    value: float
    unit: str
    limit: float

    @property
    def is_within(self) -> bool:
        """True when the figure keeps its limit."""
        return self.value <= self.limit

    def line(self) -> str:
        """One line of the table."""
        verdict = "ok" if self.is_within else "OVER"
        shown = f"{self.value:5.0f}" if self.limit >= 10 else f"{self.value:5.2f}"
        return f"{verdict:4}  {shown} {self.unit} (limit {self.limit:.0f} {self.unit})  {self.what}"
