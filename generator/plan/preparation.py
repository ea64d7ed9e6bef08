"""What the preparation of data costs where no partition without GPUs can do it: hours of GPUs that do nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator

from msgspec import Struct

from .. import catalog
from ..recipes import recipe
from .job_settings import allowed_requests, whole
from .jobs import JobPlan
from .nodes import NodeArrayPlan

_HUGGING_FACE = "https://huggingface.co/"


class StepOnGpus(Struct, frozen=True):
    """A step that uses no GPU and holds some."""

    title: str
    downloads: bool
    nodes: int
    gpus_per_node: int
    hours: float
    """Its time limit; nobody has published how long these steps take."""

    @property
    def gpu_hours(self) -> float:
        """At most."""
        return self.nodes * self.gpus_per_node * self.hours


class Preparation(Struct, frozen=True):
    """The data steps of one job on nodes with GPUs."""

    steps: tuple[StepOnGpus, ...]
    download_gpu_hours: float | None
    """At least, because the source gives files no faster; None where nothing is known of it."""

    @property
    def gpu_hours(self) -> float:
        """At most."""
        return sum(step.gpu_hours for step in self.steps)


def preparation(job: JobPlan, arrays: tuple[NodeArrayPlan, ...]) -> Preparation | None:
    """None where nodes without GPUs prepare the data, or there is nothing to prepare."""
    settings = dict(job.settings)
    if settings.get("DATA", "mock") == "mock":
        return None
    steps = tuple(_steps(job, arrays))
    if not steps:
        return None
    download = next((step for step in steps if step.downloads), None)
    hours = _download_hours(settings)
    return Preparation(steps, download.nodes * download.gpus_per_node * hours if download and hours else None)


def _steps(job: JobPlan, arrays: tuple[NodeArrayPlan, ...]) -> Iterator[StepOnGpus]:
    wanted = recipe(job.recipe)
    without = {step.script for step in wanted.steps if step.partition == "cpu"} if wanted else set()
    # Data is downloaded by the step that writes its first stage.
    first = next((step.script for step in wanted.steps if step.stage), None) if wanted else None
    for step in job.steps:
        gpus = step.place(arrays).hardware.gpu_count
        if step.script in without and gpus:
            yield StepOnGpus(step.title, step.script == first, step.nodes, gpus, step.minutes / 60)


def _download_hours(settings: dict[str, str]) -> float | None:
    """From Hugging Face, at the pace of the job, in the windows of its limit."""
    files, source = whole(settings.get("DATASET_FILES")), settings.get("DATASET_URL", "")
    if files is None or not (source == "" or source.startswith(_HUGGING_FACE)):
        return None
    pace = whole(settings.get("DOWNLOADS_PER_5_MINUTES")) or allowed_requests()
    return math.ceil(files / pace) * int(catalog.training().downloads.window_s) / 3600
