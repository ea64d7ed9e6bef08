"""Job folders: everything that their files say."""

from __future__ import annotations

from typing import Literal

from ...recipes.checkpoints import CheckpointPlan
from ...records import record

__all__ = ["CheckpointPlan", "JobPlan", "StepPlan"]


@record
class StepPlan:
    """One batch job of a job folder: a file for sbatch that runs one of the recipe's scripts."""

    script: str
    file: str
    title: str
    options: tuple[tuple[str, str | int | bool], ...]
    """Options of sbatch in the order in which the file has them; true is an option without a value."""


@record
class JobPlan:
    """One job folder below `jobs/`; `recipe` names the source folder `recipes/<recipe>`."""

    name: str
    kind: Literal["validation", "training"]
    recipe: str
    title: str
    node_array: str
    partition: str
    vm_size: str
    nodes: int
    model: str | None
    """The model that is trained, as the recipe knows it."""
    settings: tuple[tuple[str, str], ...]
    """Every line of the job's `settings.env`, sorted."""
    nccl: tuple[tuple[str, str], ...]
    """Every line of the job's `nccl.env`, sorted: NCCL, UCX and SHARP variables of the VM size."""
    steps: tuple[StepPlan, ...]
    """In the order in which they are submitted; the last one is the job itself."""
    commands: tuple[str, ...]
    """Shell lines that submit all steps, from the home folder that `jobs/` was copied into."""
    file_system: str | None
    """Mount point of the shared file system that `STAGE_PATH` (images, data, checkpoints) is on; None = on none."""
    checkpoint: CheckpointPlan | None
