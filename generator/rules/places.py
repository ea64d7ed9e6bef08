"""Where something is in a definition, and whether its author wrote it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..definition.model.definition import Job
from ..definition.model.slurm import Partition
from .base import Path, Site

SCHEDULER: Path = ("slurm", "scheduler")
LOGIN: Path = ("slurm", "login")
PARTITIONS: Path = ("slurm", "partitions")


def given(site: Site, path: Path) -> bool:
    """Whether the user wrote a value at this path."""
    data: Any = site.data
    for step in path:
        in_list = isinstance(data, list) and isinstance(step, int) and 0 <= step < len(data)
        if not in_list and not (isinstance(data, Mapping) and step in data):
            return False
        data = data[step]
    return data is not None


def first_given(site: Site, *paths: Path) -> Path:
    """The first path that the user wrote; else the last one, whose section the position falls back to."""
    return next((path for path in paths if given(site, path)), paths[-1])


def listed_jobs(site: Site) -> Iterator[tuple[Path, Job]]:
    """The jobs that the definition lists, with their paths."""
    jobs = site.definition.jobs
    lists = {"validation": jobs.validation or [], "add_validation": jobs.add_validation, "training": jobs.training}
    for kind, entries in lists.items():
        for index, job in enumerate(entries):
            yield ("jobs", kind, index), job


def partitions(site: Site) -> Iterator[tuple[Path, Partition]]:
    """The partitions with their paths; none without a cluster."""
    slurm = site.definition.slurm
    for index, partition in enumerate(slurm.partitions if slurm else ()):
        yield (*PARTITIONS, index), partition
