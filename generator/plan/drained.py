"""How long a node that slurm_nhc has drained keeps its VM, and what that costs."""

from __future__ import annotations

from collections.abc import Iterable

from ..definition.model.slurm import Slurm
from ..records import record
from .assignment import HEALTH
from .types import SlurmPlan, SpecRef

HAND_BACK = "cycleforge.health.hand_back_h"
"""Attribute of the scheduler, whose program of slurm_nhc hands the VMs back."""


CHECKS = "cycleforge.health.enabled"
"""Attribute of scheduler and nodes: whether slurm_nhc does anything there."""


def without_checks(slurm: Slurm, specs: Iterable[SpecRef]) -> dict[str, str | int | bool]:
    """The attribute of a role that takes checks and hooks of slurm_nhc away; the definition's own wins over it.

    The project stays attached, so that it removes what an earlier converge has put there.
    """
    if slurm.slurm_nhc or not any(spec.project == HEALTH for spec in specs):
        return {}
    return {CHECKS: False}


def hand_back_h(slurm: Slurm, scheduler_specs: Iterable[SpecRef]) -> int | None:
    """Hours after which the scheduler hands a drained VM back; 0: only a person does; None: nothing there could.

    In a static pool nobody but a person: it is chosen so that nothing stops a VM by itself, because Azure may have none
    to give in its place.
    """
    if not slurm.slurm_nhc or not any(spec.project == HEALTH for spec in scheduler_specs):
        return None
    return slurm.hand_back_after_h if slurm.autoscale else 0


@record
class DrainedNode:
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
