"""Which jobs are written, on which partition, on how many nodes, and whether their checkpoints fit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from ..definition.model.definition import Definition, Job, Jobs
from ..recipes import Kind, Recipe, recipe, recipe_names
from ..recipes.checkpoints import CheckpointPlan, checkpoint, seconds_between_failures
from ..recipes.models import MemoryPlan, Model
from . import names, nccl_variables
from .cluster import SlurmPlan
from .file_systems.base import FileSystem
from .job_figures import job_tables
from .job_settings import given_settings, job_settings, memory_of, model_of, place_of, spare_nodes, whole
from .job_steps import StepPlan, shared_folders, step_plans, submission
from .nccl_baselines import BaselinePlan, baselines, judged_nodes
from .node_benchmarks import TablePlan
from .nodes import NodeArrayPlan
from .storage import FileSystems

_GIB = 1024**3


__all__ = ["BaselinePlan", "CheckpointPlan", "JobPlan", "MemoryPlan", "StepPlan", "TablePlan"]


class JobPlan(Struct, frozen=True):
    """One job folder below `jobs/`; `recipe` names the source folder `recipes/<recipe>`."""

    name: str
    definition_path: tuple[str | int, ...]
    """Of its entry; of all jobs where it is there because it fits the partitions."""
    displaces: str | None
    """The recipe of the default job that it takes the place of, because it has its name; None: it displaces none."""
    kind: Literal["validation", "training"]
    recipe: str
    title: str
    node_array: str
    partition: str
    vm_size: str
    nodes: int
    model: str | None
    """The model that is trained, as the recipe knows it."""
    settings: tuple[tuple[str, str], ...]
    """Every line of the job's `settings.env`, sorted."""
    nccl: tuple[tuple[str, str], ...]
    """Every line of the job's `nccl.env`, sorted: what NCCL and UCX need on the VM size, and what benchmarks or
    training add to it."""
    sharp: tuple[tuple[str, str], ...]
    """Every line of the job's `sharp.env`, sorted: what training adds if it asks for SHARP; empty: no such file."""
    baselines: tuple[BaselinePlan, ...] | None
    """Every line of the job's `baselines.tsv`; None: the job judges by no such figures."""
    tables: tuple[TablePlan, ...]
    """Other figures and facts of the plan that the job reads."""
    steps: tuple[StepPlan, ...]
    """In the order in which they are submitted; the last one is the job itself."""
    shared_folders: tuple[str, ...]
    """What a training job needs for all users; `commands` create them first."""
    commands: tuple[str, ...]
    """Shell lines that submit all steps, from the home folder that `jobs/` was copied into."""
    file_system: str | None
    """Mount point of the shared file system that `STAGE_PATH` (images, data, checkpoints) is on; None = on none."""
    memory: MemoryPlan | None
    """What one GPU must hold while the model is trained; None: no model, or nothing is known of its division."""
    checkpoint: CheckpointPlan | None
    checkpoint_file_system: str | None
    """Mount point of the shared file system that checkpoints are written to; None = to none, or there are none."""


def job_plans(definition: Definition, slurm: SlurmPlan, shared: FileSystems) -> tuple[JobPlan, ...]:
    """Validation jobs first, then training jobs, in the definition's order."""
    plans = (job_plan(job, slurm, shared) for job in _all_jobs(definition.jobs, slurm))
    return tuple(plan for plan in plans if plan is not None)


class Listed(Struct, frozen=True):
    """A job that the definition has, or that fits, and where it stands."""

    job: Job
    path: tuple[str | int, ...]
    displaces: str | None = None


def _listed(key: str, jobs: list[Job]) -> list[Listed]:
    return [Listed(job, ("jobs", key, index)) for index, job in enumerate(jobs)]


