"""Training jobs: whether models are known and fit the GPUs, and whether their data and checkpoints fit the disks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import catalog
from ..catalog.sizes import VmSize
from ..plan.deployment import Plan
from ..plan.job_settings import choices_of, model_of, whole
from ..plan.jobs import JobPlan
from ..plan.ledger import LedgerPlan
from ..plan.preparation import preparation
from ..problems.problem import Problem
from ..recipes import models, recipe
from ..recipes.models import MemoryPlan
from ..words.counts import listed
from .base import Path, PlanRule, choose_from, quoted

_SOURCE = "https://github.com/Azure/ai-infrastructure-on-azure"
_PRECISIONS = {"llm-foundry": ("amp_bf16", "amp_fp16"), "megatron": ("bf16", "fp16")}
_DIVISION = {
    "llm-foundry": ("GLOBAL_BATCH", "MICRO_BATCH"),
    "megatron": ("TENSOR_PARALLEL", "PIPELINE_PARALLEL", "GLOBAL_BATCH", "MICRO_BATCH"),
}
"""Settings that say how a model and its batch are divided over the GPUs, by family."""


class ModelDoesNotFit(PlanRule):
    id = "W1691"
    summary = "The model of a training job does not fit the memory of its GPUs."
    why = "The job stops with an out-of-memory error after the nodes have booted."
    fix = "Give the job more nodes or a smaller model: nodes: …, settings: {MODEL: …}."
    source = _SOURCE

    def check(self, plan: Plan) -> Iterator[Problem]:
        for path, job in training_jobs(plan):
            gpus, settings = _gpus(plan, job), dict(job.settings)
            shape = _shape(job, gpus)
            if shape is None or gpus.memory_gb is None:
                continue
            place = f"{job.nodes} x {job.vm_size}"
            if job.memory is not None and not job.memory.fits:
                text = (
                    f"the model {shape.name} of training job '{job.name}' does not fit {place}: {_memory(job.memory)}"
                )
                where = setting_path(plan, path, *_DIVISION[shape.family], "RECOMPUTE", "MODEL")
                yield self.problem(where, text, self._way_out(shape, gpus, settings))
            elif job.memory is None and not models.fits(shape, gpus):
                text = (
                    f"the model {shape.name} of training job '{job.name}' does not fit {place}; {_enough(shape, gpus)}"
                )
                yield self.problem(path, text, self.fix)

    def _way_out(self, shape: models.Model, gpus: models.Gpus, settings: dict[str, str]) -> str:
        """The micro-batch or the layout with which it would fit; else more nodes or a smaller model."""
        if shape.family == "llm-foundry":
            size = models.llm_foundry_microbatch(shape, gpus, whole(settings["GLOBAL_BATCH"]))
            given = whole(settings["MICRO_BATCH"]) or 1
            return f"MICRO_BATCH: {size}" if size and size < given else f"{_enough(shape, gpus)}; {self.fix}"
        layout = models.parallelism(shape, gpus)
        if layout is None:
            return f"{_enough(shape, gpus)}; {self.fix}"
        return f"TENSOR_PARALLEL: {layout.tensor}, PIPELINE_PARALLEL: {layout.pipeline}, MICRO_BATCH: 1"


class SmallerModel(PlanRule):
    id = "W1695"
    summary = "A training job trains a smaller model than its recipe's, which does not fit its GPUs."
    why = "Nobody asked for the smaller one: the job would end well, and have trained something else."
    fix = "Give the job the nodes that the model needs, or name the smaller one: settings: {MODEL: …}."
    source = _SOURCE

    def check(self, plan: Plan) -> Iterator[Problem]:
        for path, job in training_jobs(plan):
            wanted = recipe(job.recipe)
            default = models.model(wanted.default_model) if wanted and wanted.default_model else None
            if default is None or job.model == default.name or setting_path(plan, path, "MODEL") != path:
                continue
            gpus = _gpus(plan, job)
            text = (
                f"training job '{job.name}' trains {job.model} instead of {default.name}, which does not fit "
                f"{job.nodes} x {job.vm_size}; {_enough(default, gpus)}"
            )
            yield self.problem(path, text, f"settings: {{MODEL: {job.model}}}, if that is what you want")


class PrecisionOfGpus(PlanRule):
    id = "E1696"
    summary = "A training job calculates in bf16 on GPUs that do not have it, or in a precision that nobody knows."
    why = "The framework stops at its start, or emulates every operation."
    fix = "Leave PRECISION out: CycleForge chooses bf16 where the GPUs have it, else fp16."
    source = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#arithmetic-instructions"

    def check(self, plan: Plan) -> Iterator[Problem]:
        for path, job in training_jobs(plan):
            shape, given = _shape(job, _gpus(plan, job)), dict(job.settings).get("PRECISION")
            if shape is None or given is None:
                continue
            known = _PRECISIONS[shape.family]
            gpu = _hardware(plan, job).gpu_model
            place = setting_path(plan, path, "PRECISION")
            if given not in known:
                text = f"training job '{job.name}': PRECISION is {quoted(given)}, not {' or '.join(known)}"
                yield self.problem(place, text, self.fix)
            elif given.endswith("bf16") and not models.has_bf16(gpu):
                text = f"training job '{job.name}' calculates in bf16, which the {gpu} of {job.vm_size} does not have"
                yield self.problem(place, text, self.fix)


class LayoutDoesNotDivide(PlanRule):
    id = "E1692"
    summary = "The model or the batch of a training job cannot be divided over its GPUs as its settings say."
    why = "Megatron-LM and LLM Foundry refuse it, after the nodes have booted."
    fix = "Correct the settings of the job, or leave them out: CycleForge chooses values that fit."
    source = "https://github.com/NVIDIA/Megatron-LM"

    def check(self, plan: Plan) -> Iterator[Problem]:
        for path, job in training_jobs(plan):
            gpus = _gpus(plan, job)
            shape = _shape(job, gpus)
            if shape is None or not gpus.count:
                continue
            settings, names = dict(job.settings), _DIVISION[shape.family]
            place = setting_path(
                plan, path, *names, "CONTEXT_PARALLEL", "EXPERT_PARALLEL", "RECOMPUTE", "MODEL", "GPUS_PER_NODE"
            )
            for problem in _division_problems(shape, gpus, settings):
                yield self.problem(place, f"training job '{job.name}': {problem}", self.fix)


class UnknownModel(PlanRule):
    id = "E1693"
    summary = "A training job names a model that is not known, and does not describe it."
    why = "The job stops at its start: the settings that follow from a known model are missing."
    fix = "Name a model of the recipe, or give the settings that describe your own."
    source = _SOURCE

    def check(self, plan: Plan) -> Iterator[Problem]:
        for path, job in training_jobs(plan):
            wanted = recipe(job.recipe)
            family = models.family_of(wanted) if wanted else None
            if wanted is None or family is None or _shape(job, _gpus(plan, job)) is not None:
                continue
            settings = dict(job.settings)
            missing = [name for name in models.NEEDED[family] if not settings.get(name)]
            if missing:
                name = job.model or ""
                text = (
                    f"training job '{job.name}': recipe {wanted.name} knows no model {quoted(name)}, "
                    f"and {listed(missing)} {'is' if len(missing) == 1 else 'are'} not given"
                )
                hint = choose_from(name, models.names_of_family(family), few=20)
                yield self.problem(setting_path(plan, path, "MODEL"), text, hint)


class DataOnGpus(PlanRule):
    id = "W1610"
    summary = "Nodes with GPUs would prepare the data of a training job, because no partition is without GPUs."
    why = (
        "Downloading, extracting and tokenizing use no GPU, and take hours to days on nodes that cost many times as "
        "much. Nobody has published how long these steps take, so their time limits are the most; the least is what "
        "the source's limit of requests makes of the download."
    )
    fix = "Add a partition without GPUs: {name: htc, vm_size: Standard_D64ds_v5, max_nodes: 8}."
    source = "https://huggingface.co/docs/hub/rate-limits"

    def check(self, plan: Plan) -> Iterator[Problem]:
        for path, job in training_jobs(plan):
            found = preparation(job, plan.slurm.node_arrays if plan.slurm else ())
            if found is None:
                continue
            told = listed(
                [f"{step.title} {step.nodes} x {step.gpus_per_node} x {step.hours:g} h" for step in found.steps]
            )
            least = found.download_gpu_hours
            more = f", and at least {least:,.0f} for the download, by the limit of the source" if least else ""
            text = (
                f"training job '{job.name}' prepares its data on nodes with GPUs: up to {found.gpu_hours:,.0f} "
                f"GPU-hours by the time limits ({told}){more}"
            )
            yield self.problem(path, text, self.fix)


def training_jobs(plan: Plan) -> Iterator[tuple[Path, JobPlan]]:
    """Training jobs with their places; the plan keeps the definition's order."""
    training = [job for job in plan.jobs if job.kind == "training"]
    for index, job in enumerate(training):
        yield ("jobs", "training", index), job


