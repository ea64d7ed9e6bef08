"""Why nodes failed: the server's own sentence, what it means, and what to do; nodes of one reason together.

Two sources: the failed nodes of the cluster, and the conditions that the server itself lists, with details and advice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from .. import catalog
from ..words.terminal import printable
from . import requests
from .cluster import Array, Node
from .site import Site
from .wire import NotAsked, Refused

_NUMBERS = re.compile(r"\d+")
SILENT = "the server does not say why"
_BAD = frozenset({"error", "warning"})
_MOST_LINES = 20
_LONGEST = 500


class Reason(Struct, frozen=True):
    array: str
    nodes: tuple[str, ...]
    message: str
    """The server's own sentence, of the first node; empty where it has none."""
    words: str | None
    """What that means; None where the catalogue does not know it."""
    fix: str | None


def reasons(nodes: Iterable[Node], name: str) -> tuple[Reason, ...]:
    """Of nodes that failed, those of most nodes first. Numbers do not make two reasons of one."""
    groups: dict[tuple[str, str], list[Node]] = {}
    for node in nodes:
        groups.setdefault((node.array, _NUMBERS.sub("#", node.message.replace(node.name, "#"))), []).append(node)
    found = [_reason(each, name) for each in groups.values()]
    return tuple(sorted(found, key=lambda reason: (-len(reason.nodes), reason.array, reason.nodes)))


def _reason(nodes: list[Node], name: str) -> Reason:
    message = nodes[0].message
    words, fix = explained(message, name)
    names = sorted((node.name for node in nodes), key=_by_number)
    return Reason(nodes[0].array, tuple(names), message, words, fix)


def explained(message: str, name: str) -> tuple[str | None, str | None]:
    """What a message means and what to do, where the catalogue knows it."""
    for row in catalog.cyclecloud_failures().failures.rows:
        if re.search(row.pattern, message, re.IGNORECASE):
            return str(row.words), str(row.fix).format(name=name)
    return None, None


def _by_number(name: str) -> tuple[str, int]:
    found = re.search(r"(\d+)$", name)
    return (name[: found.start()], int(found[1])) if found else (name, -1)


def shortages(array: Array) -> list[str]:
    """Why a partition gets no more nodes although it could have some: missing quota often shows nowhere else.

    Source: https://github.com/Azure/az-hop/issues/995
    """
    found = []
    for each in array.buckets:
        size = each.machine_type or "a VM size"
        if not each.is_valid:
            found.append(f"{size} cannot be used here: {each.why_not or SILENT}")
        elif each.failed_s is not None:
            found.append(f"Azure had no capacity for {size} {each.failed_s:.0f} s ago")
        elif each.quota is not None and array.most is not None and each.quota < array.most:
            found.append(f"the quota allows {each.quota} of {size}, fewer than the {array.most} of the partition")
    return found


class Condition(Struct, frozen=True):
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
        return bool(self.detail or self.recommendation)


def conditions(site: Site, cluster: str) -> tuple[Condition, ...]:
    """Errors before warnings, those of most nodes first; none where the server does not say.

    Only programs of others show the query, so a server that refuses it costs nothing but this. An empty list is not
    health: conditions that are not active may be missing.
    Source: https://github.com/gingi/cyclecloud-agent-plugin/blob/main/docs/node-diagnostics.md
    """
    try:
        rows = site.get(requests.conditions(cluster))
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
