"""Checkpoints of the training recipes: how large they are, whether the kept ones fit, how long writing one takes."""

from __future__ import annotations

from ..records import record
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
    seconds_per_checkpoint: float | None
    is_written: bool
    """False: the job writes none unless its submitter asks for them."""


def checkpoint(
    shape: Model,
    kept: int,
    capacity_bytes: int | None = None,
    bandwidth_gb_per_s: float | None = None,
    *,
    is_written: bool = True,
) -> CheckpointPlan:
    """Size of one checkpoint and of all that are kept.

    `bandwidth_gb_per_s` (10^9 bytes/s) is that of the file system: the seconds are a floor that assumes all of it.
    """
    per_parameter = int(family(shape)["checkpoint_bytes_per_parameter"]["value"])
    size = shape.parameters * per_parameter
    seconds = size / (bandwidth_gb_per_s * 1e9) if bandwidth_gb_per_s else None
    return CheckpointPlan(
        parameters=shape.parameters,
        bytes_per_parameter=per_parameter,
        checkpoint_bytes=size,
        kept=kept,
        needed_bytes=size * kept,
        capacity_bytes=capacity_bytes,
        bandwidth_gb_per_s=bandwidth_gb_per_s,
        seconds_per_checkpoint=seconds,
        is_written=is_written,
    )
