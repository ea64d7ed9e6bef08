"""`cycleforge scale`."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from ..errors import OK, AzureRefused, CannotRead, ProblemsFound
from . import azure, cluster, common

if TYPE_CHECKING:
    from ..cyclecloud.scaling import Scaling
    from ..cyclecloud.slurm import Queue, SlurmNode

DESCRIPTION = """\
Start or end nodes of a partition, so that N of them have a VM. Slurm does it, as it does for jobs: with a higher number
it powers nodes up, with a lower one it powers down idle nodes, which are named before. A node with a job is never
ended; drained nodes and those that someone keeps stay and are named.

Where Slurm saves power, it ends a node that stays idle by itself.
"""


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the flags."""
    cluster.add_arguments(parser, changes=True)
    parser.add_argument("partition", metavar="PARTITION", help="name of the partition")
    parser.add_argument("number", metavar="N", help="how many of its nodes shall have a VM")


def run(args: Namespace) -> int:
    """Look, ask, tell Slurm, read back."""
    if not args.number.isdecimal():
        raise CannotRead(f"'{args.number}' is not a number of nodes", "a whole number from 0")
    place = cluster.found(args)
    with cluster.refusals(place):
        return _scale(place, args)


def _scale(place: cluster.Place, args: Namespace) -> int:
    from ..cyclecloud import slurm
    from ..cyclecloud.scaling import decide
    from ..results.hostlist import compress

    queue = slurm.look(place.scheduler)
    scaling = decide(queue, args.partition, int(args.number))
    cluster.say(_shown(args.partition, scaling, queue))
    names, up = (scaling.up, True) if scaling.up else (scaling.down, False)
    if not names:
        missed = scaling.will_have != int(args.number)
        common.emit(f"{args.partition}: {scaling.has} nodes; nothing was done")
        return ProblemsFound.exit_code if missed else OK
    if args.print:
        common.emit(shlex.join([*place.scheduler.line(), slurm.power_line(queue, names, up=up)]))
        return OK
    question = f"{'start' if up else 'end'} {compress(names)}?"
    if not args.yes:
        if not azure.confirmed(question, "give --yes"):
            return ProblemsFound.exit_code
        # The question may have stood for long: what was shown must be what is still true.
        queue = slurm.look(place.scheduler)
        now = decide(queue, args.partition, int(args.number))
        if (now.up, now.down) != (scaling.up, scaling.down):
            cluster.say(_shown(args.partition, now, queue))
            if now.has == int(args.number):
                common.emit(f"{args.partition}: {now.has} nodes; someone else was faster, and nothing was done")
                return OK
            raise ProblemsFound(
                f"nothing was done: {args.partition} changed while it was asked", "type the same command again"
            )
    _once(place, queue, scaling)
    common.emit(f"{args.partition}: {scaling.has} -> {scaling.will_have} nodes")
    return OK if scaling.will_have == int(args.number) else ProblemsFound.exit_code


def _once(place: cluster.Place, queue: Queue, scaling: Scaling) -> None:
    """Tell Slurm once, and read back what it has made of it."""
    from ..cyclecloud import slurm
    from ..cyclecloud.scaling import are_in_place
    from ..cyclecloud.shell import Unreachable
    from ..words.terminal import printable

    lost = False
    try:
        slurm.set_power(place.scheduler, queue, scaling.up or scaling.down, up=bool(scaling.up))
    except Unreachable as error:
        lost = True
        cluster.say(f"{printable(error.reason)}; looking whether it arrived")
    if not are_in_place(slurm.look(place.scheduler).nodes, scaling):
        raise AzureRefused(
            "it may have arrived or not" if lost else "Slurm took it, and has not begun with every node", cluster.AGAIN
        )


def _shown(partition: str, scaling: Scaling, queue: Queue) -> str:
    from ..results.hostlist import compress
    from ..words.counts import counted
    from ..words.terminal import printable

    lines = [f"{partition}: {counted(scaling.has, 'node')} with a VM"]
    for words, nodes in (
        ("have jobs", scaling.busy), ("are drained, and cost", scaling.drained),
        ("are kept (SuspendExcNodes, KeepAlive)", scaling.kept), ("are neither idle nor at work", scaling.other),
    ):  # fmt: skip
        if nodes:
            lines.append(f"  {words}: {', '.join(map(_named, nodes))}")
    if scaling.up:
        lines.append(f"  would start: {compress(scaling.up)}")
        seconds = queue.settings.get("SuspendTime", "")
        if queue.saves_power:
            lines.append(f"  Slurm ends a node that stays idle for {seconds}")
    if scaling.down:
        lines.append(f"  would go, idle: {compress(scaling.down)}")
    return "\n".join(map(printable, lines))


def _named(node: SlurmNode) -> str:
    return f"{node.name} ({node.reason or node.shown})" if node.is_drained or node.is_unfit else node.name
