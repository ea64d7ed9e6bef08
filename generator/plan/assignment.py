"""Which cluster-init projects run on which node, and in which order."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from ..catalog.sizes import VmSize
from ..definition.model.slurm import NodeProjects

FIRST_ORDER, ORDER_STEP = 10000, 100
"""CycleCloud gives built-in specs 1000 and up; specs added to a cluster start at 10000 in steps of 100.

Source: https://github.com/Azure/cyclecloud-slurm-workspace (create_cc_param.py at 2026.07.02)
"""
BASE, GPU_NODE, CONTAINERS, HEALTH = "misc_ubuntu", "misc_ndv4", "pyxis_enroot", "slurm_nhc"
POLICY = "slurm_policy"
"""On the scheduler of every definition with a policy: it is not a choice, the policy would not hold without it."""
DEFAULT_SPEC = "default"


class SpecRef(Struct, frozen=True):
    """One cluster-init spec of a role, in template order."""

    project: str
    spec: str
    version: str
    order: int
    """CycleCloud's Order; own specs start at 10000 and rise by 100."""

    @property
    def key(self) -> str:
        """`project:spec:version`, as CycleCloud writes it."""
        return f"{self.project}:{self.spec}:{self.version}"


def is_checked(hardware: VmSize) -> bool:
    """Whether nodes of the size run health checks: a sick GPU or link spoils jobs that span nodes."""
    return hardware.gpu_count > 0 or hardware.infiniband


def chosen_projects(role: str, hardware: VmSize, *, nodes_are_checked: bool) -> tuple[str, ...]:
    """The projects of a role unless the definition says otherwise.

    The base comes first, because it stops upgrades that would hold the package lock; the disks come before the
    containers and health checks that use them. `nodes_are_checked`: some partition's size is (`is_checked`), and the
    scheduler has the job hooks of the checks.
    """
    if role == "scheduler":
        return (BASE, CONTAINERS, HEALTH) if nodes_are_checked else (BASE, CONTAINERS)
    if role == "login":
        return (BASE, CONTAINERS)
    base = (BASE, GPU_NODE) if hardware.gpu_count or hardware.nvme_count else (BASE,)
    return (*base, CONTAINERS, HEALTH) if is_checked(hardware) else (*base, CONTAINERS)


def specs_of(
    role: str,
    node: NodeProjects,
    hardware: VmSize,
    versions: Mapping[str, str],
    *,
    nodes_are_checked: bool,
    needed: tuple[str, ...] = (),
) -> tuple[SpecRef, ...]:
    """The role's specs in order, those that it cannot do without last; a project named twice runs once, at its first
    place."""
    chosen = (
        node.projects
        if node.projects is not None
        else chosen_projects(role, hardware, nodes_are_checked=nodes_are_checked)
    )
    wanted = dict.fromkeys(_split(text) for text in (*chosen, *node.extra_projects, *needed))
    return tuple(
        SpecRef(project, spec, versions.get(project, ""), FIRST_ORDER + ORDER_STEP * place)
        for place, (project, spec) in enumerate(wanted)
    )


def _split(text: str) -> tuple[str, str]:
    project, _, spec = text.partition(":")
    return project, spec or DEFAULT_SPEC
