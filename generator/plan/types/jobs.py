"""Job folders and the arithmetic of their checkpoints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class CheckpointPlan:
    """Checkpoint arithmetic of one training job (sizes in bytes, bandwidth in 10^9 bytes/s)."""

    parameters: int
    bytes_per_parameter: int
    checkpoint_bytes: int
    kept: int
    needed_bytes: int
    capacity_bytes: int | None
    bandwidth_gb_per_s: float | None
    seconds_per_checkpoint: float | None


@dataclass(frozen=True)
class JobPlan:
    """One job folder below `jobs/`.

    `recipe` names the source folder `recipes/<recipe>`; `settings` is printed into the job's `settings.env`, sorted.
    """

    name: str
    kind: Literal["validation", "training"]
    recipe: str
    node_array: str
    nodes: int
    settings: tuple[tuple[str, str], ...]
    checkpoint: CheckpointPlan | None
