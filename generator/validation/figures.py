"""The figures of runs, check by check: those of one run, and the history of each check from run to run."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from msgspec import Struct

from .. import catalog
from .peers import more_is_better
from .record import Check, Run, Verdict, worst


class Measured(Struct):
    """One check of a run, with its entries of all nodes."""

    subject: str
    unit: str
    checks: list[Check]

    @property
    def verdict(self) -> Verdict:
        return worst(each.verdict for each in self.checks)

    @property
    def values(self) -> list[float]:
        return [each.number for each in self.checks if each.number is not None]

    @property
    def middle(self) -> float | None:
        """Return the median of the nodes, or the only figure; None without figures."""
        values = self.values
        return float(median(values)) if values else None

    @property
    def of_nodes(self) -> dict[str, float]:
        """Return the figure of each node; of several (one for each GPU), the worst."""
        choose = min if more_is_better(self.unit) else max
        found: dict[str, float] = {}
        for each in self.checks:
            if each.node and each.number is not None:
                found[each.node] = choose(found.get(each.node, each.number), each.number)
        return found

    @property
    def floors(self) -> list[float]:
        """Return the expected figures, each once."""
        return sorted({each.floor for each in self.checks if each.floor is not None})

    @property
    def sources(self) -> list[str]:
        return sorted({each.source for each in self.checks if each.source})


def measured(run: Run) -> list[Measured]:
    """Return the checks of a run in their order; the entries of all nodes are one check."""
    found: dict[tuple[str, str], Measured] = {}
    for check in run.checks:
        name = check.subject
        found.setdefault((name, check.unit), Measured(name, check.unit, [])).checks.append(check)
    return list(found.values())


# ---------------------------------------------------------------- from run to run

MIN_EARLIER = 3
"""Earlier runs that a usual value needs: with three, one slow run does not shift the median."""


class Point(Struct, frozen=True):
    run: Run
    value: float
    verdict: str


class Line(Struct, frozen=True):
    """One check of one job in one place, the oldest run first; `run` is the newest.

    `usual` is the median of the earlier runs, None when they are too few.
    """

    run: Run
    subject: str
    unit: str
    points: tuple[Point, ...]
    usual: float | None

    @property
    def change_percent(self) -> float | None:
        if not self.usual:
            return None
        return (self.points[-1].value - self.usual) * 100 / abs(self.usual)

    @property
    def is_worse(self) -> bool:
        """Return True when a rate is below the usual one by more than nodes may differ."""
        change, allowed = self.change_percent, catalog.health().fleet_statistics.warn_percent_below_expected
        return change is not None and more_is_better(self.unit) and -change > allowed


def history(runs: Sequence[tuple[Run, list[Measured]]]) -> tuple[Line, ...]:
    """Return a line for each check that at least two runs measured."""
    points: dict[tuple[tuple[str, str, str], str, str, str], list[Point]] = {}
    for run, checks in runs:
        for each in checks:
            value = each.middle
            if value is not None:
                key = run.place, run.vm_size, each.subject, each.unit
                points.setdefault(key, []).append(Point(run, value, each.verdict))
    lines = []
    for (_, _, subject, unit), same in points.items():
        if len(same) < 2:
            continue
        earlier = [point.value for point in same[:-1] if point.verdict not in ("fail", "error")]
        usual = median(earlier) if len(earlier) >= MIN_EARLIER else None
        lines.append(Line(same[-1].run, subject, unit, tuple(same), usual))
    return tuple(lines)