def job_plan(listed: Listed, slurm: SlurmPlan, shared: FileSystems) -> JobPlan | None:
    """Everything that the job's folder says; None without such a recipe or partition.

    A validation recipe may allow that the definition lists it among its training jobs.
    """
    job, trains = listed.job, "training" in listed.path
    wanted = recipe(job.recipe)
    array = partition_for(job, wanted, slurm) if wanted else None
    if wanted is None or array is None:
        return None
    name = _name(job)
    kind: Kind = "training" if trains and wanted.trains else wanted.kind
    given = given_settings(job, wanted)
    nodes = job.nodes if job.nodes is not None else _default_nodes(wanted, array, spare_nodes(wanted, job))
    place = place_of(array, nodes, given)
    shape = model_of(wanted, given, place.gpus)
    settings = job_settings(name, wanted, place, given, shape, shared)
    steps = tuple(step_plans(name, wanted, place, slurm.node_arrays, given, settings, shape, shared))
    file_system = shared.holding(settings["STAGE_PATH"])
    shared_below = shared_folders(kind, settings["STAGE_PATH"])
    checkpoints = shared.holding(settings.get("CHECKPOINT_DIR") or settings["STAGE_PATH"])
    return JobPlan(
        name=name,
        definition_path=listed.path,
        displaces=listed.displaces,
        kind=kind,
        recipe=wanted.name,
        title=wanted.title,
        node_array=array.name,
        partition=array.partition,
        vm_size=array.vm_size,
        nodes=nodes,
        model=settings.get("MODEL"),
        settings=tuple(sorted(settings.items())),
        nccl=tuple(sorted(nccl_variables.of_job(array.hardware, kind).items())),
        sharp=tuple(sorted(nccl_variables.for_sharp(array.hardware, kind, settings).items())),
        baselines=baselines(array.hardware) if "nccl" in wanted.figures else None,
        tables=tuple(job_tables(wanted, array.hardware, shared, shape)),
        steps=steps,
        shared_folders=shared_below,
        commands=submission(name, kind, steps, shared_below),
        file_system=file_system.path if file_system else None,
        memory=memory_of(shape, settings, place.gpus) if shape else None,
        checkpoint=_checkpoint(shape, settings, checkpoints, place.gpus.count) if shape else None,
        checkpoint_file_system=checkpoints.path if checkpoints and shape else None,
    )


def partition_for(job: Job, wanted: Recipe, slurm: SlurmPlan) -> NodeArrayPlan | None:
    """What the job names; else the first that fits: with GPUs where the recipe needs them, else the cheapest size."""
    places = _places(job, slurm)
    if job.partition is not None:
        gpus = [array for array in places if array.hardware.gpu_count and _vendor_fits(wanted, array)]
        return next(iter(gpus if gpus and wanted.needs_gpu else places), None)
    if wanted.needs_infiniband:
        places = tuple(array for array in places if _is_connected(wanted, array))
        return next((array for array in places if array.max_nodes >= wanted.min_nodes), next(iter(places), None))
    if wanted.needs_gpu:
        gpus = [array for array in places if array.has_whole_gpus]
        return next((array for array in gpus if array.max_nodes >= wanted.min_nodes), gpus[0] if gpus else None)
    return min(places, key=lambda array: (array.hardware.gpu_count, array.hardware.vcpus or 0), default=None)


def _places(job: Job, slurm: SlurmPlan) -> tuple[NodeArrayPlan, ...]:
    """Where the definition lets a job run: each VM size of each partition is a place."""
    return tuple(
        each
        for array in slurm.node_arrays
        if job.partition in (None, array.partition)
        for each in array.of_each_size
        if job.vm_size in (None, each.vm_size)
    )


def _all_jobs(jobs: Jobs, slurm: SlurmPlan) -> list[Listed]:
    """Validation jobs that are listed, or that fit; then the others, each in the place of a validation job of its name.

    Names are folders, and some file systems know no case.
    """
    if jobs.validation is None:
        usual = [Listed(job, ("jobs",)) for job in _fitting_validation(slurm)]
    else:
        usual = _listed("validation", jobs.validation)
    wanted = {_name(each.job).lower(): each for each in usual}
    for each in (*_listed("add_validation", jobs.add_validation), *_listed("training", jobs.training)):
        before = wanted.get(_name(each.job).lower())
        wanted[_name(each.job).lower()] = replace(each, displaces=before.job.recipe) if before else each
    trained = [each for each in wanted.values() if "training" in each.path]
    return [each for each in wanted.values() if each not in trained] + sorted(trained, key=lambda each: each.path)


def _name(job: Job) -> str:
    return job.name or job.recipe


