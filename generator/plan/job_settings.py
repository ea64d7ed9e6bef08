"""Settings of a job: the recipe's defaults, what the VM size and the cluster decide, and what the definition gives.

What the definition gives always decides, whether or not it equals a default; what follows from it (the layout of a
given model, the baseline of a given message size) follows from the given value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..catalog.sizes import VmSize
from ..definition.model.definition import Job
from ..recipes import Recipe, models
from ..records import record
from .job_figures import expectations
from .nccl_baselines import message_size, relative_settings
from .storage import FileSystems
from .types import NodeArrayPlan

_NVME_ATTRIBUTE = "cycleforge.nvme.mount_point"
_SHAPE = {
    "HIDDEN_SIZE": "hidden",
    "NUM_ATTENTION_HEADS": "heads",
    "NUM_LAYERS": "layers",
    "SEQUENCE": "sequence",
    "VOCABULARY": "vocabulary",
}
"""Settings that describe the shape of a model, and the fields of `Model` that they print."""

_COMMON = (
    "CPUS_PER_TASK",
    "CPU_BIND",
    "GPUS_PER_NODE",
    "GPU_VENDOR",
    "JOB",
    "NODES",
    "NVME_MOUNT",
    "PARTITION",
    "RECIPE",
    "SHARED_DIR",
    "STAGE_PATH",
    "TASKS_PER_NODE",
    "VCPUS",
    "VM_SIZE",
)
"""Settings of every job, whatever its recipe."""


@record
class Place:
    """Where a job runs: partition, number of nodes, and how a node is divided into tasks."""

    array: NodeArrayPlan
    nodes: int
    gpus_per_node: int
    tasks_per_node: int
    cpus_per_task: int | None
    """None if nobody published the CPUs of the size."""

    @property
    def gpus(self) -> models.Gpus:
        """What a model has to fit into."""
        return models.Gpus(self.nodes, self.gpus_per_node, self.array.hardware.gpu_memory_gb)


def given_settings(job: Job, recipe: Recipe) -> dict[str, str]:
    """What the definition gives, as text; a YAML boolean becomes 1 or 0 where the recipe's setting is a switch."""
    defaults = dict(recipe.default_settings)
    return {name: _given_text(value, defaults.get(name)) for name, value in job.settings.items()}