def setting_path(plan: Plan, job: Path, *names: str) -> Path:
    """The place of the first of these settings that the definition gives; else of the job."""
    entry: Any = plan.resolved
    for step in job:
        entry = entry[step]
    return next(((*job, "settings", name) for name in names if name in entry["settings"]), job)


def _enough(shape: models.Model, gpus: models.Gpus) -> str:
    needed = models.nodes_needed(shape, gpus)
    return f"it needs {needed}" if needed else "no number of these nodes holds it"


def _memory(needed: MemoryPlan) -> str:
    """What a GPU would have to hold, in GB of 10^9 bytes."""
    parts = {
        "weights": needed.weights_bytes,
        "gradients": needed.gradients_bytes,
        "optimizer state": needed.optimizer_bytes,
        "activations": needed.activations_bytes,
    }
    told = " + ".join(f"{size / 1e9:.1f} GB {name}" for name, size in parts.items())
    return f"{told} = {needed.needed_bytes / 1e9:.1f} GB on each GPU, which holds {needed.usable_bytes / 1e9:.1f} GB"


def _hardware(plan: Plan, job: JobPlan) -> VmSize:
    arrays = plan.slurm.node_arrays if plan.slurm else ()
    return next(
        each.hardware
        for array in arrays
        if array.name == job.node_array
        for each in array.of_each_size
        if each.vm_size == job.vm_size
    )


