"""Why nodes failed: the server's own sentence, what it means, and what to do; nodes of one reason together."""

from __future__ import annotations

import re
from collections.abc import Iterable

from .. import catalog
from ..records import record
from .cluster import Array, Node

_NUMBERS = re.compile(r"\d+")
SILENT = "the server does not say why"


@record
class Reason:
    """One reason in one partition."""

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
            found.append(f"{size} cannot be used here: {each.why_not or 'the server does not say why'}")
        elif each.failed_s is not None:
            found.append(f"Azure had no {size} to give {each.failed_s:.0f} s ago")
        elif each.quota is not None and array.most is not None and each.quota < array.most:
            found.append(f"the quota allows {each.quota} of {size}, and the partition may have {array.most}")
    return found
