"""Whether the nodes of this cluster need a file of somebody else; what they do not need is nothing to speak of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from generator import catalog
from generator.blobs.pins import pinned
from generator.plan.types import BlobPlan, SlurmPlan


def with_need(blobs: Iterable[BlobPlan], images: Iterable[str], slurm: SlurmPlan, release: str) -> tuple[BlobPlan, ...]:
    """The blobs of a project that runs on nodes with these images."""
    lacks_containers = any(not _brings_containers(image, slurm.project_version, release) for image in set(images))
    return tuple(replace(blob, is_needed=lacks_containers or pinned()[blob.file].needed == "always") for blob in blobs)


def _brings_containers(image: str, project_version: str, release: str) -> bool:
    """Whether cyclecloud-slurm sets up enroot and pyxis on an image; False when nobody knows."""
    row = catalog.image(image)
    if row is None:
        row = catalog.images()["hpc_marketplace"].get(f"{image.rpartition(':')[0]}:latest".lower())
    if row is None:
        return False
    systems = (catalog.slurm_project(project_version) or {}).get("os") or (catalog.release(release) or {}).get("os")
    return any(system["os"] == row["os"] and system.get("enroot_pyxis") for system in systems or ())
