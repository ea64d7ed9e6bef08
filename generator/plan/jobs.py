"""Which jobs are written, on which partition, on how many nodes, and whether their checkpoints fit."""

from __future__ import annotations

from ..definition.model.definition import Definition, Job
from ..recipes import Recipe, recipe, recipe_names
from ..recipes.models import Model, amlfs_bandwidth_gb_per_s, checkpoint, largest_fitting_model, model
from ..recipes.settings import judged_nodes
from .types import CheckpointPlan, JobPlan, MountPlan, NodeArrayPlan, SlurmPlan

_GIB = 1024**3
MODEL, KEPT = "MODEL", "KEEP_CHECKPOINTS"
NODE_HEALTH, NCCL = "node-health", "nccl-allreduce"


def job_plans(definition: Definition, slurm: SlurmPlan, work: MountPlan) -> tuple[JobPlan, ...]:
    """Validation jobs first, then training jobs, in the definition's order; `work` holds data and checkpoints."""
    validation = definition.jobs.validation
    wanted = validation if validation is not None else _fitting_validation(slurm)
    return tuple(plan for job in (*wanted, *definition.jobs.training) if (plan := _job(job, slurm, work)) is not None)


def partition_for(job: Job, wanted: Recipe, slurm: SlurmPlan) -> NodeArrayPlan | None:
    """The named partition; else the first that fits: GPUs where the recipe needs them, else the cheapest size."""
    if job.partition is not None:
        return next((array for array in slurm.node_arrays if array.partition == job.partition), None)
    if wanted.needs_gpu:
        gpus = [array for array in slurm.node_arrays if array.hardware.gpu_count]
        return next((array for array in gpus if array.max_nodes >= wanted.min_nodes), gpus[0] if gpus else None)
    return min(slurm.node_arrays, key=lambda array: (array.hardware.gpu_count, array.hardware.vcpus or 0), default=None)


def _fitting_validation(slurm: SlurmPlan) -> list[Job]:
    """Every validation recipe on the partitions that it is for: those with GPUs, the smoke test on the cheapest one."""
    jobs = []
    for name in recipe_names("validation"):
        candidate = recipe(name)
        arrays = _arrays_to_validate(candidate, slurm) if candidate else []
        for array in arrays:
            jobs.append(
                Job(
                    recipe=name,
                    partition=array.partition,
                    name=f"{name}-{array.partition}" if len(arrays) > 1 else name,
                )
            )
    return jobs


def _arrays_to_validate(wanted: Recipe, slurm: SlurmPlan) -> list[NodeArrayPlan]:
    gpus = [array for array in slurm.node_arrays if array.hardware.gpu_count and _vendor_fits(wanted, array)]
    if wanted.needs_gpu or (wanted.name == NODE_HEALTH and gpus):
        return [array for array in gpus if array.max_nodes >= wanted.min_nodes]
    cheapest = partition_for(Job(recipe=wanted.name), wanted, slurm)
    return [cheapest] if cheapest and cheapest.max_nodes >= wanted.min_nodes else []


def _vendor_fits(wanted: Recipe, array: NodeArrayPlan) -> bool:
    return not wanted.gpu_vendors or array.hardware.gpu_vendor in wanted.gpu_vendors


def _job(job: Job, slurm: SlurmPlan, work: MountPlan) -> JobPlan | None:
    wanted = recipe(job.recipe)
    array = partition_for(job, wanted, slurm) if wanted else None
    if wanted is None or array is None:
        return None
    nodes = job.nodes if job.nodes is not None else _default_nodes(wanted, array)
    settings = dict(wanted.default_settings) | {key: _text(value) for key, value in job.settings.items()}
    shape = _model(wanted, settings, array, nodes)
    if shape is not None:
        settings[MODEL] = shape.name
    return JobPlan(
        name=job.name or job.recipe,
        kind=wanted.kind,
        recipe=job.recipe,
        node_array=array.name,
        nodes=nodes,
        settings=tuple(sorted(settings.items())),
        checkpoint=_checkpoint(shape, settings, work) if shape else None,
    )


def _default_nodes(wanted: Recipe, array: NodeArrayPlan) -> int:
    """The recipe's number of nodes; for NCCL one that a published figure can judge, where the partition has as many."""
    nodes = judged_nodes(array.vm_size, array.max_nodes) if wanted.name == NCCL else None
    return nodes or min(wanted.default_nodes, array.max_nodes)


def _model(wanted: Recipe, settings: dict[str, str], array: NodeArrayPlan, nodes: int) -> Model | None:
    """The model that the definition names, else the largest of the recipe's that these nodes hold."""
    if not wanted.models:
        return None
    named = settings.get(MODEL)
    fallback = wanted.default_model or wanted.models[0]
    return (model(named) if named else largest_fitting_model(wanted, array.hardware, nodes)) or model(fallback)


def _checkpoint(shape: Model, settings: dict[str, str], work: MountPlan) -> CheckpointPlan:
    """Do the kept checkpoints fit, and how long does one take at the file system's nominal bandwidth?"""
    capacity = work.size_gib * _GIB if work.size_gib else None
    bandwidth = None
    if work.tier_mb_per_s_per_tib and work.size_gib:
        bandwidth = amlfs_bandwidth_gb_per_s(work.tier_mb_per_s_per_tib, work.size_gib)
    kept = settings.get(KEPT, "1")
    return checkpoint(shape, int(kept) if kept.isdigit() else 1, capacity, bandwidth)


def _text(value: str | int | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
