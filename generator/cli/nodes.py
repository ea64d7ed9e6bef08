"""`cycleforge nodes`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from ..errors import OK
from . import azure, common

DESCRIPTION = """\
List the nodes of a cluster that have a VM, or should have one: partition, states in CycleCloud and Slurm, instance, and
the reason of a failure or a drain. Nothing is changed.

If CYCLECLOUD_ADMIN_PASSWORD is exported, the site itself is asked; otherwise `cyclecloud` on its server, through ssh
with your key, or, if the network does not lead there, through Azure's run command.
"""
_HEAD = ("NODE", "PARTITION", "STATE", "SLURM", "INSTANCE", "REASON")


def add_arguments(parser: ArgumentParser) -> None:
    azure.add_cluster_arguments(parser, changes=False)
    common.add(parser, "--json")


def run(args: Namespace) -> int:
    from ..operate.nodes import listing_lines, nodes

    with azure.cluster_at(args) as place:
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
        common.say(f"Slurm's states are unknown: {printable(found.unknown)}")
    keys = ("name", "partition", "state", "slurm", "instance", "reason")
    cells = [[printable(str(row[key])) if row[key] else None for key in keys] for row in rows]
    head = f"{seen.name}: {seen.way}, {counted(len(rows), 'node')}\n"
    common.emit(head + (columns([_HEAD, *cells]) if cells else ""))
    return OK
