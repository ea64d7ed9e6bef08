"""Checkpoints of the training recipes: their size, whether the kept ones fit, and how often one should be written."""

from __future__ import annotations

from math import sqrt

from msgspec import Struct

from .models import Model, family


class CheckpointPlan(Struct, frozen=True):
    """Checkpoint arithmetic of one training job (sizes in bytes, bandwidth in 10^9 bytes/s)."""

    parameters: int
    bytes_per_parameter: int
    checkpoint_bytes: int
    kept: int
    """How many are on the file system at once."""
    needed_bytes: int
    capacity_bytes: int | None
    """Of the file system that they go to; None where the definition does not know it."""
    bandwidth_gb_per_s: float | None
    file_gb_per_s: float | None
    """What one file takes, where the job writes a checkpoint as one; None: it does not, or the rate is unknown."""
    seconds_per_checkpoint: float | None
    """A floor: the whole bandwidth is there for it."""
    is_written: bool
    """False: the job writes none unless its submitter asks for them."""
    failure_s: float | None
    """Mean time between two failures of the job; None without GPUs, or if the job does not say how often they fail."""
    interval_s: float | None
    """Seconds of training between two checkpoints that lose least; None where the cost or the failures are unknown."""

    @property
    def peak_bytes(self) -> int:
        """While one is written: the oldest goes only when the new one is complete."""
        return self.needed_bytes + self.checkpoint_bytes


def checkpoint(
    shape: Model,
    kept: int,
    capacity_bytes: int | None = None,
    bandwidth_gb_per_s: float | None = None,
    *,
    is_written: bool = True,
    failure_s: float | None = None,
    file_gb_per_s: float | None = None,
) -> CheckpointPlan:
    """Size of one checkpoint and of all that are kept, and how often one should be written.

    `bandwidth_gb_per_s` (10^9 bytes/s) is that of the file system, `file_gb_per_s` that of one file, where the whole
    checkpoint is one: the seconds are a floor that assumes all of the smaller one.
    """
    per_parameter = int(family(shape).checkpoint_bytes_per_parameter.value)
    size = shape.parameters * per_parameter
    rate = min((each for each in (bandwidth_gb_per_s, file_gb_per_s) if each), default=None)
    seconds = size / (rate * 1e9) if rate else None
    return CheckpointPlan(
        parameters=shape.parameters,
        bytes_per_parameter=per_parameter,
        checkpoint_bytes=size,
        kept=kept,
        needed_bytes=size * kept,
        capacity_bytes=capacity_bytes,
        bandwidth_gb_per_s=bandwidth_gb_per_s,
        file_gb_per_s=file_gb_per_s,
        seconds_per_checkpoint=seconds,
        is_written=is_written,
        failure_s=failure_s,
        interval_s=checkpoint_interval(seconds, failure_s) if seconds and failure_s else None,
    )


def seconds_between_failures(gpus: int, gpu_hours_per_failure: float) -> float:
    """Mean time between two failures of a job on so many GPUs: each of them can end it."""
    return gpu_hours_per_failure * 3600 / gpus


def checkpoint_interval(cost_s: float, failures_s: float) -> float:
    """Seconds of training between two checkpoints that lose least, if writing one stops the training for `cost_s`.

    Young's square root of 2·C·M with Daly's terms of higher order; M itself where a checkpoint takes twice as long or
    longer. Source: J. T. Daly, A higher order estimate of the optimum checkpoint interval for restart dumps (2006),
    equation 37, https://doi.org/10.1016/j.future.2004.11.016.
    """
    if cost_s >= 2 * failures_s:
        return failures_s
    share = cost_s / (2 * failures_s)
    return sqrt(2 * cost_s * failures_s) * (1 + sqrt(share) / 3 + share / 9) - cost_s
