"""`cycleforge start`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from ..errors import OK, ProblemsFound
from . import azure, cluster, common

DESCRIPTION = """\
Start a cluster: its scheduler and its login nodes. Nodes of partitions start when a job needs them.

It asks before, does it once, and reads back what the server says. A cluster that runs, or that someone else is
starting, is left alone. `cyclecloud` on the server does it, through ssh. Without ssh the site itself is asked to, where
CYCLECLOUD_ADMIN_PASSWORD is exported and it can be reached; otherwise Azure's run command, which is slower.
"""


def add_arguments(parser: ArgumentParser) -> None:
    cluster.add_arguments(parser, changes=True)


def run(args: Namespace) -> int:
    from ..operate import lifecycle

    with cluster.at(args) as place:
        if args.print:
            common.emit("\n".join(place.lines(["cyclecloud", "start_cluster", place.name])))
            return OK
        seen = lifecycle.startable(place)
        if not seen.is_started:
            slurm = place.slurm
            common.emit(f"scheduler: {slurm.scheduler.hardware.name}")
            if slurm.login.count:
                common.emit(f"login nodes: {slurm.login.count} x {slurm.login.hardware.name}")
            if not args.yes and not azure.confirmed(f"start {place.name}? its VMs cost from then on", "give --yes"):
                return ProblemsFound.exit_code
        # The question may have stood for long, and somebody else be faster.
        found = lifecycle.start(place, seen if args.yes or seen.is_started else None)
        way = found.cluster.way
        if found.is_done:
            common.emit(f"{place.name}: {way}; `cycleforge status {args.name} --watch` shows how far it is")
        else:
            how = f"is being started ({way})" if found.cluster.is_changing else f"is {way} already"
            common.emit(f"{place.name} {how}; nothing was done")
    return OK
