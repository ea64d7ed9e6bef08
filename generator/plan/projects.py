"""The cluster-init projects that travel with a deployment, and their third-party files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Literal

from msgspec import Struct

from .. import catalog
from ..blobs.pins import pinned
from ..projects.local import AvailableProject, CarriedBlob
from .cluster import SlurmPlan
from .nodes import LoginPlan, NodeArrayPlan, SchedulerPlan


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


def _users(projects: Mapping[str, AvailableProject], slurm: SlurmPlan | None) -> dict[str, list[str]]:
    """Project → the roles that run it; without a cluster the folders that the definition names, for later ones."""
    if slurm is None:
        return {name: [] for name, project in projects.items() if project.is_local}
    users: dict[str, list[str]] = {}
    nodes: list[tuple[str, SchedulerPlan | LoginPlan | NodeArrayPlan]] = [
        ("scheduler", slurm.scheduler),
        ("login", slurm.login),
        *((array.name, array) for array in slurm.node_arrays),
    ]
    for role, node in nodes:
        for spec in node.specs:
            if role not in users.setdefault(spec.project, []):
                users[spec.project].append(role)
    return users


def carried_projects(projects: Mapping[str, AvailableProject], slurm: SlurmPlan | None) -> tuple[ProjectPlan, ...]:
    """The projects that travel with the deployment, with the roles that run them."""
    users = _users(projects, slurm)
    return tuple(
        ProjectPlan(
            name,
            project.version,
            project.source,
            project.is_local,
            project.specs,
            tuple(users[name]),
            project.digest,
            with_need(project.blobs, slurm.project_version) if slurm else (),
        )
        for name, project in sorted(projects.items())
        if name in users
    )


class BlobPlan(Struct, frozen=True):
    """A third-party file that a shipped project uses; it travels when this machine has it (`present`)."""

    file: str
    version: str
    sha256: str
    size_bytes: int
    state: Literal["present", "missing", "damaged"]
    is_needed: bool = True
    """False: the nodes of this cluster do not look for it, for example because their Slurm project brings the same."""


class ProjectPlan(Struct, frozen=True):
    """A cluster-init project that travels with the deployment."""

    name: str
    version: str
    source: PurePosixPath
    """Folder relative to the assets root (shipped projects) or to the definition's folder (`is_local`)."""
    is_local: bool
    specs: tuple[str, ...]
    roles: tuple[str, ...]
    """Where it is attached: `scheduler`, `login` or the names of node arrays; for `plan` and the README."""
    digest: str
    """sha256 over the sorted relative paths and contents; of a third-party blob its pinned sha256 counts."""
    blobs: tuple[BlobPlan, ...] = ()
