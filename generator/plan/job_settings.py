"""Settings of a job: the recipe's defaults, what the VM size and the cluster decide, and what the definition gives.

What the definition gives always decides, whether or not it equals a default; what follows from it (the layout of a
given model, the baseline of a given message size) follows from the given value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation

from msgspec import Struct
from msgspec.structs import replace

from .. import catalog
from ..catalog.sizes import VmSize
from ..definition.model.definition import Job
from ..recipes import Recipe, models
from ..recipes.models import MemoryPlan
from .job_figures import figure_settings
from .nccl_baselines import message_size
from .nodes import NodeArrayPlan
from .storage import FileSystems

_NVME_ATTRIBUTE = "cycleforge.nvme.mount_point"
_SHAPE = {
    "HIDDEN_SIZE": "hidden",
    "NUM_ATTENTION_HEADS": "heads",
    "NUM_LAYERS": "layers",
    "SEQUENCE": "sequence",
    "VOCABULARY": "vocabulary",
}
"""Settings that describe the shape of a model, and the fields of `Model` that they print."""
_EXPERTS = "NUM_EXPERTS"
"""0 or the experts of each layer; the only number of the shape that may be 0."""

SETTINGS_OF_A_MODEL = frozenset(
    {*_SHAPE, _EXPERTS, "CONTEXT_PARALLEL", "EXPERT_PARALLEL", "GLOBAL_BATCH", "LEARNING_RATE", "MICRO_BATCH"}
    | {"MIN_LEARNING_RATE", "MODEL", "PIPELINE_PARALLEL", "RECOMPUTE", "TENSOR_PARALLEL"}
)
"""Settings that describe one model, its division and how it is trained; for another one they say nothing."""
_PACE = "DOWNLOADS_PER_5_MINUTES"
_SCRATCH = "IMPORT_SCRATCH_GB"


def image_name(container: str) -> str:
    """`docker://nvcr.io#nvidia/pytorch:25.03-py3` → `pytorch`."""
    return container.rsplit("/", 1)[-1].split(":", 1)[0].split("@", 1)[0]


def squash_bytes(container: str) -> int | None:
    """Size of its squash file; None where nobody has said it."""
    row = catalog.training().images.get(image_name(container))
    return int(row.bytes) if row else None


def import_scratch_gb(container: str) -> int:
    """Room that importing it takes on a disk of the node, in 10^9 bytes."""
    rule, known = catalog.training().import_scratch, squash_bytes(container)
    times, unknown = int(rule.times), int(rule.unknown_bytes)
    return -(-(known * times if known else unknown) // 10**9)


class Place(Struct, frozen=True):
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


def spare_nodes(recipe: Recipe | None, job: Job) -> int:
    """Nodes that the definition asks for beside those of the job; only long runs have some."""
    is_long = recipe is not None and recipe.steps[-1].restarts
    return (whole(str(job.settings.get("SPARE_NODES", ""))) or 0) if is_long else 0


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
    experts = {"experts": number} if (number := whole(given.get(_EXPERTS))) else {}
    fitting = None if named else models.largest_fitting_model(recipe, gpus)
    shape = fitting or models.model(named or recipe.default_model or "")
    family = models.family_of(recipe)
    if shape is not None and shape.family == family:
        return replace(shape, **numbers, **experts) if numbers or experts else shape
    if named and family and len(numbers) == len(_SHAPE):
        return models.Model(named, family, **numbers, **experts)  # type: ignore[arg-type]
    return None


def choices_of(settings: Mapping[str, str]) -> models.Choices:
    """What settings fix of a model's division: those that the definition gives, or all of a job."""
    return models.Choices(
        tensor=whole(settings.get("TENSOR_PARALLEL")),
        pipeline=whole(settings.get("PIPELINE_PARALLEL")),
        context=whole(settings.get("CONTEXT_PARALLEL")) or 1,
        expert=whole(settings.get("EXPERT_PARALLEL")) or 1,
        microbatch=whole(settings.get("MICRO_BATCH")),
        batch=whole(settings.get("GLOBAL_BATCH")),
        recompute=settings.get("RECOMPUTE", "selective"),
    )


