"""Checkpoints of the training recipes: how large they are, whether the kept ones fit, how long writing one takes."""

from __future__ import annotations

from ..records import record
from .intervals import checkpoint_interval
from .models import Model, family


@record
class CheckpointPlan:
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
    """What one file takes, where the job writes a checkpoint as one; None: it does not, or nobody knows it."""
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
