"""`cycleforge retry`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ..errors import OK, ProblemsFound
from . import azure, common

if TYPE_CHECKING:
    from ..operate.cluster import Place
    from ..operate.lifecycle import Node

DESCRIPTION = """\
Let CycleCloud retry what has failed on nodes of a cluster. It shows what each of them says, asks, retries once, and
reads the state back. Fix the cause first: a wrong script or quota fails again.
"""


def add_arguments(parser: ArgumentParser) -> None:
    azure.add_cluster_arguments(parser, changes=True)


def run(args: Namespace) -> int:
    from ..operate import lifecycle
    from ..words.counts import counted

    with azure.cluster_at(args) as place:
        if args.print:
            common.emit("\n".join(place.lines(["cyclecloud", "retry", place.name])))
            return OK
        failed = place.look().failed
        if not failed:
            common.emit(f"{place.name} has no failed node; nothing was done")
            return OK
        common.emit(_shown(failed) + "".join(_at_length(place)))
        if not args.yes and not azure.confirmed(f"try {counted(len(failed), 'node')} again?", "give --yes"):
            return ProblemsFound.exit_code
        # The question may have been open for long, and someone else faster.
        again = lifecycle.retry(place, failed if args.yes else ())
        if again is not None:
            common.emit("retried; now:\n" + _shown(again))
        else:
            common.emit(f"{place.name} has no failed node left; nothing was done")
    return OK


def _at_length(place: Place) -> Iterator[str]:
    """Yield what the site says in addition, if it can be asked: often only that names the cause."""
    from .status_text import condition_lines

    for condition in place.conditions():
        if condition.says_more:
            yield from (f"  {line}\n" for line in condition_lines(condition))


def _shown(nodes: Iterable[Node]) -> str:
    from ..words.terminal import columns, printable

    cells = [[printable(text) or None for text in (node.name, node.array, node.status, node.message)] for node in nodes]
    return columns([("NODE", "ARRAY", "STATE", "WHAT IT SAYS"), *cells])
