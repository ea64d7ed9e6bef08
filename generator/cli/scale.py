"""`cycleforge scale`."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from ..errors import OK, CannotRead, ProblemsFound
from . import azure, common

if TYPE_CHECKING:
    from ..operate.lifecycle import Wanted
    from ..operate.nodes import SlurmNode

DESCRIPTION = """\
Start or stop nodes of a partition, so that N of them have a VM. Slurm does it, as it does for jobs: for a higher number
it powers nodes up, for a lower one it powers down idle nodes, which are listed first. A node with a job is never
stopped; drained nodes and those that someone keeps stay and are listed.

If power saving is on, Slurm stops a node that stays idle by itself.
"""


def add_arguments(parser: ArgumentParser) -> None:
    azure.add_cluster_arguments(parser, changes=True)
    parser.add_argument("partition", metavar="PARTITION", help="name of the partition")
    parser.add_argument("number", metavar="N", help="number of its nodes that shall have a VM")


def run(args: Namespace) -> int:
    from ..operate import lifecycle

    if not args.number.isdecimal():
        raise CannotRead(f"'{args.number}' is not a number of nodes", "use a whole number, 0 or more")
    with azure.cluster_at(args) as place:
        wanted = lifecycle.scaling(place, args.partition, int(args.number))
        scaling = wanted.scaling
        common.say(_shown(wanted))
        reached = OK if scaling.will_have == wanted.number else ProblemsFound.exit_code
        if not wanted.names:
            common.emit(f"{args.partition}: {scaling.has} nodes; nothing was done")
            return reached
        if args.print:
            common.emit(shlex.join([*place.scheduler.line(), wanted.line]))
            return OK
        if not args.yes:
            if not _agreed(wanted):
                return ProblemsFound.exit_code
            # The question may have been open for long: what was shown must still be true.
            now = lifecycle.scaling(place, args.partition, wanted.number)
            if (now.scaling.up, now.scaling.down) != (scaling.up, scaling.down):
                return _changed(now)
            wanted = now
        lifecycle.scale(place, wanted)
    common.emit(f"{args.partition}: {scaling.has} -> {scaling.will_have} nodes")
    return reached


def _agreed(wanted: Wanted) -> bool:
    from ..results.hostlist import compress

    return azure.confirmed(f"{'start' if wanted.scaling.up else 'stop'} {compress(wanted.names)}?", "give --yes")


def _changed(now: Wanted) -> int:
    common.say(_shown(now))
    if now.scaling.has == now.number:
        common.emit(f"{now.partition}: {now.scaling.has} nodes; someone else was faster; nothing was done")
        return OK
    raise ProblemsFound(
        f"nothing was done: {now.partition} changed while the question was open", "run the same command again"
    )


def _shown(wanted: Wanted) -> str:
    from ..results.hostlist import compress
    from ..words.counts import counted
    from ..words.terminal import printable

    scaling = wanted.scaling
    lines = [f"{wanted.partition}: {counted(scaling.has, 'node')} with a VM"]
    for words, nodes in (
        ("have jobs", scaling.busy), ("are drained, and cost money", scaling.drained),
        ("are kept (SuspendExcNodes, KeepAlive)", scaling.kept), ("are neither idle nor at work", scaling.other),
    ):  # fmt: skip
        if nodes:
            lines.append(f"  {words}: {', '.join(map(_named, nodes))}")
    if scaling.up:
        lines.append(f"  would start: {compress(scaling.up)}")
        seconds = wanted.queue.settings.get("SuspendTime", "")
        if wanted.queue.saves_power:
            lines.append(f"  Slurm stops a node that stays idle for {seconds}")
    if scaling.down:
        lines.append(f"  would stop, idle: {compress(scaling.down)}")
    return "\n".join(map(printable, lines))


def _named(node: SlurmNode) -> str:
    return f"{node.name} ({node.reason or node.shown})" if node.is_drained or node.is_unfit else node.name
