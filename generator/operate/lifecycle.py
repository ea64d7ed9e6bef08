"""Start, stop, retry and scale: each looks first, makes the change once, and reads the state back."""

from __future__ import annotations

from msgspec import Struct

from ..cyclecloud import requests, slurm
from ..cyclecloud.cluster import Cluster, Node
from ..cyclecloud.scaling import Scaling, are_in_place, decide
from ..cyclecloud.shell import Unreachable
from ..cyclecloud.slurm import Job, Queue
from ..errors import AzureRefused, ProblemsFound
from ..words.terminal import printable
from .cluster import AGAIN, Place


class Outcome(Struct, frozen=True):
    cluster: Cluster
    is_done: bool
    """False: it was so already, and nothing was done."""


def startable(place: Place) -> Cluster:
    """Return the cluster. Raises ProblemsFound while it is being stopped."""
    seen = place.look()
    if seen.is_changing and not seen.is_started:
        raise ProblemsFound(f"{place.name} is being stopped ({seen.way})", "start it when that is done")
    return seen


def start(place: Place, seen: Cluster | None = None) -> Outcome:
    """Start scheduler and login nodes. `seen`: as `startable` has just found it."""
    seen = seen or startable(place)
    if seen.is_started:
        return Outcome(seen, is_done=False)
    call = requests.start(place.name)
    return Outcome(place.changed_once(["start_cluster", place.name], call, lambda now: now.is_started), is_done=True)


class Ending(Struct, frozen=True):
    cluster: Cluster
    queue: Queue | None
    unknown: str
    """Why the jobs are unknown."""

    @property
    def running(self) -> list[Job]:
        return [job for job in self.queue.jobs if not job.is_pending] if self.queue else []


def ending(place: Place) -> Ending:
    """Return the cluster and its jobs; one that is not started has none."""
    seen = place.look()
    return Ending(seen, *(place.queue(seen) if seen.is_started else (None, "")))


def stop(place: Place, shown: Ending, *, is_old: bool) -> Outcome:
    """Stop a cluster: its VMs are deleted. Raises ProblemsFound when jobs run that were not `shown`.

    `is_old`: the state may have changed since, and is read again.
    """
    now = ending(place) if is_old else shown
    if not now.cluster.is_started:
        return Outcome(now.cluster, is_done=False)
    begun = {job.id for job in now.running} - {job.id for job in shown.running}
    if begun:
        text = f"nothing was stopped: {', '.join(sorted(begun))} began while the question was open"
        raise ProblemsFound(text, "run the same command again")
    call = requests.terminate(place.name)
    seen = place.changed_once(["terminate_cluster", place.name], call, lambda now: not now.is_started)
    return Outcome(seen, is_done=True)


def retry(place: Place, failed: tuple[Node, ...] = ()) -> list[Node] | None:
    """Let CycleCloud retry failed nodes once. Returns the nodes as they are then; None when none had failed.

    `failed`: as just found. A node may fail again at once, so no state counts as a failure of the verb.
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


class Wanted(Struct, frozen=True):
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
    """Tell Slurm once, and read the state back. Raises AzureRefused."""
    lost = False
    try:
        slurm.set_power(place.scheduler, wanted.queue, wanted.names, up=bool(wanted.scaling.up))
    except Unreachable as error:
        lost = True
        place.say(f"{printable(error.reason)}; checking whether it arrived")
    if not are_in_place(slurm.look(place.scheduler).nodes, wanted.scaling):
        raise AzureRefused(
            "it is unknown whether it arrived" if lost else "Slurm accepted it, but has not begun with every node",
            AGAIN,
        )
