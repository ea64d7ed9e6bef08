"""One ledger per file system: images, data and checkpoints of all training jobs, in bytes, against its capacity."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from msgspec import Struct

from .. import catalog
from ..recipes import Recipe, models, recipe, recipe_names
from ..recipes.checkpoints import CheckpointPlan, checkpoint
from .file_systems.base import FileSystem
from .job_settings import image_name, squash_bytes, whole
from .jobs import JobPlan

_GIB = 1024**3


class LedgerEntry(Struct, frozen=True):
    """One thing on the file system, in bytes."""

    job: str
    """The first of those that share it."""
    what: str
    """`image`, `data: <stage>`, `data` of an unknown size, `checkpoints`, or `checkpoints: <model>` of a check."""
    needed_bytes: int
    how: str
    """How it was calculated, in words."""


class LedgerPlan(Struct, frozen=True):
    """All that training jobs keep on one file system, against what it holds."""

    path: str
    rows: tuple[LedgerEntry, ...]
    capacity_bytes: int | None
    """None where the definition does not know it, as of a storage account."""

    @property
    def needed_bytes(self) -> int:
        """All rows."""
        return sum(entry.needed_bytes for entry in self.rows)

    @property
    def share(self) -> float | None:
        """Of the capacity."""
        return self.needed_bytes / self.capacity_bytes if self.capacity_bytes else None


def ledgers(jobs: tuple[JobPlan, ...], mounts: tuple[FileSystem, ...]) -> tuple[LedgerPlan, ...]:
    """Of every file system that a training job works on, in the order of the mounts."""
    training = [job for job in jobs if job.kind == "training"]
    found = []
    for mount in mounts:
        rows = _rows(training, mount.path)
        if rows:
            capacity = mount.size_gib * _GIB if mount.size_gib else None
            found.append(LedgerPlan(mount.path, rows, capacity))
    return tuple(found)


def _rows(jobs: list[JobPlan], mount: str) -> tuple[LedgerEntry, ...]:
    """What jobs of one folder share is there once, and is of the first of them that keeps most."""
    rows: dict[tuple[str, ...], LedgerEntry] = {}
    for job in jobs:
        settings = dict(job.settings)
        found = (*_image(job.name, settings), *_data(job.name, settings)) if job.file_system == mount else ()
        for row in found:
            key = (settings["STAGE_PATH"], row.what, row.how)
            if key not in rows or rows[key].needed_bytes < row.needed_bytes:
                rows[key] = row
        for row in _checkpoints(job) if job.checkpoint_file_system == mount else ():
            rows[job.name, row.what] = row
    return tuple(rows.values())


def _image(job: str, settings: dict[str, str]) -> Iterator[LedgerEntry]:
    container = settings.get("CONTAINER", "")
    size = squash_bytes(container)
    if size is not None:
        yield LedgerEntry(job, "image", size, f"{image_name(container)} as a squash file")


def _data(job: str, settings: dict[str, str]) -> Iterator[LedgerEntry]:
    """Each stage of the data; synthetic data takes nothing, and what nobody measured is a row without a size."""
    name = settings.get("DATA", "")
    if name in ("", "mock"):
        return
    family = _family(settings)
    row = catalog.training().data_sets.get(f"{family} {name}")
    if row is None:
        yield LedgerEntry(job, "data", 0, f"{name}: its size is not known, and not counted")
        return
    part = _part_of_data(family, settings)
    for stage in _stages(family):
        yield LedgerEntry(job, f"data: {stage}", round(row.stages[stage] * part), name)


def _part_of_data(family: str, settings: dict[str, str]) -> float:
    """So much of the corpus a job takes: the recipe that fetches it names all of its files."""
    wanted = whole(settings.get("DATASET_FILES"))
    every = max((whole(dict(each.default_settings).get("DATASET_FILES")) or 0 for each in _recipes(family)), default=0)
    return 1 if wanted is None or not every else min(wanted / every, 1)


@cache
def _stages(family: str) -> tuple[str, ...]:
    """What steps leave of the data, in their order; one recipe of each family has them, and others read the last."""
    return tuple(step.stage for each in _recipes(family) for step in each.steps if step.stage)


@cache
def _recipes(family: str) -> tuple[Recipe, ...]:
    found = [each for each in map(recipe, recipe_names("training")) if each]
    return tuple(each for each in found if _family(dict(each.default_settings)) == family)


def _family(settings: dict[str, str]) -> str:
    return "megatron" if "MEGATRON_COMMIT" in settings else "llm-foundry"


def _checkpoints(job: JobPlan) -> Iterator[LedgerEntry]:
    """Of the job, and of the smaller models that its steps train first."""
    for step in job.steps:
        # A step has for its own only what differs from the job's.
        own = dict(job.settings) | dict(step.settings)
        shape = models.model(dict(step.settings).get("MODEL", ""))
        if shape is not None and own.get("SAVE_INTERVAL") != "0":
            yield _written(job.name, f"checkpoints: {shape.name}", checkpoint(shape, int(own["KEEP_CHECKPOINTS"])))
    written = job.checkpoint
    if written is not None and written.is_written:
        yield _written(job.name, "checkpoints", written)


def _written(job: str, what: str, written: CheckpointPlan) -> LedgerEntry:
    how = f"({written.kept} kept + 1 being written) x {written.checkpoint_bytes / 1e9:,.0f} GB"
    return LedgerEntry(job, what, written.peak_bytes, how)
