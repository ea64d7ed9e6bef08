"""Start, stop, retry and scale: each looks first, does it once, and reads back what is true."""

from __future__ import annotations

from ..cyclecloud import requests, slurm
from ..cyclecloud.cluster import Cluster, Node
from ..cyclecloud.scaling import Scaling, are_in_place, decide
from ..cyclecloud.shell import Unreachable
from ..cyclecloud.slurm import Job, Queue
from ..errors import AzureRefused, ProblemsFound
from ..records import record
from ..words.terminal import printable
from .cluster import AGAIN, Place


@record
class Outcome:
    """What a change has come to."""

    cluster: Cluster
    is_done: bool
    """False: it was so before, and nothing was done."""


def startable(place: Place) -> Cluster:
    """The cluster; raises ProblemsFound while it is being ended."""
    seen = place.look()
    if seen.is_changing and not seen.is_started:
        raise ProblemsFound(f"{place.name} is being ended ({seen.way})", "start it when that is done")
    return seen


def start(place: Place, seen: Cluster | None = None) -> Outcome:
    """Start scheduler and login nodes. `seen`: as `startable` has just found it."""
    seen = seen or startable(place)
    if seen.is_started:
        return Outcome(seen, is_done=False)
    call = requests.start(place.name)
    return Outcome(place.changed_once(["start_cluster", place.name], call, lambda now: now.is_started), is_done=True)


@record
class Ending:
    cluster: Cluster
    queue: Queue | None
    unknown: str
    """Why it is not known which jobs there are."""

    @property
    def running(self) -> list[Job]:
        return [job for job in self.queue.jobs if not job.is_pending] if self.queue else []


def ending(place: Place) -> Ending:
    """The cluster and its jobs; nothing is asked of one that does not run."""
    seen = place.look()
    return Ending(seen, *(place.queue(seen) if seen.is_started else (None, "")))


def stop(place: Place, shown: Ending, *, is_old: bool) -> Outcome:
    """End all VMs of a cluster. Raises ProblemsFound where jobs run that were not `shown`.

    `is_old`: what is true may be something else by now, and is looked at again.
    """
    now = ending(place) if is_old else shown
    if not now.cluster.is_started:
        return Outcome(now.cluster, is_done=False)
    begun = {job.id for job in now.running} - {job.id for job in shown.running}
    if begun:
        text = f"nothing was stopped: {', '.join(sorted(begun))} began while it was asked"
        raise ProblemsFound(text, "type the same command again")
    call = requests.terminate(place.name)
    seen = place.changed_once(["terminate_cluster", place.name], call, lambda now: not now.is_started)
    return Outcome(seen, is_done=True)


def retry(place: Place, failed: tuple[Node, ...] = ()) -> list[Node] | None:
    """Let CycleCloud try again what has failed, once; the nodes as they are then, None where none has failed.

    `failed`: as just found. A node may fail again at once: no state is a failure of the verb.
    """
    failed = failed or place.look().failed
    if not failed:
        return None
    names = {node.name for node in failed}

    def is_begun(now: Cluster) -> bool:
        return any(node.name in names and not node.has_failed for node in now.listed)

    call = requests.RETRY(cluster=place.name)
    again = place.changed_once(["retry", place.name], call, is_begun, may_stay=True)
    return [node for node in again.listed if node.name in names]


@record
class Wanted:
    """So many nodes of a partition with a VM, and what Slurm would do for it."""

    partition: str
    number: int
    queue: Queue
    scaling: Scaling

    @property
    def names(self) -> tuple[str, ...]:
        return self.scaling.up or self.scaling.down

    @property
    def line(self) -> str:
        return slurm.power_line(self.queue, self.names, up=bool(self.scaling.up))


def scaling(place: Place, partition: str, number: int) -> Wanted:
    queue = slurm.look(place.scheduler)
    return Wanted(partition, number, queue, decide(queue, partition, number))


def scale(place: Place, wanted: Wanted) -> None:
    """Tell Slurm once, and read back what it has made of it. Raises AzureRefused."""
    lost = False
    try:
        slurm.set_power(place.scheduler, wanted.queue, wanted.names, up=bool(wanted.scaling.up))
    except Unreachable as error:
        lost = True
        place.say(f"{printable(error.reason)}; looking whether it arrived")
    if not are_in_place(slurm.look(place.scheduler).nodes, wanted.scaling):
        raise AzureRefused(
            "it may have arrived or not" if lost else "Slurm took it, and has not begun with every node", AGAIN
        )
