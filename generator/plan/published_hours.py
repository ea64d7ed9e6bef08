"""How long a training job computes at the speed that has been published for its model and its GPUs."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from msgspec import Struct

from .deployment import Plan
from .jobs import JobPlan
from .nodes import NodeArrayPlan

_METRICS = ("tokens_per_gpu", "words_per_s", "model_tflops")
"""Of `throughput.tsv`, the most direct one first; words are tokens, of the whole job."""


class StepHours(Struct, frozen=True):
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
        return self.nodes * self.hours

    @property
    def gpu_hours(self) -> float:
        """GPUs times hours, used or not."""
        return self.gpus * self.hours


def hours_of(plan: Plan, job: JobPlan) -> tuple[StepHours, ...]:
    """The steps of a job of this plan, in order; the last one is the job itself."""
    assert plan.slurm is not None, "a plan with jobs has a cluster"
    arrays = plan.slurm.node_arrays
    return tuple(StepHours(step.title, step.place(arrays), step.nodes, step.minutes / 60) for step in job.steps)


class PublishedHours(Struct, frozen=True):
    """All steps of the training itself, without its preparation, checkpoints, evaluation and restarts.

    `reason` says why nothing is known; the other values are 0 then.
    """

    gpu_hours: float = 0
    tokens: int = 0
    metric: str = ""
    published: float = 0
    gpus: int = 0
    """On so many GPUs it was published; on another number the speed of one GPU is taken to be the same."""
    reason: str = ""


def published_hours(job: JobPlan) -> PublishedHours:
    """GPU-hours = tokens / tokens a second of one GPU."""
    settings = dict(job.settings)
    tokens = _tokens(settings)
    if tokens is None:
        return PublishedHours(reason="its settings do not say how many steps it has")
    figures = [row for table in job.tables if table.file == "throughput.tsv" for row in table.rows]
    own = job.nodes * int(settings["GPUS_PER_NODE"])
    for metric in _METRICS:
        of_metric = [(int(row[1]), float(row[2])) for row in figures if row[0] == metric]
        if of_metric:
            gpus, published = min(of_metric, key=lambda each: abs(math.log(each[0] / own)))
            each_second = _tokens_a_second(metric, gpus, published, settings)
            return PublishedHours(tokens / each_second / 3600, tokens, metric, published, gpus)
    return PublishedHours(reason="no speed is published for its model on its GPUs")


def _tokens(settings: Mapping[str, str]) -> int | None:
    steps = settings.get("ITERATIONS") or _batches(settings.get("MAX_DURATION", ""))
    values = (steps, settings.get("GLOBAL_BATCH"), settings.get("SEQUENCE"))
    if not all(value and value.isdecimal() for value in values):
        return None
    return math.prod(int(value) for value in values if value)


def _batches(duration: str) -> str:
    """Composer's `1000ba`; it also counts in epochs, tokens and samples.

    Source: https://docs.mosaicml.com/projects/composer/en/stable/trainer/time.html
    """
    found = re.fullmatch(r"(\d+)ba", duration)
    return found[1] if found else ""


def _tokens_a_second(metric: str, gpus: int, published: float, settings: Mapping[str, str]) -> float:
    """Of one GPU."""
    if metric == "model_tflops":
        return published * 1e12 / _operations(settings)
    return published / gpus if metric == "words_per_s" else published


def _operations(settings: Mapping[str, str]) -> float:
    """Floating-point operations for one token, forward and backward, of a causal model, nothing calculated again.

    Source: https://arxiv.org/abs/2104.04473, section 5.1, with half of the scores of attention.
    """
    layers, hidden = int(settings["NUM_LAYERS"]), int(settings["HIDDEN_SIZE"])
    sequence, vocabulary = int(settings["SEQUENCE"]), int(settings["VOCABULARY"])
    return 72 * layers * hidden**2 * (1 + sequence / (12 * hidden) + vocabulary / (12 * hidden * layers))
