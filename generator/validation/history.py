"""What this cluster measured over time: each check of each job, run by run."""

from __future__ import annotations

from collections.abc import Sequence

from ..records import record
from .figures import Measured
from .peers import limits, median, more_is_better
from .record import Run

MIN_EARLIER = 3
"""Earlier runs that a usual value needs: with three, one slow run leaves the median where it is."""


@record
class Point:
    """One run of a line."""

    run: Run
    value: float
    verdict: str


@record
class Line:
    """One check of one job in one place, the oldest run first. `usual` is the median of the earlier runs."""

    run: Run
    """The newest."""
    subject: str
    unit: str
    points: tuple[Point, ...]
    usual: float | None

    @property
    def change_percent(self) -> float | None:
        """How far the newest value is from the usual one."""
        if not self.usual:
            return None
        return (self.points[-1].value - self.usual) * 100 / abs(self.usual)

    @property
    def is_worse(self) -> bool:
        """Whether a rate is below the usual one by more than nodes may differ."""
        change = self.change_percent
        return change is not None and more_is_better(self.unit) and -change > limits().suspect_percent


def history(runs: Sequence[tuple[Run, list[Measured]]]) -> tuple[Line, ...]:
    """Lines of at least two runs, jobs in the order of their newest run."""
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
