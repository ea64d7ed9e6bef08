"""Whether the nodes of this cluster need a third-party file; what they do not need is not reported."""

from __future__ import annotations

from collections.abc import Iterable

from .. import catalog
from ..blobs.pins import pinned
from ..projects.local import CarriedBlob
from .types import BlobPlan


def with_need(blobs: Iterable[CarriedBlob], slurm_project: str) -> tuple[BlobPlan, ...]:
    """The blobs of a project in a cluster with this version of cyclecloud-slurm."""
    lacks_containers = not _brings_containers(slurm_project)
    return tuple(
        BlobPlan(
            blob.file,
            blob.version,
            blob.sha256,
            blob.size_bytes,
            blob.state,
            is_needed=lacks_containers or pinned()[blob.file].needed == "always",
        )
        for blob in blobs
    )


def _brings_containers(slurm_project: str) -> bool:
    """Whether the Slurm project carries enroot and pyxis to every node, as since 4.0.3; False if that is unknown."""
    project = catalog.slurm_project(slurm_project)
    return project is not None and project.carries_containers
