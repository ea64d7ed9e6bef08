"""How long a node that slurm_nhc has drained keeps its VM, and what that costs."""

from __future__ import annotations

from collections.abc import Iterable

from ..definition.model.slurm import Slurm
from .assignment import HEALTH
from .types import SpecRef

HAND_BACK = "cycleforge.health.hand_back_h"
"""Attribute of the scheduler, whose program of slurm_nhc hands the VMs back."""


def hand_back_h(slurm: Slurm, scheduler_specs: Iterable[SpecRef]) -> int | None:
    """Hours after which the scheduler hands a drained VM back; 0: only a person does; None: nothing there could.

    In a static pool nobody but a person: its owner pays for VMs that stay, what comes back may be nothing where Azure
    has no capacity, and no power saving starts a node again.
    """
    if not any(spec.project == HEALTH for spec in scheduler_specs):
        return None
    return slurm.hand_back_after_h if slurm.autoscale else 0
