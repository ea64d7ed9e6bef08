"""Node attributes: how a definition reaches the scripts of our projects, which are the same for every definition."""

from __future__ import annotations

from ..catalog.sizes import VmSize
from ..definition.model.definition import Definition
from ..definition.model.slurm import NodeProjects, Value
from .storage import file_systems

NVME_MOUNT_POINT = "/nvme"
"""Where CycleCloud 8.8 and later mount NVMe disks and where cyclecloud-slurm looks for enroot's scratch space."""


def node_attributes(
    definition: Definition, role: str, node: NodeProjects, hardware: VmSize
) -> tuple[tuple[str, Value], ...]:
    """The `[[[configuration]]]` keys of a role, sorted: ours, then the definition's own, which win."""
    values: dict[str, Value] = {}
    if role == "execute":
        values["cycleforge.mounts"] = " ".join(file_systems(definition).checked_mount_points)
        if hardware.gpu_count or hardware.nvme_count:
            values["cycleforge.nvme.mount_point"] = NVME_MOUNT_POINT
        if hardware.nvme_count is not None:
            values["cycleforge.nvme.disks"] = hardware.nvme_count
    return tuple(sorted((values | node.configuration).items()))
