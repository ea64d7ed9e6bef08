"""The figures of a run, check by check: one for the run, or one or more of each node."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .peers import median, more_is_better
from .record import Check, Run
from .verdicts import Verdict, worst


@dataclass(slots=True)
class Measured:
    """One check of a run with all its entries."""

    subject: str
    unit: str
    checks: list[Check]

    @property
    def verdict(self) -> Verdict:
        """The worst of its entries."""
        return worst(each.verdict for each in self.checks)

    @property
    def values(self) -> list[float]:
        """Its figures."""
        return [each.value for each in self.checks if isinstance(each.value, int | float)]

    @property
    def middle(self) -> float | None:
        """The figure that stands for the run: the only one, or the median of the nodes."""
        values = self.values
        return median(values) if values else None

    @property
    def of_nodes(self) -> dict[str, float]:
        """The figure of each node that has one: the worst, where it has several (one for each GPU)."""
        choose = min if more_is_better(self.unit) else max
        found: dict[str, float] = {}
        for each in self.checks:
            if len(each.nodes) == 1 and isinstance(each.value, int | float):
                node = each.nodes[0]
                found[node] = choose(found[node], each.value) if node in found else each.value
        return found

    @property
    def floors(self) -> list[float]:
        """What was expected, each figure once."""
        return sorted({each.expected for each in self.checks if isinstance(each.expected, int | float)})

    @property
    def sources(self) -> list[str]:
        """Where that is from."""
        return sorted({each.source for each in self.checks if each.source})


def measured(run: Run) -> list[Measured]:
    """The checks of a run in their order; entries of several nodes are one check."""
    found: dict[tuple[str, str], Measured] = {}
    for check in run.checks:
        name = check.check
        if len(check.nodes) == 1 and check.nodes[0] in name:
            name = check.subject
        key = name, check.unit
        if key in found:
            found[key].checks.append(check)
        else:
            found[key] = Measured(name, check.unit, [check])
    return list(found.values())


def of_all(runs: Iterable[Run]) -> list[tuple[Run, list[Measured]]]:
    """Each run with its checks."""
    return [(run, measured(run)) for run in runs]
