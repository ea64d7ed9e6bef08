"""`cycleforge nodes`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from ..errors import OK
from . import cluster, common

DESCRIPTION = """\
List the nodes of a cluster that have a VM, or should have one: partition, what CycleCloud and Slurm say of them,
instance, and the reason of a failure or a drain. Changes nothing.

Where CYCLECLOUD_ADMIN_PASSWORD is exported, the site itself is asked; otherwise `cyclecloud` on its server, through ssh
and with your key, or where no network path leads there, through Azure's run command.
"""
_HEAD = ("NODE", "PARTITION", "STATE", "SLURM", "INSTANCE", "REASON")


def add_arguments(parser: ArgumentParser) -> None:
    cluster.add_arguments(parser, changes=False)
    common.add_json(parser)


def run(args: Namespace) -> int:
    from ..operate.nodes import listing_lines, nodes

    with cluster.at(args) as place:
        if args.print:
            common.emit("\n".join(listing_lines(place)))
            return OK
        found = nodes(place)
    seen, rows = found.cluster, found.rows
    if args.json:
        common.emit_json(
            {
                "cluster": seen.name,
                "state": seen.state.casefold() or "off",
                "target": seen.target.casefold() if seen.is_changing else None,
                "slurm": {"known": found.has_queue, "why": found.unknown or None},
                "nodes": rows,
            }
        )
        return OK
    from ..words.counts import counted
    from ..words.terminal import columns, printable

    if found.unknown:
        cluster.say(f"Slurm's states are not known: {printable(found.unknown)}")
    keys = ("name", "partition", "state", "slurm", "instance", "reason")
    cells = [[printable(str(row[key])) if row[key] else None for key in keys] for row in rows]
    head = f"{seen.name}: {seen.way}, {counted(len(rows), 'node')}\n"
    common.emit(head + (columns([_HEAD, *cells]) if cells else ""))
    return OK
