"""Rules about the models of training jobs: are they known, do they fit the GPUs, can they be divided over them?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..plan.job_settings import model_of, whole
from ..plan.types import JobPlan, Plan
from ..problems.problem import Problem
from ..recipes import models, recipe
from ..words.counts import listed
from .base import Path, PlanRule
from .wording import choose_from, quoted

_SOURCE = "https://github.com/Azure/ai-infrastructure-on-azure"
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
            gpus = _gpus(plan, job)
            shape = _shape(job, gpus)
            if shape is None or gpus.memory_gb is None or models.fits(shape, gpus):
                continue
            needed = models.nodes_needed(shape, gpus)
            enough = f"it needs {needed}" if needed else "no number of these nodes holds it"
            place = f"{job.nodes} x {job.vm_size}"
            text = f"the model {shape.name} of training job '{job.name}' does not fit {place}; {enough}"
            yield self.problem(path, text, self.fix)


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
            place = setting_path(plan, path, *names, "MODEL", "GPUS_PER_NODE")
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


def _gpus(plan: Plan, job: JobPlan) -> models.Gpus:
    arrays = plan.slurm.node_arrays if plan.slurm else ()
    size = next(
        each.hardware
        for array in arrays
        if array.name == job.node_array
        for each in array.of_each_size
        if each.vm_size == job.vm_size
    )
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
        return models.layout_problems(shape, tensor, pipeline, gpus, batch, microbatch)
    return models.batch_problems(gpus, *numbers)


def _no_number(name: str, value: str, shape: models.Model, gpus: models.Gpus) -> str:
    if not value and shape.global_batch is not None:
        few = f"the model's batch of {shape.global_batch} is less than one sample for each of {gpus.count} GPUs"
        return f"{name} is empty: {few}"
    return f"{name} is {quoted(value)}, not a whole number above 0"
