"""What the server itself says is wrong with nodes: one row for each reason, with its details and its advice.

Only programs of others show the query (requests/undocumented.py), so a server that refuses it costs nothing but this.
An empty list is not health: conditions that are not active may be missing.
Source: https://github.com/gingi/cyclecloud-agent-plugin/blob/main/docs/node-diagnostics.md
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..records import record
from ..words.terminal import printable
from .refusals import NotAsked, Refused
from .requests import undocumented
from .site import Site

_BAD = frozenset({"error", "warning"})
_MOST_LINES = 20
_LONGEST = 500
_NUMBERS = re.compile(r"\d+")


@record
class Condition:
    """One reason; texts are printable."""

    name: str
    """Which part of a node it is of: `Software Configuration`, `Virtual Machine`."""
    status: str
    message: str
    count: int
    """How many nodes have it."""
    detail: tuple[str, ...]
    """Lines, such as the end of what a script wrote."""
    recommendation: str

    @property
    def says_more(self) -> bool:
        """Whether there is more than its message."""
        return bool(self.detail or self.recommendation)


def conditions(site: Site, cluster: str) -> tuple[Condition, ...]:
    """Errors before warnings, those of most nodes first; none where the server does not say."""
    try:
        rows = site.get(undocumented.conditions(cluster))
    except (Refused, NotAsked):
        return ()
    found = [_condition(row) for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []
    bad = _alike([each for each in found if each.status.casefold() in _BAD])
    return tuple(sorted(bad, key=lambda each: (each.status.casefold(), -each.count, each.name, each.message)))


def _alike(found: list[Condition]) -> list[Condition]:
    """Numbers do not make two reasons of one; the first of them is shown."""
    groups: dict[tuple[str, str, str], list[Condition]] = {}
    for each in found:
        groups.setdefault((each.name, each.status, _NUMBERS.sub("#", each.message)), []).append(each)
    return [replace(each[0], count=sum(one.count for one in each)) for each in groups.values()]


def _condition(row: Mapping[str, Any]) -> Condition:
    """A detail is cut at its beginning: what went wrong stands at the end of what a script wrote."""
    count = row.get("NodeCount")
    lines = [printable(line.rstrip())[:_LONGEST] for line in str(row.get("Detail") or "").splitlines() if line.strip()]
    return Condition(
        _line(row.get("Name")),
        _line(row.get("Status")),
        _line(row.get("Message")),
        int(count) if isinstance(count, int | float) else 0,
        tuple(lines[-_MOST_LINES:]),
        _line(row.get("Recommendation")),
    )


def _line(value: object) -> str:
    return printable(" ".join(str(value or "").split()))[:_LONGEST]
