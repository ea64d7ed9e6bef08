"""How long the steps of a job may take at most, on how many nodes of which partition."""

from __future__ import annotations

from ..records import record
from ..words.slurm_time import whole_minutes
from .types import JobPlan, NodeArrayPlan, Plan


@record
class StepHours:
    """One step of a job until its time limit; it may end much earlier."""

    title: str
    array: NodeArrayPlan
    """The partition as this job sees it, with one VM size."""
    nodes: int
    hours: float

    @property
    def gpus(self) -> int:
        """Of all its nodes."""
        return self.nodes * self.array.hardware.gpu_count

    @property
    def node_hours(self) -> float:
        """Nodes times hours."""
        return self.nodes * self.hours

    @property
    def gpu_hours(self) -> float:
        """GPUs times hours, used or not."""
        return self.gpus * self.hours


def hours_of(plan: Plan, job: JobPlan) -> tuple[StepHours, ...]:
    """The steps of a job of this plan, in order; the last one is the job itself."""
    assert plan.slurm is not None, "a plan with jobs has a cluster"
    places = {
        (each.partition, each.constraint): each for array in plan.slurm.node_arrays for each in array.of_each_size
    }
    steps = []
    for step in job.steps:
        options = dict(step.options)
        array = places[str(options["partition"]), options.get("constraint") or None]  # type: ignore[index]
        hours = whole_minutes(str(options["time"])) / 60
        steps.append(StepHours(step.title, array, int(options["nodes"]), hours))
    return tuple(steps)
