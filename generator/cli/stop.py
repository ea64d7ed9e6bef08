"""`cycleforge stop`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from ..errors import OK, ProblemsFound
from . import azure, cluster, common

if TYPE_CHECKING:
    from ..cyclecloud.cluster import Cluster
    from ..cyclecloud.slurm import Job, Queue

DESCRIPTION = """\
Stop a cluster: all its VMs are deleted, the scheduler's among them. Server, locker and file systems stay.

It lists the jobs that would end and says what is lost, asks, does it once, and reads back what the server says. With
--yes nobody is asked. Where jobs run, or nobody can say whether any do, it then needs --end-jobs as well.
"""
_SHOWN = 30


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the flags."""
    cluster.add_arguments(parser, changes=True)
    parser.add_argument("--end-jobs", action="store_true", help="with --yes: also when jobs run, or nobody knows")


def run(args: Namespace) -> int:
    """Look, ask, stop, read back."""
    place = cluster.found(args)
    if args.print:
        lines = place.lines(["squeue", "--states=running"], host="scheduler")
        common.emit("\n".join([*lines, *place.lines(["cyclecloud", "terminate_cluster", place.name])]))
        return OK
    with cluster.refusals(place):
        return _stop(place, args)


def _stop(place: cluster.Place, args: Namespace) -> int:
    from ..cyclecloud.requests import undocumented

    seen = place.look()
    if _is_begun(place, seen):
        return OK
    queue, unknown = cluster.queue(place, seen)
    common.emit(_shown(place, seen, queue, unknown))
    in_the_way = f"it is not known whether jobs run: {unknown}" if unknown else "jobs run" if _running(queue) else ""
    if args.yes and in_the_way and not args.end_jobs:
        raise ProblemsFound(f"{place.name} was not stopped, because {in_the_way}", "--yes --end-jobs stops it")
    if not args.yes:
        if not azure.confirmed(f"stop {place.name}?", "give --yes"):
            return ProblemsFound.exit_code
        # The question may have stood for long: what was shown must be what is still true.
        seen = place.look()
        if _is_begun(place, seen):
            return OK
        _must_be_the_same(queue, cluster.queue(place, seen)[0])
    seen = cluster.changed_once(
        place, ["terminate_cluster", place.name], undocumented.terminate(place.name), lambda now: not now.is_started
    )
    common.emit(f"{place.name}: {seen.way}; VMs cost until `cycleforge nodes {args.name}` shows none")
    return OK


def _is_begun(place: cluster.Place, seen: Cluster) -> bool:
    """Whether somebody has stopped it, which is said then."""
    if seen.is_started:
        return False
    how = f"is being stopped ({seen.way})" if seen.is_changing else f"is {seen.way} already"
    common.emit(f"{place.name} {how}; nothing was done")
    return True


def _must_be_the_same(shown: Queue | None, now: Queue | None) -> None:
    """Raises ProblemsFound where jobs run that were not shown."""
    begun = {job.id for job in _running(now)} - {job.id for job in _running(shown)}
    if begun:
        raise ProblemsFound(
            f"nothing was stopped: {', '.join(sorted(begun))} began while it was asked", "type the same command again"
        )


def _running(queue: Queue | None) -> list[Job]:
    return [job for job in queue.jobs if not job.is_pending] if queue else []


def _shown(place: cluster.Place, seen: Cluster, queue: Queue | None, unknown: str) -> str:
    """What ends, and what is lost with it."""
    from ..words.counts import counted, first, first_lines
    from ..words.terminal import columns, printable

    there = [node.name for node in seen.listed if node.is_there]
    lines = [f"{counted(len(there), 'VM')} would be deleted: {printable(first(there, 8))}"] if there else []
    running = _running(queue)
    if unknown:
        lines.append(f"jobs: not known, because {printable(unknown)}")
    elif running:
        rows = [(job.id, job.user, job.partition, job.state, job.time, job.nodes, job.name) for job in running]
        table = columns([("JOB", "USER", "PARTITION", "STATE", "TIME", "NODES", "NAME"),
                         *(tuple(map(printable, row)) for row in rows)])  # fmt: skip
        head, *jobs = table.splitlines()
        rest = "`squeue` on the scheduler lists all"
        lines += [f"{counted(len(running), 'job')} would end:", head, *first_lines(jobs, _SHOWN, rest)]
    else:
        lines.append("no job runs")
    waiting = len(queue.jobs) - len(running) if queue else 0
    if waiting:
        lines.append(f"{counted(waiting, 'job')} would wait until the cluster is started again")
    stays = [mount.path for mount in place.plan.all_mounts]
    lines.append(f"lost: what running jobs have not saved, and what is on the VMs' own disks; {', '.join(stays)} stay")
    return "\n".join(lines)
