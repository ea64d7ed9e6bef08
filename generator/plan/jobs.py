"""Which jobs are written, on which partition, on how many nodes, and whether their checkpoints fit."""

from __future__ import annotations

from generator.model.definition import Definition, Job
from generator.plan.types import CheckpointPlan, JobPlan, MountPlan, NodeArrayPlan, SlurmPlan
from generator.recipes import Checkpoint, Recipe, checkpoint_of, recipe, recipe_names

_GIB = 1024**3


def job_plans(definition: Definition, slurm: SlurmPlan, mounts: tuple[MountPlan, ...]) -> tuple[JobPlan, ...]:
    """Validation jobs first, then training jobs, in the definition's order."""
    validation = definition.jobs.validation
    wanted = validation if validation is not None else _fitting_validation(slurm)
    return tuple(
        plan
        for job in (*wanted, *definition.jobs.training)
        if (plan := _job(job, slurm, mounts)) is not None
    )


def partition_for(job: Job, wanted: Recipe, slurm: SlurmPlan) -> NodeArrayPlan | None:
    """The named partition; else the first that fits: GPUs where the recipe needs them, the cheapest CPU size otherwise."""
    if job.partition is not None:
        return next((array for array in slurm.node_arrays if array.partition == job.partition), None)
    if wanted.needs_gpu:
        gpus = [array for array in slurm.node_arrays if array.hardware.gpu_count]
        return next((array for array in gpus if array.max_nodes >= wanted.min_nodes), gpus[0] if gpus else None)
    return min(slurm.node_arrays, key=lambda array: (array.hardware.gpu_count, array.hardware.vcpus or 0), default=None)


def _fitting_validation(slurm: SlurmPlan) -> list[Job]:
    """Every validation recipe that some partition can run."""
    jobs = []
    for name in recipe_names():
        candidate = recipe(name)
        job = Job(recipe=name)
        if candidate is not None and candidate.kind == "validation":
            array = partition_for(job, candidate, slurm)
            if array is not None and array.max_nodes >= candidate.min_nodes:
                jobs.append(job)
    return jobs


def _job(job: Job, slurm: SlurmPlan, mounts: tuple[MountPlan, ...]) -> JobPlan | None:
    wanted = recipe(job.recipe)
    array = partition_for(job, wanted, slurm) if wanted else None
    if wanted is None or array is None:
        return None
    settings = {**wanted.default_settings, **_data_path(wanted, mounts), **{key: _text(value) for key, value in job.settings.items()}}
    figures = checkpoint_of(job.recipe, settings)
    return JobPlan(
        name=job.name or job.recipe,
        kind=wanted.kind,
        recipe=job.recipe,
        node_array=array.name,
        nodes=job.nodes if job.nodes is not None else min(wanted.default_nodes, array.max_nodes),
        settings=tuple(sorted(settings.items())),
        checkpoint=_checkpoint(figures, _data_mount(mounts)) if figures else None,
    )


def _data_mount(mounts: tuple[MountPlan, ...]) -> MountPlan | None:
    """Where training data and checkpoints go: the first Lustre file system, else the first mount."""
    return next((mount for mount in mounts if mount.protocol == "lustre"), mounts[0] if mounts else None)


def _data_path(wanted: Recipe, mounts: tuple[MountPlan, ...]) -> dict[str, str]:
    mount = _data_mount(mounts)
    return {"DATA_DIR": mount.path if mount else "/shared/data"} if wanted.kind == "training" else {}


def _checkpoint(figures: Checkpoint, mount: MountPlan | None) -> CheckpointPlan:
    """Do the kept checkpoints fit, and how long does one take at the file system's nominal bandwidth?

    Bandwidth of Managed Lustre: tier (MB/s per TiB) × size (TiB) / 1000 GB/s; a floor, all OSTs in use.
    Source: https://github.com/Azure/ai-infrastructure-on-azure
    """
    bandwidth = None
    if mount and mount.tier_mb_per_s_per_tib and mount.size_gib:
        bandwidth = mount.tier_mb_per_s_per_tib * mount.size_gib / 1024 / 1000
    return CheckpointPlan(
        parameters=figures.parameters,
        bytes_per_parameter=figures.bytes_per_parameter,
        checkpoint_bytes=figures.checkpoint_bytes,
        kept=figures.kept,
        needed_bytes=figures.needed_bytes,
        capacity_bytes=mount.size_gib * _GIB if mount and mount.size_gib else None,
        bandwidth_gb_per_s=bandwidth,
        seconds_per_checkpoint=figures.checkpoint_bytes / (bandwidth * 1e9) if bandwidth else None,
    )


def _text(value: str | int | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
