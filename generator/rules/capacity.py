"""Rules about where training jobs write: is it shared, and do the checkpoints fit?"""

from __future__ import annotations

from collections.abc import Iterator

from .. import catalog
from ..plan.deployment import Plan
from ..plan.job_settings import whole
from ..plan.ledger import LedgerPlan
from ..problems.problem import Problem
from .base import Path, PlanRule
from .training import setting_path, training_jobs

_SOURCE = "https://github.com/Azure/ai-infrastructure-on-azure"
_WAYS = {
    "checkpoints": "keep fewer checkpoints: settings: {KEEP_CHECKPOINTS: …} of the job",
    "data": "take a part of the data: settings: {DATASET_FILES: …} of the job",
}
_MORE_ROOM = f"Enlarge the file system, or {_WAYS['checkpoints']}."


def _tb(size_bytes: float) -> str:
    return f"{size_bytes / 1e12:,.2f} TB"


def _by_kind(ledger: LedgerPlan) -> list[tuple[str, int]]:
    """What is on the file system, the largest first."""
    sums: dict[str, int] = {}
    for entry in ledger.rows:
        kind = entry.what.split(":")[0]
        sums[kind] = sums.get(kind, 0) + entry.needed_bytes
    return sorted(sums.items(), key=lambda each: -each[1])


def _summary(ledger: LedgerPlan) -> str:
    return ", ".join(f"{kind} {_tb(size)}" for kind, size in _by_kind(ledger))


def _more_room(plan: Plan, ledger: LedgerPlan) -> str:
    """What helps with the largest part, as far as its job can be told."""
    kind = _by_kind(ledger)[0][0]
    jobs = {entry.job for entry in ledger.rows if entry.what.split(":")[0] == kind}
    takes_a_part = any("DATASET_FILES" in dict(job.settings) for job in plan.jobs if job.name in jobs)
    if kind == "data" and not takes_a_part:
        return "Enlarge the file system, or choose a smaller corpus: settings: {DATA: …} of the job."
    return f"Enlarge the file system, or {_WAYS.get(kind, _WAYS['checkpoints'])}."


def _largest_user(plan: Plan, ledger: LedgerPlan) -> Path:
    """The training job that keeps most there."""
    sums: dict[str, int] = {}
    for entry in ledger.rows:
        sums[entry.job] = sums.get(entry.job, 0) + entry.needed_bytes
    return next(path for path, job in training_jobs(plan) if job.name == max(sums, key=lambda name: sums[name]))


class FileSystemIsTooSmall(PlanRule):
    id = "E1690"
    summary = "What the training jobs keep on a file system does not fit."
    why = (
        "Images, every stage of the data, and the checkpoints that are kept plus the one being written are counted. "
        "A job would run for hours and then fail when it writes what no longer fits."
    )
    fix = _MORE_ROOM
    source = _SOURCE

    def check(self, plan: Plan) -> Iterator[Problem]:
        for ledger in plan.ledgers:
            if ledger.capacity_bytes and ledger.needed_bytes > ledger.capacity_bytes:
                text = (
                    f"training jobs keep {_tb(ledger.needed_bytes)} on {ledger.path} ({_summary(ledger)}); "
                    f"it has {_tb(ledger.capacity_bytes)}"
                )
                yield self.problem(_largest_user(plan, ledger), text, _more_room(plan, ledger))


class FileSystemIsNearlyFull(PlanRule):
    id = "W1697"
    summary = "What the training jobs keep leaves little of a file system."
    why = (
        "The servers of a parallel file system fill unevenly: one is full, and writes fail, before the whole is. Other "
        "users and logs are not counted."
    )
    fix = _MORE_ROOM
    source = _SOURCE

    def check(self, plan: Plan) -> Iterator[Problem]:
        share = catalog.training().ledger.warn_share
        for ledger in plan.ledgers:
            if ledger.share is not None and share <= ledger.share <= 1:
                text = (
                    f"training jobs keep {_tb(ledger.needed_bytes)} on {ledger.path} ({_summary(ledger)}), "
                    f"{ledger.share:.0%} of its {_tb(ledger.capacity_bytes or 0)}"
                )
                yield self.problem(_largest_user(plan, ledger), text, _more_room(plan, ledger))


class CheckpointIsSlow(PlanRule):
    id = "W1698"
    summary = "A checkpoint of a training job takes longer than it may."
    why = (
        "All GPUs wait until it is written, unless the framework writes in the background, and a job that must stop "
        "has to write one before its time ends. The figure is a floor: nothing else uses the file system meanwhile."
    )
    fix = "Choose a faster tier or a larger file system, or allow it: settings: {CHECKPOINT_MAX_SECONDS: …}."
    source = _SOURCE

    def check(self, plan: Plan) -> Iterator[Problem]:
        for path, job in training_jobs(plan):
            found, most = job.checkpoint, whole(dict(job.settings).get("CHECKPOINT_MAX_SECONDS"))
            if found is None or not found.is_written or not found.seconds_per_checkpoint or not most:
                continue
            if found.seconds_per_checkpoint <= most:
                continue
            one_file = found.file_gb_per_s is not None and found.file_gb_per_s < (found.bandwidth_gb_per_s or 1e9)
            rate = found.file_gb_per_s if one_file else found.bandwidth_gb_per_s
            how = (
                f"as one file at {rate:g} GB/s" if one_file else f"at the {rate:g} GB/s of {job.checkpoint_file_system}"
            )
            text = (
                f"training job '{job.name}' needs at least {found.seconds_per_checkpoint:,.0f} s for a checkpoint of "
                f"{_tb(found.checkpoint_bytes)} {how}; at most {most} s are allowed"
            )
            # Only a recipe whose framework can write the whole state as one file has the setting.
            hint = f"CHECKPOINT_STATE: sharded writes one file per rank. {self.fix}" if one_file else self.fix
            yield self.problem(setting_path(plan, path, "CHECKPOINT_MAX_SECONDS", "CHECKPOINT_STATE"), text, hint)


class FolderIsNotShared(PlanRule):
    id = "W1694"
    summary = "The folder of a training job is not on a shared file system of the definition."
    why = (
        "Every node of the job reads its image and data there and writes its part of a checkpoint. A folder on a "
        "node's own disks is empty on the others and gone with the node; whether checkpoints fit cannot be said."
    )
    fix = "Name a folder below a mount of storage.mounts or below /shared, or leave DATA_DIR and CHECKPOINT_DIR out."
    source = "https://github.com/Azure/ai-infrastructure-on-azure"

    def check(self, plan: Plan) -> Iterator[Problem]:
        shared = ", ".join(mount.path for mount in (*plan.mounts, *((plan.slurm.home,) if plan.slurm else ())))
        for path, job in training_jobs(plan):
            if job.file_system is None:
                folder = dict(job.settings)["STAGE_PATH"]
                text = f"training job '{job.name}' works in {folder}, which is on none of the file systems {shared}"
                yield self.problem(setting_path(plan, path, "DATA_DIR", "STAGE_PATH"), text, self.fix)
            folder = dict(job.settings).get("CHECKPOINT_DIR", "")
            if folder and job.checkpoint is not None and job.checkpoint_file_system is None:
                text = f"training job '{job.name}' writes its checkpoints to {folder}, which is on none of {shared}"
                yield self.problem(setting_path(plan, path, "CHECKPOINT_DIR"), text, self.fix)