def _fitting_validation(slurm: SlurmPlan) -> list[Job]:
    """Every validation recipe where it belongs: on all sizes with GPUs, the smoke test on the cheapest partition."""
    jobs = []
    for name in recipe_names("validation"):
        candidate = recipe(name)
        arrays = _arrays_to_validate(candidate, slurm) if candidate else []
        for array in arrays:
            jobs.append(
                Job(
                    recipe=name,
                    partition=array.partition,
                    vm_size=array.constraint,
                    name="-".join((name, *_told_apart(array, arrays))) if len(arrays) > 1 else name,
                )
            )
    return jobs


def _told_apart(array: NodeArrayPlan, arrays: list[NodeArrayPlan]) -> Iterator[str]:
    """What tells a job from those of the same recipe on other places: partition, and size where it has several."""
    yield array.partition
    if array.constraint and sum(other.partition == array.partition for other in arrays) > 1:
        yield names.size_part(array.constraint)


def _arrays_to_validate(wanted: Recipe, slurm: SlurmPlan) -> list[NodeArrayPlan]:
    every_size = [each for array in slurm.node_arrays for each in array.of_each_size]
    if wanted.needs_infiniband:
        connected = (array for array in every_size if array.is_hpc and _is_connected(wanted, array))
        return [array for array in connected if array.max_nodes >= wanted.min_nodes]
    gpus = [array for array in every_size if array.has_whole_gpus and _vendor_fits(wanted, array)]
    if wanted.needs_gpu:
        return [array for array in gpus if array.max_nodes >= wanted.min_nodes]
    if wanted.every_partition:
        # A job without GPUs of its own runs also where they are split into instances.
        fit = [each for each in every_size if each.has_whole_gpus or not (each.hardware.gpu_count and wanted.uses_gpus)]
        fitting = [each for each in fit if not each.hardware.gpu_count or _vendor_fits(wanted, each)]
        return [array for array in fitting if array.max_nodes >= wanted.min_nodes]
    cheapest = partition_for(Job(recipe=wanted.name), wanted, slurm)
    return [cheapest] if cheapest and cheapest.max_nodes >= wanted.min_nodes else []


def _is_connected(wanted: Recipe, array: NodeArrayPlan) -> bool:
    """Whether InfiniBand connects its nodes, and their GPUs are whole, of the right vendor or not wanted at all."""
    if not array.hardware.infiniband:
        return False
    if not array.hardware.gpu_count:
        return True
    return array.has_whole_gpus and _vendor_fits(wanted, array) and not wanted.needs_no_gpu


def _vendor_fits(wanted: Recipe, array: NodeArrayPlan) -> bool:
    return not wanted.gpu_vendors or array.hardware.gpu_vendor in wanted.gpu_vendors


def _default_nodes(wanted: Recipe, array: NodeArrayPlan, spare: int) -> int:
    """The recipe's number of nodes, at most what spare ones leave of the partition; for NCCL one that a published
    figure can judge, where the partition has as many."""
    nodes = judged_nodes(array.hardware, array.max_nodes) if "nccl" in wanted.figures else None
    return nodes or min(wanted.default_nodes, max(array.max_nodes - spare, 1))


def _checkpoint(shape: Model, settings: dict[str, str], place: FileSystem | None, gpus: int) -> CheckpointPlan:
    """Do the kept checkpoints fit, how long does one take at the nominal bandwidth of where they are written, and how
    often is one worth that?"""
    count, is_written = _kept(settings), settings.get("SAVE_INTERVAL") != "0"
    hours = whole(settings.get("GPU_HOURS_PER_FAILURE"))
    failure_s = seconds_between_failures(gpus, hours) if hours and gpus else None
    if place is None:
        return checkpoint(shape, count, is_written=is_written, failure_s=failure_s)
    capacity = place.size_gib * _GIB if place.size_gib else None
    one_file = place.file_gb_per_s if settings.get("CHECKPOINT_STATE") == "full" else None
    rate = place.bandwidth_gb_per_s
    return checkpoint(shape, count, capacity, rate, is_written=is_written, failure_s=failure_s, file_gb_per_s=one_file)


def _kept(settings: dict[str, str]) -> int:
    """Checkpoints that are there at once: all of the run where 0 sets no limit."""
    kept = settings.get("KEEP_CHECKPOINTS", "1")
    steps, iterations = whole(settings.get("SAVE_INTERVAL")), whole(settings.get("ITERATIONS"))
    if kept == "0" and steps and iterations:
        return iterations // steps
    return int(kept) if kept.isdecimal() else 1
