"""Rules about the finished plan: do the checkpoints of the training jobs fit, do the models fit the nodes?"""

from __future__ import annotations

from collections.abc import Iterator

from ..plan.types import JobPlan, Plan
from ..problems.problem import Problem
from ..recipes import models
from .base import PlanRule

_TIB = 1024**4


def _tib(size_bytes: int) -> str:
    return f"{size_bytes / _TIB:.2f} TiB"


class CheckpointsDoNotFit(PlanRule):
    id = "E1690"
    summary = "The checkpoints that a training job keeps are larger than the file system that they go to."
    why = "The job runs for hours and then fails when it writes the checkpoint that no longer fits."
    fix = "Enlarge the file system, or keep fewer checkpoints: settings: {KEEP_CHECKPOINTS: …} of the job."
    source = "https://github.com/Azure/ai-infrastructure-on-azure"

    def check(self, plan: Plan) -> Iterator[Problem]:
        for path, job in training_jobs(plan):
            figures = job.checkpoint
            if figures is None or figures.capacity_bytes is None or figures.needed_bytes <= figures.capacity_bytes:
                continue
            text = (
                f"training job '{job.name}' keeps {figures.kept} checkpoints of {_tib(figures.checkpoint_bytes)}, "
                f"{_tib(figures.needed_bytes)} in all; its file system has {_tib(figures.capacity_bytes)}"
            )
            yield self.problem(path, text, self.fix)


class ModelDoesNotFit(PlanRule):
    id = "W1691"
    summary = "The model of a training job does not fit the memory of its GPUs."
    why = "The job stops with an out-of-memory error after the nodes have booted."
    fix = "Give the job more nodes or a smaller model: nodes: …, settings: {MODEL: …}."
    source = "https://github.com/Azure/ai-infrastructure-on-azure"

    def check(self, plan: Plan) -> Iterator[Problem]:
        arrays = {array.name: array.hardware for array in plan.slurm.node_arrays}
        for path, job in training_jobs(plan):
            shape = models.model(job.model or "")
            hardware = arrays[job.node_array]
            gpus = models.Gpus(job.nodes, hardware.gpu_count, hardware.gpu_memory_gb)
            if shape is None or gpus.memory_gb is None or models.fits(shape, gpus):
                continue
            needed = models.nodes_needed(shape, gpus)
            enough = f"it needs {needed}" if needed else "no number of these nodes holds it"
            text = (
                f"the model {shape.name} of training job '{job.name}' does not fit "
                f"{job.nodes} x {hardware.name}; {enough}"
            )
            yield self.problem(path, text, self.fix)


def training_jobs(plan: Plan) -> Iterator[tuple[tuple[str | int, ...], JobPlan]]:
    """Training jobs with their places; the plan keeps the definition's order."""
    training = [job for job in plan.jobs if job.kind == "training"]
    for index, job in enumerate(training):
        yield ("jobs", "training", index), job
