"""`cycleforge start`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from ..errors import OK, ProblemsFound
from . import azure, cluster, common

if TYPE_CHECKING:
    from ..cyclecloud.cluster import Cluster

DESCRIPTION = """\
Start a cluster: its scheduler and its login nodes. Nodes of partitions start when a job needs them.

It asks before, does it once, and reads back what the server says. A cluster that runs, or that someone else is
starting, is left alone. `cyclecloud` on the server does it, through ssh. Without ssh the site itself is asked to, where
CYCLECLOUD_ADMIN_PASSWORD is exported and it can be reached; otherwise Azure's run command, which is slower.
"""


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the flags."""
    cluster.add_arguments(parser, changes=True)


def run(args: Namespace) -> int:
    """Look, ask, start, read back."""
    place = cluster.found(args)
    if args.print:
        common.emit("\n".join(place.lines(["cyclecloud", "start_cluster", place.name])))
        return OK
    with cluster.refusals(place):
        return _start(place, args)


def _start(place: cluster.Place, args: Namespace) -> int:
    from ..cyclecloud.requests import undocumented

    if _is_begun(place, place.look()):
        return OK
    slurm = place.slurm
    common.emit(f"scheduler: {slurm.scheduler.hardware.name}")
    if slurm.login.count:
        common.emit(f"login nodes: {slurm.login.count} x {slurm.login.hardware.name}")
    if not args.yes:
        if not azure.confirmed(f"start {place.name}? its VMs cost from then on", "give --yes"):
            return ProblemsFound.exit_code
        # The question may have stood for long, and somebody else be faster.
        if _is_begun(place, place.look()):
            return OK
    seen = cluster.changed_once(
        place, ["start_cluster", place.name], undocumented.start(place.name), lambda now: now.is_started
    )
    common.emit(f"{place.name}: {seen.way}; `cycleforge status {args.name} --watch` shows how far it is")
    return OK


def _is_begun(place: cluster.Place, seen: Cluster) -> bool:
    """Whether somebody has started it, which is said then; raises ProblemsFound while it is being ended."""
    if seen.is_started:
        how = f"is being started ({seen.way})" if seen.is_changing else f"is {seen.way} already"
        common.emit(f"{place.name} {how}; nothing was done")
        return True
    if seen.is_changing:
        raise ProblemsFound(
            f"{place.name} is being ended ({seen.way})",
            "start it when that is done",
        )
    return False