def layout_of(settings: Mapping[str, str], gpus: models.Gpus) -> models.Parallelism | None:
    """How the settings of a Megatron job divide its model; None where they do not divide the GPUs."""
    wanted = choices_of(settings)
    block = (wanted.tensor or 0) * (wanted.pipeline or 0) * wanted.context
    if not block or not gpus.count or gpus.count % block:
        return None
    return models.Parallelism(
        wanted.tensor or 1, wanted.pipeline or 1, gpus.count // block, wanted.context, wanted.expert
    )


def memory_of(shape: models.Model, settings: Mapping[str, str], gpus: models.Gpus) -> MemoryPlan | None:
    """What one GPU holds with the final settings of a job; None where layout or memory are not known."""
    return models.memory_of(shape, gpus, layout_of(settings, gpus), choices_of(settings))


def job_settings(
    job: str, recipe: Recipe, place: Place, given: Mapping[str, str], shape: models.Model | None, shared: FileSystems
) -> dict[str, str]:
    """Every line of the job's `settings.env`; `shape` is `model_of` the same values."""
    size = place.array.hardware
    settings = dict(recipe.default_settings) | figure_settings(recipe, size)
    settings |= {name: value_of(_Job(job, recipe, place, given, shared)) for name, value_of in _COMMON.items()}
    if "nccl" in recipe.figures:
        settings["MESSAGE_SIZE"] = message_size(size, place.nodes, settings["MESSAGE_SIZE"])
    if _PACE in settings:
        settings[_PACE] = str(allowed_requests())
    if shape is not None:
        settings |= _model_settings(shape, place.gpus, size, settings, given)
    settings |= dict(given)
    if _SCRATCH in settings and _SCRATCH not in given:
        settings[_SCRATCH] = str(import_scratch_gb(settings["CONTAINER"]))
    return settings


def known_settings(recipe: Recipe) -> tuple[str, ...]:
    """Names of the settings that a job of the recipe has or understands, sorted."""
    unknown = VmSize("")
    names = {*dict(recipe.default_settings), *_COMMON, *figure_settings(recipe, unknown), "DATA_DIR"}
    shape = models.model(recipe.models[0]) if recipe.models else None
    if shape is not None:
        names |= _model_settings(shape, models.Gpus(0, 0, None), unknown, {}, {}).keys()
    return tuple(sorted(names))


def allowed_requests() -> int:
    """Files that a job may ask Hugging Face for in each of its windows of five minutes."""
    limit = catalog.training().downloads
    return int(limit.requests * limit.share)


def whole(value: str | None) -> int | None:
    """A positive whole number; None for everything else."""
    return int(value) if value and value.isdecimal() and int(value) else None


def _part_of(rate: str, share: Decimal) -> str:
    """As people write rates, `6e-6`; empty, which stops the job at its start, where the rate is no number."""
    try:
        part = Decimal(rate) * share
    except InvalidOperation:
        return ""
    return f"{part.normalize():e}" if part.is_finite() else ""


class _Job(Struct, frozen=True):
    name: str
    recipe: Recipe
    place: Place
    given: Mapping[str, str]
    shared: FileSystems

    @property
    def hardware(self) -> VmSize:
        return self.place.array.hardware

    @property
    def nvme_mount(self) -> str:
        mount_point = dict(self.place.array.attributes).get(_NVME_ATTRIBUTE)
        return str(mount_point) if mount_point and self.hardware.nvme_count else ""

    @property
    def stage_path(self) -> str:
        """Images, source, tokenizers and data are the same for all training jobs of a file system."""
        data = self.given.get("DATA_DIR", "").rstrip("/") or self.shared.working.path
        return f"{data}/{'training' if self.recipe.kind == 'training' else self.name}"


