"""The machines of a definition: server, jumpbox, and the roles of the cluster with their sizes and images."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from ..catalog.sizes import VmSize
from ..definition.model.slurm import NodeProjects, Partition, Slurm
from ..plan import nodes
from ..plan.computed import computed_once
from ..plan.fleet import Machines, fleet
from ..plan.nodes import deciding_size, image_of
from .base import Path, Site, first_given, quoted

VM_SIZE: Path = ("vm_size",)


class Machine(Struct, frozen=True):
    """One VM size of the definition: of a role of the cluster, the server or the jumpbox."""

    label: str
    path: Path
    """Path of the section that holds the VM size."""
    vm_size: str
    size_key: Path
    """Where in that section the size is."""

    @property
    def size_path(self) -> Path:
        return (*self.path, *self.size_key)


class RoleNode(Machine, frozen=True):
    """A role whose nodes run projects."""

    settings: NodeProjects
    image: str
    image_path: Path
    """Where the image is written: at the role, at `slurm.image`, or (default image) the VM size."""

    @property
    def partition(self) -> Partition | None:
        return self.settings if isinstance(self.settings, Partition) else None


def partition_label(partition: Partition) -> str:
    return f"partition {quoted(partition.name)}"


@computed_once
def _of_all_sizes(site: Site) -> tuple[RoleNode, ...]:
    slurm = site.definition.slurm
    nodes = (each for each in fleet(site.definition) if each.is_node)
    return tuple(_role(site, slurm, each) for each in nodes) if slurm is not None else ()


def _role(site: Site, slurm: Slurm, machines: Machines) -> RoleNode:
    settings: NodeProjects = slurm.scheduler if machines.role == "scheduler" else slurm.login
    label, sizes = machines.label, [machines.hardware]
    if machines.role == "partition":
        settings = partition = slurm.partitions[int(machines.place[-1])]
        label, sizes = partition_label(partition), [site.vm_size(size) for size in partition.sizes]
    return RoleNode(
        label,
        machines.place,
        machines.vm_size,
        machines.size_key,
        settings,
        image_of(slurm, settings, deciding_size(tuple(sizes))),
        first_given(site, (*machines.place, "image"), ("slurm", "image"), (*machines.place, machines.size_key[0])),
    )


@computed_once
def roles(site: Site) -> tuple[RoleNode, ...]:
    """Scheduler, login nodes and partitions, each with its (first) VM size; none without a cluster."""
    found: dict[Path, RoleNode] = {}
    for node in _of_all_sizes(site):
        found.setdefault(node.path, node)
    return tuple(found.values())


@computed_once
def role_sizes(site: Site) -> tuple[RoleNode, ...]:
    """The roles, each as often as it has VM sizes: for what a single size may be wrong for."""
    return tuple(node for node in _of_all_sizes(site) if node.vm_size or node.size_key != VM_SIZE)


def known_sizes(site: Site, node: RoleNode) -> tuple[VmSize, ...]:
    """What is known of all VM sizes of a role."""
    names = node.partition.sizes if node.partition is not None else (node.vm_size,)
    return tuple(site.vm_size(name) for name in names)


def image_users(site: Site) -> Iterator[RoleNode]:
    """The roles, only one of those that take their image from `slurm.image`: for what depends on the image alone."""
    seen = False
    for node in roles(site):
        shared = node.image_path == ("slurm", "image")
        if not (shared and seen):
            yield replace(node, label="all roles without an image of their own") if shared else node
        seen = seen or shared


def machines(site: Site) -> Iterator[Machine]:
    """Everything that has a VM size: server, jumpbox, roles; a partition of several once for each."""
    for each in fleet(site.definition):
        if not each.is_node:
            yield Machine(each.label, each.place, each.vm_size, each.size_key)
    yield from role_sizes(site)


def is_hpc(site: Site, partition: Partition) -> bool:
    """Whether the partition's nodes share one placement group: as written, else where the size has InfiniBand."""
    return nodes.is_hpc(partition, tuple(site.vm_size(size) for size in partition.sizes))


def gpus(site: Site, vm_size: str) -> int:
    """GPUs of a size; 0 for an unknown one."""
    return site.vm_size(vm_size).gpu_count
