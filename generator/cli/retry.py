"""`cycleforge retry`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ..errors import OK, ProblemsFound
from . import azure, cluster, common

if TYPE_CHECKING:
    from ..operate.cluster import Place
    from ..operate.lifecycle import Node

DESCRIPTION = """\
Let CycleCloud try again what has failed on nodes of a cluster. It shows what each of them says first, asks, does it
once, and reads back. Correct the cause first: what was wrong with a script or a quota fails again.
"""


def add_arguments(parser: ArgumentParser) -> None:
    cluster.add_arguments(parser, changes=True)


def run(args: Namespace) -> int:
    from ..operate import lifecycle
    from ..words.counts import counted

    with cluster.at(args) as place:
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
        # The question may have stood for long, and somebody else be faster.
        again = lifecycle.retry(place, failed if args.yes else ())
        if again is not None:
            common.emit("asked once; now:\n" + _shown(again))
        else:
            common.emit(f"{place.name} has no failed node any more; nothing was done")
    return OK


def _at_length(place: Place) -> Iterator[str]:
    """What the site says besides, where it is the site that is asked: without it nobody knows what to correct."""
    from .status_text import condition_lines

    for condition in place.conditions():
        if condition.says_more:
            yield from (f"  {line}\n" for line in condition_lines(condition))


def _shown(nodes: Iterable[Node]) -> str:
    from ..words.terminal import columns, printable

    cells = [[printable(text) or None for text in (node.name, node.array, node.status, node.message)] for node in nodes]
    return columns([("NODE", "ARRAY", "STATE", "WHAT IT SAYS"), *cells])