def _gpus(plan: Plan, job: JobPlan) -> models.Gpus:
    size = _hardware(plan, job)
    per_node = whole(dict(job.settings).get("GPUS_PER_NODE")) or size.gpu_count
    return models.Gpus(job.nodes, per_node, size.gpu_memory_gb)


def _shape(job: JobPlan, gpus: models.Gpus) -> models.Model | None:
    wanted = recipe(job.recipe)
    return model_of(wanted, dict(job.settings), gpus) if wanted else None


def _division_problems(shape: models.Model, gpus: models.Gpus, settings: dict[str, str]) -> list[str]:
    """What the framework refuses; a model that does not fit has no layout, which is W1691's matter."""
    if shape.family == "megatron" and not (settings["TENSOR_PARALLEL"] and settings["PIPELINE_PARALLEL"]):
        return []
    numbers = []
    for name in _DIVISION[shape.family]:
        number = whole(settings[name])
        if number is None:
            return [_no_number(name, settings[name], shape, gpus)]
        numbers.append(number)
    if shape.family == "megatron":
        tensor, pipeline, batch, microbatch = numbers
        return models.layout_problems(shape, tensor, pipeline, gpus, batch, microbatch, choices_of(settings))
    return models.batch_problems(gpus, *numbers)


def _no_number(name: str, value: str, shape: models.Model, gpus: models.Gpus) -> str:
    if not value and shape.global_batch is not None:
        few = f"the model's batch of {shape.global_batch} is less than one sample for each of {gpus.count} GPUs"
        return f"{name} is empty: {few}"
    return f"{name} is {quoted(value)}, not a whole number above 0"


_WAYS = {
    "checkpoints": "keep fewer checkpoints: settings: {KEEP_CHECKPOINTS: …} of the job",
    "data": "take a part of the data: settings: {DATASET_FILES: …} of the job",
}
_MORE_ROOM = f"Enlarge the file system, or {_WAYS['checkpoints']}."


def _tb(size_bytes: float) -> str:
    return f"{size_bytes / 1e12:,.2f} TB"


def _by_kind(ledger: LedgerPlan) -> list[tuple[str, int]]:
    """What is on the file system, the largest first."""
    sums: dict[str, int] = {}
    for entry in ledger.rows:
        kind = entry.what.split(":")[0]
        sums[kind] = sums.get(kind, 0) + entry.needed_bytes
    return sorted(sums.items(), key=lambda each: -each[1])


def _summary(ledger: LedgerPlan) -> str:
    return ", ".join(f"{kind} {_tb(size)}" for kind, size in _by_kind(ledger))


def _more_room(plan: Plan, ledger: LedgerPlan) -> str:
    """What helps with the largest part, as far as its job can be told."""
    kind = _by_kind(ledger)[0][0]
    jobs = {entry.job for entry in ledger.rows if entry.what.split(":")[0] == kind}
    takes_a_part = any("DATASET_FILES" in dict(job.settings) for job in plan.jobs if job.name in jobs)
    if kind == "data" and not takes_a_part:
        return "Enlarge the file system, or choose a smaller corpus: settings: {DATA: …} of the job."
    return f"Enlarge the file system, or {_WAYS.get(kind, _WAYS['checkpoints'])}."


def _largest_user(plan: Plan, ledger: LedgerPlan) -> Path:
    """The training job that keeps most there."""
    sums: dict[str, int] = {}
    for entry in ledger.rows:
        sums[entry.job] = sums.get(entry.job, 0) + entry.needed_bytes
    return next(path for path, job in training_jobs(plan) if job.name == max(sums, key=lambda name: sums[name]))


