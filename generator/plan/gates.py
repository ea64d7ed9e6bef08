"""The gates of `prove.sh` on each partition: which job folder each one runs, or why it cannot be proven there."""

from __future__ import annotations

from msgspec import Struct

from ..recipes import Recipe, recipe
from ..recipes.gates import Gate, gates
from .cluster import SlurmPlan
from .jobs import JobPlan
from .names import size_part
from .nodes import NodeArrayPlan

PROGRAM, LIBRARY, TABLE = "prove.sh", "prove.d", "prove.tsv"
"""The files beside the folders of the jobs."""
BESIDE_JOBS = (PROGRAM, LIBRARY, TABLE, "prove.state", "runs", "lib")
"""Names that no job can have: also those of what `prove.sh` and the jobs make there on the scheduler."""


class SetupStep(Struct, frozen=True):
    """A step of a gate's job before the job itself; its own batch file says where it runs."""

    file: str
    minutes: int
    nodes: int
    gpus_per_node: int
    """GPUs that are occupied on each node while it runs."""


class GatePlan(Struct, frozen=True):
    """One gate on one place: a partition, or one VM size of a partition that has several."""

    name: str
    level: str
    recipe: str
    partition: str
    constraint: str | None
    """The feature that a job asks for to get the VM size; None: the partition has one size."""
    vm_size: str
    job: str | None
    """The folder below `jobs/`; None: `reason` says why there is none."""
    min_nodes: int
    gpus_per_node: int
    """GPUs that are occupied on each node while the gate runs, whether or not its job uses them."""
    minutes: int
    """The job's time limit."""
    finder: str | None
    settings: tuple[tuple[str, str], ...]
    what: str
    reason: str | None
    lacks_job: bool
    """A job of its recipe would run here, and the deployment has none."""
    setup: tuple[SetupStep, ...]
    """Steps of the job before the job itself: run once, in this order, before the gate's first run."""


def gate_plans(slurm: SlurmPlan, jobs: tuple[JobPlan, ...]) -> tuple[GatePlan, ...]:
    """Every gate of every place; places with GPUs first, because the first one is what `prove.sh` proves by itself."""
    places = [each for array in slurm.node_arrays for each in array.of_each_size]
    places.sort(key=lambda place: not place.hardware.gpu_count)
    found = _Jobs(jobs)
    return tuple(_gate_plan(gate, place, found, places) for place in places for gate in gates())


class _Jobs:
    """The jobs of a deployment by what a gate asks for: a thousand partitions ask for thirteen each."""

    def __init__(self, jobs: tuple[JobPlan, ...]) -> None:
        self._at: dict[tuple[str, str, str], JobPlan] = {}
        self._anywhere: dict[str, JobPlan] = {}
        for job in jobs:
            self._at.setdefault((job.recipe, job.partition, job.vm_size), job)
            if len(job.steps) == 1 and _runs_anywhere(job):
                self._anywhere.setdefault(job.recipe, job)

    def of(self, wanted: Recipe, place: NodeArrayPlan) -> JobPlan | None:
        """The recipe's job on the place; else one of another place that asks for no kind of node, as the smoke test."""
        here = self._at.get((wanted.name, place.partition, place.vm_size))
        return here or (None if wanted.needs_gpu else self._anywhere.get(wanted.name))


def _gate_plan(gate: Gate, place: NodeArrayPlan, jobs: _Jobs, places: list[NodeArrayPlan]) -> GatePlan:
    wanted = recipe(gate.recipe)
    job = jobs.of(wanted, place) if wanted and not _is_long_finder(gate, wanted) else None
    obstacle = None if job else _obstacle(gate, wanted, place)
    lacks_job = job is None and obstacle is None
    elsewhere = job is not None and not _is_at(job, place)
    settings = gate.settings + ((("PARTITION", place.partition), ("VM_SIZE", place.vm_size)) if elsewhere else ())
    return GatePlan(
        name=gate.name,
        level=gate.level,
        recipe=gate.recipe,
        partition=place.partition,
        constraint=place.constraint,
        vm_size=place.vm_size,
        job=job.name if job else None,
        min_nodes=wanted.min_nodes if wanted else 1,
        gpus_per_node=place.hardware.gpu_count,
        minutes=job.steps[-1].minutes if job else 0,
        finder=gate.finder,
        settings=settings,
        what=gate.what,
        reason=_missing(wanted, place) if wanted and lacks_job else obstacle,
        lacks_job=lacks_job,
        setup=tuple(
            SetupStep(step.file, step.minutes, step.nodes, step.place(places).hardware.gpu_count)
            for step in (job.steps[:-1] if job else ())
        ),
    )


def _is_long_finder(gate: Gate, wanted: Recipe) -> bool:
    """A finder is started in the middle of another gate, and has no time to be set up."""
    return gate.level == "finder" and len(wanted.steps) > 1


def _is_at(job: JobPlan, place: NodeArrayPlan) -> bool:
    return (job.partition, job.vm_size) == (place.partition, place.vm_size)


def _runs_anywhere(job: JobPlan) -> bool:
    """Its batch file asks for no CPUs and no GPUs; partition and VM size are replaced on the command line of sbatch."""
    return not {"cpus-per-task", "gpus-per-node"} & dict(job.steps[-1].options).keys()


def _obstacle(gate: Gate, wanted: Recipe | None, place: NodeArrayPlan) -> str | None:
    """Why no job of the recipe can run on the place."""
    hardware = place.hardware
    if wanted is None:
        return f"CycleForge has no recipe {gate.recipe} yet"
    if _is_long_finder(gate, wanted):
        return f"the recipe {wanted.name} has several steps, and a finder is one job"
    if (wanted.needs_gpu or (hardware.gpu_count and wanted.uses_gpus)) and not place.has_whole_gpus:
        return f"{wanted.name} needs whole GPUs, and {place.vm_size} has none here"
    if hardware.gpu_count and wanted.gpu_vendors and hardware.gpu_vendor not in wanted.gpu_vendors:
        return f"{wanted.name} runs on GPUs of {' and '.join(wanted.gpu_vendors)}, not on {hardware.gpu_vendor}"
    if wanted.needs_infiniband and not (place.is_hpc and hardware.infiniband):
        return f"{wanted.name} needs nodes that InfiniBand connects"
    if place.max_nodes < wanted.min_nodes:
        return f"{wanted.name} needs {wanted.min_nodes} nodes, and the partition has {place.max_nodes}"
    return None


def _missing(wanted: Recipe, place: NodeArrayPlan) -> str:
    name = "-".join((wanted.name, place.partition, *([size_part(place.constraint)] if place.constraint else ())))
    keys = {"recipe": wanted.name, "name": name, "partition": place.partition, "vm_size": place.constraint}
    entry = ", ".join(f"{key}: {value}" for key, value in keys.items() if value)
    missing = f"this deployment has no job of the recipe {wanted.name} on this partition"
    return f"{missing}; add {{{entry}}} to jobs.add_validation and build again"
