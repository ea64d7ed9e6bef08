"""Nodes against their like: who passes every limit and is still slower than the others.

The limits and what a node's value is come from the catalogue (`health.json`, fleet_statistics); the expected value is
the median of the nodes themselves, so nothing is compared with a figure that is not published.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from statistics import median

from msgspec import Struct

from .. import catalog
from ..results.units import is_rate
from .findings import number
from .result import NodeResult

MIN_NODES = 5
"""Nodes of one VM size that a median needs.

With five, two slow nodes (of one host, of one switch) leave the median where it is; with three or four, one more slow
node than expected decides what is normal.
"""


class Group(Struct, frozen=True):
    """One check of the nodes of one VM size. `median` is None when the nodes are too few to compare."""

    vm_size: str
    check: str
    unit: str
    nodes: int
    median: Decimal | None


class Deviation(Struct, frozen=True):
    """A node whose value is below the median by more than allowed."""

    node: str
    group: Group
    value: str
    percent_below: Decimal
    strong: bool

    @property
    def text(self) -> str:
        """For example `nccl_all_reduce 437.9 GB/s, 7.4 % below the median of 14 nodes (472.9 GB/s)`."""
        group = self.group
        return (
            f"{group.check} {self.value} {group.unit}, {self.percent_below:.1f} % below "
            f"the median of {group.nodes} nodes ({plain(group.median)} {group.unit})"
        )


def compare(results: Iterable[NodeResult]) -> tuple[tuple[Group, ...], tuple[Deviation, ...]]:
    """Return every group, and the nodes that are too far below its median, the worst first.

    Bandwidths and speeds with a lower limit, and those without a published limit, are compared. A value that misses its
    limit does not represent a healthy node and is left out of the median. A node counts with the least of its values
    (its slowest GPU).
    """
    values: dict[tuple[str, str, str], dict[str, tuple[Decimal, str]]] = {}
    for result in results:
        for key, text, value in _rates(result):
            of_node = values.setdefault(key, {})
            if result.node not in of_node or value < of_node[result.node][0]:
                of_node[result.node] = (value, text)
    groups: list[Group] = []
    deviations: list[Deviation] = []
    for key, of_node in sorted(values.items()):
        middle = median(value for value, _ in of_node.values()) if len(of_node) >= MIN_NODES else None
        group = Group(*key, nodes=len(of_node), median=middle)
        groups.append(group)
        deviations += _deviations(group, of_node)
    return tuple(groups), tuple(sorted(deviations, key=lambda each: (-each.percent_below, each.node, each.group.check)))


def _rates(result: NodeResult) -> Iterable[tuple[tuple[str, str, str], str, Decimal]]:
    if not result.vm_size:
        return  # nodes of unknown sizes are not comparable
    for check in result.checks:
        if not is_rate(check.unit):
            continue
        value, limit = number(check.value), number(check.limit)
        # The limit of a warning is the warning's own, so that a value below it may still be one of a healthy node.
        fits = check.verdict == "warn" or (check.verdict == "pass" and (limit is None or (value or 0) >= limit))
        if value is not None and ((check.relation == "ge" and fits) or check.verdict == "no_baseline"):
            yield (result.vm_size.lower(), check.check, check.unit), check.value, value


def _deviations(group: Group, of_node: Mapping[str, tuple[Decimal, str]]) -> Iterable[Deviation]:
    if group.median is None or group.median <= 0:
        return
    allowed = catalog.health().fleet_statistics
    for node, (value, text) in of_node.items():
        percent = (group.median - value) * 100 / group.median
        if percent > allowed.warn_percent_below_expected:
            yield Deviation(node, group, text, percent, percent > allowed.fail_percent_below_expected)


def plain(value: Decimal | None) -> str:
    """Return a number with at most two decimals; empty for None."""
    return "" if value is None else f"{value:.2f}".rstrip("0").rstrip(".")
