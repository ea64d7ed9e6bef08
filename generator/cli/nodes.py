"""`cycleforge nodes`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from ..errors import OK
from . import cluster, common

if TYPE_CHECKING:
    from ..cyclecloud.cluster import Cluster, Node
    from ..cyclecloud.slurm import Queue, SlurmNode

DESCRIPTION = """\
List the nodes of a cluster that have a VM, or should have one: partition, what CycleCloud and Slurm say of them,
instance, and the reason of a failure or a drain. Changes nothing.

Where CYCLECLOUD_ADMIN_PASSWORD is exported, the site itself is asked; otherwise `cyclecloud` on its server, through ssh
and with your key, or where no network path leads there, through Azure's run command.
"""
_HEAD = ("NODE", "PARTITION", "STATE", "SLURM", "INSTANCE", "REASON")


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the flags."""
    cluster.add_arguments(parser, changes=False)
    common.add_json(parser)


def run(args: Namespace) -> int:
    """Ask both, and show them side by side."""
    place = cluster.found(args)
    if args.print:
        from ..cyclecloud.nodes import listing
        from ..cyclecloud.slurm import NODES

        lines = place.lines(["cyclecloud", *listing(place.name)])
        common.emit("\n".join([*lines, *place.lines(NODES.split(), host="scheduler")]))
        return OK
    with cluster.refusals(place):
        return _nodes(place, args)


def _nodes(place: cluster.Place, args: Namespace) -> int:
    seen = place.look()
    queue, unknown = cluster.queue(place, seen)
    rows = _rows(seen, queue)
    if args.json:
        common.emit_json(
            {
                "cluster": seen.name,
                "state": seen.state.casefold() or "off",
                "target": seen.target.casefold() if seen.is_changing else None,
                "slurm": {"known": queue is not None, "why": unknown or None},
                "nodes": rows,
            }
        )
        return OK
    from ..words.counts import counted
    from ..words.terminal import columns, printable

    if unknown:
        cluster.say(f"Slurm's states are not known: {printable(unknown)}")
    keys = ("name", "partition", "state", "slurm", "instance", "reason")
    cells = [[printable(str(row[key])) if row[key] else None for key in keys] for row in rows]
    head = f"{seen.name}: {seen.way}, {counted(len(rows), 'node')}\n"
    common.emit(head + (columns([_HEAD, *cells]) if cells else ""))
    return OK


def _rows(seen: Cluster, queue: Queue | None) -> list[dict[str, object]]:
    """Those of CycleCloud, then those that only Slurm takes for running."""
    from ..results.hostlist import natural_key

    by_slurm = {node.name: node for node in queue.nodes} if queue else {}
    there = sorted((node for node in seen.listed if node.is_there), key=lambda node: natural_key(node.name))
    rows = [_row(node, by_slurm.get(node.name)) for node in there]
    others = by_slurm.keys() - {node.name for node in there}
    return rows + [_row(None, node) for node in by_slurm.values() if node.name in others and not node.is_down]


def _row(node: Node | None, slurm: SlurmNode | None) -> dict[str, object]:
    # A scheduler or a login node is of none.
    partition = ",".join(slurm.partitions) if slurm else node.array if node else ""
    reasons = [node.message if node else "", slurm.reason if slurm else ""]
    return {
        "name": node.name if node else slurm.name if slurm else "",
        "partition": partition or None,
        "state": node.status if node else None,
        "target": node.target or None if node else None,
        "failed": bool(node and node.has_failed),
        "slurm": slurm.shown if slurm else None,
        "instance": node.instance or None if node else None,
        "address": node.address or None if node else None,
        "reason": "; ".join(dict.fromkeys(filter(None, reasons))) or None,
    }
