"""Node attributes: how a definition reaches the scripts of our projects, which are the same for every definition."""

from __future__ import annotations

from collections.abc import Iterable

from ..catalog.sizes import VmSize
from ..definition.model.slurm import NodeProjects, Value
from .assignment import GPU_NODE, SpecRef
from .mig import MigPlan, mig_attributes
from .size_facts import base_attributes, check_attributes
from .storage import FileSystems

NVME_MOUNT_POINT = "/nvme"
"""Where CycleCloud 8.8 and later mount NVMe disks and where cyclecloud-slurm looks for enroot's scratch space."""


def node_attributes(
    role: str,
    node: NodeProjects,
    sizes: tuple[VmSize, ...],
    specs: Iterable[SpecRef],
    shared: FileSystems,
    mig: MigPlan | None = None,
) -> tuple[tuple[str, Value], ...]:
    """The `[[[configuration]]]` keys of a role, sorted: ours, then the definition's own, which win.

    Nodes that run jobs are told about their VM size whichever projects they have, because an operator may attach more
    of them in the portal; other roles where a project that reads it is attached.
    """
    values: dict[str, Value] = {}
    if role == "execute" or any(spec.project == GPU_NODE for spec in specs):
        values |= base_attributes(sizes)
    if role == "execute":
        values |= check_attributes(sizes, mig) | mig_attributes(mig)
        values["cycleforge.mounts"] = " ".join(shared.checked_mount_points)
        if any(size.gpu_count or size.nvme_count for size in sizes):
            values["cycleforge.nvme.mount_point"] = NVME_MOUNT_POINT
    return tuple(sorted((values | node.configuration).items()))
