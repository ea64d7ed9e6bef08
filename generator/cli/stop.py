"""`cycleforge stop`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from ..errors import OK, ProblemsFound
from . import azure, common

if TYPE_CHECKING:
    from ..operate.cluster import Place
    from ..operate.lifecycle import Ending

DESCRIPTION = """\
Stop a cluster: all its VMs are deleted, also the scheduler's. Server, locker and file systems stay.

It lists the jobs that would end and what would be lost, asks, stops the cluster once, and reads the state back. With
--yes it does not ask; if jobs run, or that is unknown, it then needs --end-jobs as well.
"""
_SHOWN = 30


def add_arguments(parser: ArgumentParser) -> None:
    azure.add_cluster_arguments(parser, changes=True)
    parser.add_argument("--end-jobs", action="store_true", help="with --yes: also when jobs run, or that is unknown")


def run(args: Namespace) -> int:
    from ..operate import lifecycle

    with azure.cluster_at(args) as place:
        if args.print:
            lines = place.lines(["squeue", "--states=running"], host="scheduler")
            common.emit("\n".join([*lines, *place.lines(["cyclecloud", "terminate_cluster", place.name])]))
            return OK
        ending = lifecycle.ending(place)
        if ending.cluster.is_started and not _agreed(place, ending, args):
            return ProblemsFound.exit_code
        # The question may have been open for long: what was shown must still be true.
        found = lifecycle.stop(place, ending, is_old=ending.cluster.is_started and not args.yes)
        way = found.cluster.way
        if found.is_done:
            common.emit(f"{place.name}: {way}; its VMs cost money until `cycleforge nodes {args.name}` shows none")
        else:
            how = f"is being stopped ({way})" if found.cluster.is_changing else f"is {way} already"
            common.emit(f"{place.name} {how}; nothing was done")
    return OK


def _agreed(place: Place, ending: Ending, args: Namespace) -> bool:
    common.emit(_shown(place, ending))
    unknown = ending.unknown
    in_the_way = f"it is unknown whether jobs run: {unknown}" if unknown else "jobs run" if ending.running else ""
    if args.yes and in_the_way and not args.end_jobs:
        raise ProblemsFound(f"{place.name} was not stopped, because {in_the_way}", "--yes --end-jobs stops it")
    return args.yes or azure.confirmed(f"stop {place.name}?", "give --yes")


def _shown(place: Place, ending: Ending) -> str:
    from ..words.counts import counted, first, first_lines
    from ..words.terminal import columns, printable

    there = [node.name for node in ending.cluster.listed if node.is_there]
    lines = [f"{counted(len(there), 'VM')} would be deleted: {printable(first(there, 8))}"] if there else []
    running = ending.running
    if ending.unknown:
        lines.append(f"jobs: unknown, because {printable(ending.unknown)}")
    elif running:
        rows = [(job.id, job.user, job.partition, job.state, job.time, job.nodes, job.name) for job in running]
        table = columns([("JOB", "USER", "PARTITION", "STATE", "TIME", "NODES", "NAME"),
                         *(tuple(map(printable, row)) for row in rows)])  # fmt: skip
        head, *jobs = table.splitlines()
        rest = "`squeue` on the scheduler lists all"
        lines += [f"{counted(len(running), 'job')} would end:", head, *first_lines(jobs, _SHOWN, rest)]
    else:
        lines.append("no job runs")
    waiting = len(ending.queue.jobs) - len(running) if ending.queue else 0
    if waiting:
        lines.append(f"{counted(waiting, 'job')} would wait until the cluster is started again")
    stays = [mount.path for mount in place.plan.all_mounts]
    lines.append(f"lost: what running jobs have not saved, and the VMs' own disks; {', '.join(stays)} stay")
    return "\n".join(lines)