_COMMON: Mapping[str, Callable[[_Job], str]] = {
    "CPUS_PER_TASK": lambda job: _text(job.place.cpus_per_task),
    "CPU_BIND": lambda job: "mask_cpu:" + ",".join(job.hardware.cpu_masks) if job.hardware.cpu_masks else "none",
    "GPUS_PER_NODE": lambda job: str(job.place.gpus_per_node),
    "GPU_VENDOR": lambda job: job.hardware.gpu_vendor or "",
    "JOB": lambda job: job.name,
    "NODES": lambda job: str(job.place.nodes),
    "NVME_MOUNT": lambda job: job.nvme_mount,
    "PARTITION": lambda job: job.place.array.partition,
    "RECIPE": lambda job: job.recipe.name,
    # The jobs of a user are neighbours, so that their runs are in one folder.
    "RUNS_DIR": lambda _: "../runs",
    "SHARED_DIR": lambda job: job.shared.home.path,
    "STAGE_PATH": lambda job: job.stage_path,
    "TASKS_PER_NODE": lambda job: str(job.place.tasks_per_node),
    "VCPUS": lambda job: _text(job.hardware.vcpus),
    "VM_SIZE": lambda job: job.hardware.name,
}
"""Settings of every job, whatever its recipe."""


def _model_settings(
    shape: models.Model, gpus: models.Gpus, size: VmSize, usual: Mapping[str, str], given: Mapping[str, str]
) -> dict[str, str]:
    """Of GPUs that nobody knows, too; `usual` are those of its recipe."""
    settings = {name: str(getattr(shape, field)) for name, field in _SHAPE.items()} | {"MODEL": shape.name}
    settings["PRECISION"] = _precision(shape, size)
    settings["CHECKPOINT_MAX_SECONDS"] = str(catalog.training().checkpoint_seconds.value)
    wanted = choices_of(given)
    if shape.family == "llm-foundry":
        batch = wanted.batch or (models.llm_foundry_global_batch(shape, gpus.count) if gpus.count else None)
        settings["GLOBAL_BATCH"] = _text(batch)
        settings["MICRO_BATCH"] = _text(models.llm_foundry_microbatch(shape, gpus, batch) if gpus.count else None)
        return settings
    # A layout that keeps what is given; where nothing fits with it, the rules say so beside what would.
    layout = models.parallelism(shape, gpus, wanted) or models.parallelism(shape, gpus)
    # Empty values stop the job at its start: it cannot run on these nodes.
    settings["TENSOR_PARALLEL"] = _text(layout.tensor if layout else None)
    settings["PIPELINE_PARALLEL"] = _text(layout.pipeline if layout else None)
    settings["CONTEXT_PARALLEL"] = str(wanted.context)
    settings["EXPERT_PARALLEL"] = str(wanted.expert)
    settings[_EXPERTS] = str(shape.experts)
    settings["RECOMPUTE"] = wanted.recompute
    batch = models.megatron_global_batch(shape, layout, wanted.microbatch or 1) if layout else None
    settings["GLOBAL_BATCH"] = _text(batch)
    if shape.learning_rate is not None:
        settings["LEARNING_RATE"] = shape.learning_rate
    rate = given.get("LEARNING_RATE") or shape.learning_rate or usual.get("LEARNING_RATE", "")
    settings["MIN_LEARNING_RATE"] = _part_of(rate, Decimal(str(models.family(shape).min_learning_rate_share.value)))
    return settings


def _precision(shape: models.Model, size: VmSize) -> str:
    """As the framework writes it: bf16 on GPUs that have it, else fp16."""
    kind = "bf16" if models.has_bf16(size.gpu_model) else "fp16"
    return f"amp_{kind}" if shape.family == "llm-foundry" else kind


def _given_text(value: str | int | bool, default: str | None) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return {"true": "1", "false": "0"}.get(text, text) if default in ("0", "1") else text


def _text(value: int | None) -> str:
    return "" if value is None else str(value)
