"""The machines of a definition: server, jumpbox, and the roles of the cluster with their sizes and images."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..definition.model.slurm import NodeProjects, Partition, Slurm
from ..plan.cluster import image_of
from ..records import computed_once, record
from .base import Path, Site
from .places import LOGIN, SCHEDULER, first_given, partitions
from .wording import quoted


@record
class Machine:
    """One VM size of the definition: of a role of the cluster, the server or the jumpbox."""

    label: str
    path: Path
    """Path of the section that holds `vm_size`."""
    vm_size: str

    @property
    def size_path(self) -> Path:
        """Path of the VM size."""
        return (*self.path, "vm_size")


@record
class RoleNode(Machine):
    """A role whose nodes run projects."""

    settings: NodeProjects
    image: str
    image_path: Path
    """Where the image is written: at the role, at `slurm.image`, or (default image) the VM size."""

    @property
    def partition(self) -> Partition | None:
        """The partition, when this is one."""
        return self.settings if isinstance(self.settings, Partition) else None


def partition_label(partition: Partition) -> str:
    """How messages name a partition."""
    return f"partition {quoted(partition.name)}"


@computed_once
def roles(site: Site) -> tuple[RoleNode, ...]:
    """Scheduler, login nodes and partitions; none without a cluster."""
    slurm = site.definition.slurm
    if slurm is None:
        return ()
    return (
        _role(site, slurm, "the scheduler", SCHEDULER, slurm.scheduler, slurm.scheduler.vm_size),
        _role(site, slurm, "the login nodes", LOGIN, slurm.login, slurm.login.vm_size),
        *(
            _role(site, slurm, partition_label(partition), path, partition, partition.vm_size)
            for path, partition in partitions(site)
        ),
    )


def _role(site: Site, slurm: Slurm, label: str, path: Path, settings: NodeProjects, vm_size: str) -> RoleNode:
    image = image_of(slurm, settings, site.vm_size(vm_size))
    return RoleNode(
        label,
        path,
        vm_size,
        settings,
        image,
        first_given(site, (*path, "image"), ("slurm", "image"), (*path, "vm_size")),
    )


def image_users(site: Site) -> Iterator[RoleNode]:
    """The roles, only one of those that take their image from `slurm.image`: for what depends on the image alone."""
    seen = False
    for node in roles(site):
        shared = node.image_path == ("slurm", "image")
        if not (shared and seen):
            yield replace(node, label="all roles without an image of their own") if shared else node
        seen = seen or shared


def machines(site: Site) -> Iterator[Machine]:
    """Everything that has a VM size: server, jumpbox, roles."""
    server = site.definition.server
    if server.existing is None:
        yield Machine("the CycleCloud server", ("server",), server.vm_size)
    if server.jumpbox is not None:
        yield Machine("the jumpbox", ("server", "jumpbox"), server.jumpbox.vm_size)
    yield from roles(site)


def is_hpc(site: Site, partition: Partition) -> bool:
    """Whether the partition's nodes share one placement group: as written, else where the size has InfiniBand."""
    if partition.hpc is not None:
        return partition.hpc
    return site.vm_size(partition.vm_size).infiniband


def gpus(site: Site, vm_size: str) -> int:
    """GPUs of a size; 0 for an unknown one."""
    return site.vm_size(vm_size).gpu_count
