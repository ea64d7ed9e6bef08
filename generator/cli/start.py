"""`cycleforge start`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from ..errors import OK, ProblemsFound
from . import azure, common

DESCRIPTION = """\
Start a cluster: its scheduler and its login nodes. Nodes of partitions start when a job needs them.

It asks first, starts it once, and reads the state back. A cluster that runs, or that someone else is starting, is left
alone. `cyclecloud` on the server starts it, through ssh. Without ssh it is the site itself, if it can be reached and
CYCLECLOUD_ADMIN_PASSWORD is exported, else Azure's run command, which is slower.
"""


def add_arguments(parser: ArgumentParser) -> None:
    azure.add_cluster_arguments(parser, changes=True)


def run(args: Namespace) -> int:
    from ..operate import lifecycle

    with azure.cluster_at(args) as place:
        if args.print:
            common.emit("\n".join(place.lines(["cyclecloud", "start_cluster", place.name])))
            return OK
        seen = lifecycle.startable(place)
        if not seen.is_started:
            slurm = place.slurm
            common.emit(f"scheduler: {slurm.scheduler.hardware.name}")
            if slurm.login.count:
                common.emit(f"login nodes: {slurm.login.count} x {slurm.login.hardware.name}")
            if not args.yes and not azure.confirmed(
                f"start {place.name}? its VMs cost money from then on", "give --yes"
            ):
                return ProblemsFound.exit_code
        # The question may have been open for long, and someone else faster.
        found = lifecycle.start(place, seen if args.yes or seen.is_started else None)
        way = found.cluster.way
        if found.is_done:
            common.emit(f"{place.name}: {way}; `cycleforge status {args.name} --watch` shows the progress")
        else:
            how = f"is being started ({way})" if found.cluster.is_changing else f"is {way} already"
            common.emit(f"{place.name} {how}; nothing was done")
    return OK