def place_of(array: NodeArrayPlan, nodes: int, given: Mapping[str, str]) -> Place:
    """The job's place; given settings that divide a node otherwise decide."""
    hardware = array.hardware
    gpus = whole(given.get("GPUS_PER_NODE")) or hardware.gpu_count
    usual = hardware.tasks_per_node if gpus == hardware.gpu_count else None
    tasks = whole(given.get("TASKS_PER_NODE")) or usual or gpus or 1
    cpus = hardware.cpus_per_task if tasks == (hardware.tasks_per_node or tasks) else None
    cpus = whole(given.get("CPUS_PER_TASK")) or cpus or (hardware.vcpus // tasks if hardware.vcpus else None)
    return Place(array, nodes, gpus, tasks, cpus)


def model_of(recipe: Recipe, given: Mapping[str, str], gpus: models.Gpus) -> models.Model | None:
    """The model that the definition names, else the largest of the recipe's that these GPUs hold, else its default.

    Given numbers (layers, hidden size, …) replace the preset's, and all of them together describe a model of the
    user's own. None: the recipe trains no model, or nothing is known of the named one.
    """
    named = given.get("MODEL")
    numbers = {field: number for name, field in _SHAPE.items() if (number := whole(given.get(name)))}
    fitting = None if named else models.largest_fitting_model(recipe, gpus)
    shape = fitting or models.model(named or recipe.default_model or "")
    family = models.family_of(recipe)
    if shape is not None and shape.family == family:
        return replace(shape, **numbers) if numbers else shape  # type: ignore[arg-type]
    if named and family and len(numbers) == len(_SHAPE):
        return models.Model(named, family, **numbers)
    return None


def job_settings(
    job: str, recipe: Recipe, place: Place, given: Mapping[str, str], shape: models.Model | None, shared: FileSystems
) -> dict[str, str]:
    """Every line of the job's `settings.env`; `shape` is `model_of` the same values."""
    size = place.array.hardware
    settings = dict(recipe.default_settings) | _common(job, recipe, place, given, shared)
    if "nccl" in recipe.figures:
        settings |= relative_settings()
        settings["MESSAGE_SIZE"] = message_size(size, place.nodes, settings["MESSAGE_SIZE"])
    if "node-health" in recipe.figures:
        settings |= expectations(size)
    if shape is not None:
        settings |= _model_settings(shape, place.gpus)
    return settings | dict(given)


def known_settings(recipe: Recipe) -> tuple[str, ...]:
    """Names of the settings that a job of the recipe has or understands, sorted."""
    names = {*dict(recipe.default_settings), *_COMMON, "DATA_DIR"}
    if "nccl" in recipe.figures:
        names |= set(relative_settings())
    if "node-health" in recipe.figures:
        names |= set(expectations(VmSize("")))
    shape = models.model(recipe.models[0]) if recipe.models else None
    if shape is not None:
        names |= set(_model_settings(shape, models.Gpus(0, 0, None)))
    return tuple(sorted(names))


def whole(value: str | None) -> int | None:
    """A positive whole number; None for everything else."""
    return int(value) if value and value.isdecimal() and int(value) else None


def _common(job: str, recipe: Recipe, place: Place, given: Mapping[str, str], shared: FileSystems) -> dict[str, str]:
    hardware = place.array.hardware
    mount_point = dict(place.array.attributes).get(_NVME_ATTRIBUTE)
    data = given.get("DATA_DIR", "").rstrip("/") or shared.working.path
    return {
        "CPUS_PER_TASK": _text(place.cpus_per_task),
        "CPU_BIND": "mask_cpu:" + ",".join(hardware.cpu_masks) if hardware.cpu_masks else "none",
        "GPUS_PER_NODE": str(place.gpus_per_node),
        "GPU_VENDOR": hardware.gpu_vendor or "",
        "JOB": job,
        "NODES": str(place.nodes),
        "NVME_MOUNT": str(mount_point) if mount_point and hardware.nvme_count else "",
        "PARTITION": place.array.partition,
        "RECIPE": recipe.name,
        "SHARED_DIR": shared.home.path,
        "STAGE_PATH": f"{data}/{job}",
        "TASKS_PER_NODE": str(place.tasks_per_node),
        "VCPUS": _text(hardware.vcpus),
        "VM_SIZE": hardware.name,
    }


def _model_settings(shape: models.Model, gpus: models.Gpus) -> dict[str, str]:
    settings = {name: str(getattr(shape, field)) for name, field in _SHAPE.items()} | {"MODEL": shape.name}
    if shape.family == "llm-foundry":
        settings["GLOBAL_BATCH"] = _text(models.llm_foundry_global_batch(shape, gpus.count)) if gpus.count else ""
        settings["MICRO_BATCH"] = _text(models.llm_foundry_microbatch(shape, gpus.count)) if gpus.count else ""
        return settings
    layout = models.parallelism(shape, gpus)
    # Empty values stop the job at its start: it cannot run on these nodes.
    settings["TENSOR_PARALLEL"] = _text(layout.tensor if layout else None)
    settings["PIPELINE_PARALLEL"] = _text(layout.pipeline if layout else None)
    settings["GLOBAL_BATCH"] = _text(models.megatron_global_batch(shape, layout) if layout else None)
    return settings


def _given_text(value: str | int | bool, default: str | None) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return {"true": "1", "false": "0"}.get(text, text) if default in ("0", "1") else text


def _text(value: int | None) -> str:
    return "" if value is None else str(value)
