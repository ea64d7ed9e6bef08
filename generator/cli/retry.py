"""`cycleforge retry`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ..errors import OK, ProblemsFound
from . import azure, cluster, common

if TYPE_CHECKING:
    from ..cyclecloud.cluster import Cluster, Node

DESCRIPTION = """\
Let CycleCloud try again what has failed on nodes of a cluster. It shows what each of them says first, asks, does it
once, and reads back. Correct the cause first: what was wrong with a script or a quota fails again.
"""


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the flags."""
    cluster.add_arguments(parser, changes=True)


def run(args: Namespace) -> int:
    """Show, ask, retry, read back."""
    place = cluster.found(args)
    if args.print:
        common.emit("\n".join(place.lines(["cyclecloud", "retry", place.name])))
        return OK
    with cluster.refusals(place):
        return _retry(place, args)


def _retry(place: cluster.Place, args: Namespace) -> int:
    from ..cyclecloud.requests import undocumented
    from ..words.counts import counted

    seen = place.look()
    failed = seen.failed
    if not failed:
        common.emit(f"{place.name} has no failed node; nothing was done")
        return OK
    common.emit(_shown(failed) + "".join(_at_length(place)))
    if not args.yes:
        if not azure.confirmed(f"try {counted(len(failed), 'node')} again?", "give --yes"):
            return ProblemsFound.exit_code
        # The question may have stood for long, and somebody else be faster.
        failed = place.look().failed
        if not failed:
            common.emit(f"{place.name} has no failed node any more; nothing was done")
            return OK
    names = {node.name for node in failed}

    def is_begun(now: Cluster) -> bool:
        return any(node.name in names and not node.has_failed for node in now.listed)

    # A node may fail again at once: what the server says of it is shown, and no state is a failure of the command.
    again = cluster.changed_once(
        place, ["retry", place.name], undocumented.RETRY(cluster=place.name), is_begun, may_stay=True
    )
    common.emit("asked once; now:\n" + _shown([node for node in again.listed if node.name in names]))
    return OK


def _at_length(place: cluster.Place) -> Iterator[str]:
    """What the site says besides, where it is the site that is asked: without it nobody knows what to correct."""
    from .status_text import condition_lines

    for condition in place.ways.conditions():
        if condition.says_more:
            yield from (f"  {line}\n" for line in condition_lines(condition))


def _shown(nodes: Iterable[Node]) -> str:
    from ..words.terminal import columns, printable

    cells = [[printable(text) or None for text in (node.name, node.array, node.status, node.message)] for node in nodes]
    return columns([("NODE", "ARRAY", "STATE", "WHAT IT SAYS"), *cells])
