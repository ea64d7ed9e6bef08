"""What a cluster has used, as its server has counted it: core hours, and what they cost at retail prices.

Source: https://learn.microsoft.com/azure/cyclecloud/api (cluster usage)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from ..words.terminal import printable
from . import requests
from .requests import Call
from .site import Site
from .wire import NotAsked

TIMEFRAME = "monthToDate"


class Part(Struct, frozen=True):
    """One node, or one node array."""

    name: str
    core_hours: float
    usd: float | None
    """None where the server gives no estimate."""


class Usage(Struct, frozen=True):
    core_hours: float
    usd: float | None
    parts: tuple[Part, ...]


def of_this_month(cluster: str) -> Call:
    return requests.USAGE({"timeframe": TIMEFRAME, "granularity": "total"}, cluster=cluster)


def usage(site: Site, cluster: str) -> Usage:
    """Ask for this month. Raises Refused and NotAsked."""
    body = site.get(of_this_month(cluster))
    rows = body.get("usage") if isinstance(body, Mapping) else None
    if not isinstance(rows, list):
        raise NotAsked(f"the server's answer for the usage of {cluster} is not the documented one")
    found = [row for row in rows if isinstance(row, Mapping)]
    totals = [_part("", row.get("total")) for row in found]
    parts: dict[str, list[Part]] = {}
    for row in found:
        listed = row.get("breakdown")
        for each in listed if isinstance(listed, list) else ():
            name = printable(str(each.get("node") or "")) if isinstance(each, Mapping) else ""
            if name:
                parts.setdefault(name, []).append(_part(name, each))
    together = [_sum(name, each) for name, each in parts.items()]
    total = _sum("", totals)
    together.sort(key=lambda part: (-(part.usd or part.core_hours), part.name))
    return Usage(total.core_hours, total.usd, tuple(together))


def _part(name: str, row: object) -> Part:
    found: Mapping[str, Any] = row if isinstance(row, Mapping) else {}
    return Part(name, _number(found.get("hours")) or 0.0, _number(found.get("cost")))


def _sum(name: str, parts: list[Part]) -> Part:
    """The cost is only known where each part has one."""
    costs = [part.usd for part in parts if part.usd is not None]
    known = sum(costs) if costs and len(costs) == len(parts) else None
    return Part(name, sum(part.core_hours for part in parts), known)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
