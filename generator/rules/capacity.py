"""Rules about where training jobs write: is it shared, and do the checkpoints fit?"""

from __future__ import annotations

from collections.abc import Iterator

from ..plan.types import Plan
from ..problems.problem import Problem
from .base import PlanRule
from .training import setting_path, training_jobs

_TIB = 1024**4


def _tib(size_bytes: int) -> str:
    return f"{size_bytes / _TIB:.2f} TiB"


class CheckpointsDoNotFit(PlanRule):
    id = "E1690"
    summary = "The checkpoints that a training job keeps do not fit on their file system."
    why = "The job runs for hours and then fails when it writes the checkpoint that no longer fits."
    fix = "Enlarge the file system, or keep fewer checkpoints: settings: {KEEP_CHECKPOINTS: …} of the job."
    source = "https://github.com/Azure/ai-infrastructure-on-azure"

    def check(self, plan: Plan) -> Iterator[Problem]:
        for path, job in training_jobs(plan):
            figures = job.checkpoint
            if figures is None or figures.capacity_bytes is None or not figures.is_written:
                continue
            if figures.needed_bytes <= figures.capacity_bytes:
                continue
            text = (
                f"training job '{job.name}' keeps {figures.kept} checkpoints of {_tib(figures.checkpoint_bytes)}, "
                f"{_tib(figures.needed_bytes)} in all; {job.file_system}, where they go, has "
                f"{_tib(figures.capacity_bytes)}"
            )
            yield self.problem(path, text, self.fix)


class FolderIsNotShared(PlanRule):
    id = "W1694"
    summary = "The folder of a training job is not on a shared file system of the definition."
    why = (
        "Every node of the job reads its image and data there and writes its part of a checkpoint. A folder on a "
        "node's own disks is empty on the others and gone with the node; whether checkpoints fit cannot be said."
    )
    fix = "Name a folder below a mount of storage.mounts or below /shared, or leave DATA_DIR out."
    source = "https://github.com/Azure/ai-infrastructure-on-azure"

    def check(self, plan: Plan) -> Iterator[Problem]:
        shared = ", ".join(mount.path for mount in (*plan.mounts, *((plan.slurm.home,) if plan.slurm else ())))
        for path, job in training_jobs(plan):
            if job.file_system is None:
                folder = dict(job.settings)["STAGE_PATH"]
                text = f"training job '{job.name}' works in {folder}, which is on none of the file systems {shared}"
                yield self.problem(setting_path(plan, path, "DATA_DIR", "STAGE_PATH"), text, self.fix)