class FileSystemIsTooSmall(PlanRule):
    id = "E1690"
    summary = "What the training jobs keep on a file system does not fit."
    why = (
        "Images, every stage of the data, and the checkpoints that are kept plus the one being written are counted. "
        "A job would run for hours and then fail when it writes what no longer fits."
    )
    fix = _MORE_ROOM
    source = _SOURCE

    def check(self, plan: Plan) -> Iterator[Problem]:
        for ledger in plan.ledgers:
            if ledger.capacity_bytes and ledger.needed_bytes > ledger.capacity_bytes:
                text = (
                    f"training jobs keep {_tb(ledger.needed_bytes)} on {ledger.path} ({_summary(ledger)}); "
                    f"it has {_tb(ledger.capacity_bytes)}"
                )
                yield self.problem(_largest_user(plan, ledger), text, _more_room(plan, ledger))


class FileSystemIsNearlyFull(PlanRule):
    id = "W1697"
    summary = "What the training jobs keep leaves little of a file system."
    why = (
        "The servers of a parallel file system fill unevenly: one is full, and writes fail, before the whole is. Other "
        "users and logs are not counted."
    )
    fix = _MORE_ROOM
    source = _SOURCE

    def check(self, plan: Plan) -> Iterator[Problem]:
        share = catalog.training().ledger.warn_share
        for ledger in plan.ledgers:
            if ledger.share is not None and share <= ledger.share <= 1:
                text = (
                    f"training jobs keep {_tb(ledger.needed_bytes)} on {ledger.path} ({_summary(ledger)}), "
                    f"{ledger.share:.0%} of its {_tb(ledger.capacity_bytes or 0)}"
                )
                yield self.problem(_largest_user(plan, ledger), text, _more_room(plan, ledger))


class CheckpointIsSlow(PlanRule):
    id = "W1698"
    summary = "A checkpoint of a training job takes longer than it may."
    why = (
        "All GPUs wait until it is written, unless the framework writes in the background, and a job that must stop "
        "has to write one before its time ends. The figure is a floor: nothing else uses the file system meanwhile."
    )
    fix = "Choose a faster tier or a larger file system, or allow it: settings: {CHECKPOINT_MAX_SECONDS: …}."
    source = _SOURCE

    def check(self, plan: Plan) -> Iterator[Problem]:
        for path, job in training_jobs(plan):
            found, most = job.checkpoint, whole(dict(job.settings).get("CHECKPOINT_MAX_SECONDS"))
            if found is None or not found.is_written or not found.seconds_per_checkpoint or not most:
                continue
            if found.seconds_per_checkpoint <= most:
                continue
            one_file = found.file_gb_per_s is not None and found.file_gb_per_s < (found.bandwidth_gb_per_s or 1e9)
            rate = found.file_gb_per_s if one_file else found.bandwidth_gb_per_s
            how = (
                f"as one file at {rate:g} GB/s" if one_file else f"at the {rate:g} GB/s of {job.checkpoint_file_system}"
            )
            text = (
                f"training job '{job.name}' needs at least {found.seconds_per_checkpoint:,.0f} s for a checkpoint of "
                f"{_tb(found.checkpoint_bytes)} {how}; at most {most} s are allowed"
            )
            # Only a recipe whose framework can write the whole state as one file has the setting.
            hint = f"CHECKPOINT_STATE: sharded writes one file per rank. {self.fix}" if one_file else self.fix
            yield self.problem(setting_path(plan, path, "CHECKPOINT_MAX_SECONDS", "CHECKPOINT_STATE"), text, hint)


class FolderIsNotShared(PlanRule):
    id = "W1694"
    summary = "The folder of a training job is not on a shared file system of the definition."
    why = (
        "Every node of the job reads its image and data there and writes its part of a checkpoint. A folder on a "
        "node's own disks is empty on the others and gone with the node; whether checkpoints fit cannot be said."
    )
    fix = "Name a folder below a mount of storage.mounts or below /shared, or leave DATA_DIR and CHECKPOINT_DIR out."
    source = _SOURCE

    def check(self, plan: Plan) -> Iterator[Problem]:
        shared = ", ".join(mount.path for mount in (*plan.mounts, *((plan.slurm.home,) if plan.slurm else ())))
        for path, job in training_jobs(plan):
            if job.file_system is None:
                folder = dict(job.settings)["STAGE_PATH"]
                text = f"training job '{job.name}' works in {folder}, which is on none of the file systems {shared}"
                yield self.problem(setting_path(plan, path, "DATA_DIR", "STAGE_PATH"), text, self.fix)
            folder = dict(job.settings).get("CHECKPOINT_DIR", "")
            if folder and job.checkpoint is not None and job.checkpoint_file_system is None:
                text = f"training job '{job.name}' writes its checkpoints to {folder}, which is on none of {shared}"
                yield self.problem(setting_path(plan, path, "CHECKPOINT_DIR"), text, self.fix)
