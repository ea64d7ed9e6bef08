"""How long a node that slurm_nhc has drained keeps its VM, and what that costs."""

from __future__ import annotations

from msgspec import Struct

from .assignment import HEALTH
from .cluster import SlurmPlan


class DrainedNode(Struct, frozen=True):
    """What one drained node of a partition costs."""

    partition: str
    vm_size: str
    gpus: int
    """GPU hours that each hour costs; 0: a node without GPUs."""
    gpu_hours: int | None
    """Until the VM is handed back; None: a person does it, or there are no GPUs."""


def drained_nodes(slurm: SlurmPlan) -> tuple[DrainedNode, ...]:
    """Every VM size of the partitions that slurm_nhc watches, with the price of waiting."""
    return tuple(
        DrainedNode(
            partition=array.partition,
            vm_size=each.vm_size,
            gpus=each.hardware.gpu_count,
            gpu_hours=slurm.hand_back_h * each.hardware.gpu_count or None if slurm.hand_back_h else None,
        )
        for array in slurm.node_arrays
        for each in array.of_each_size
        if any(spec.project == HEALTH for spec in array.specs)
    )
