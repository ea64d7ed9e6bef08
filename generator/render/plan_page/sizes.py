"""The VM sizes of a plan: what one node has."""

from __future__ import annotations

from typing import TypeAlias

from ...pages.blocks import Cell, Part, Table, columns, figure
from ...plan.types import LoginPlan, NodeArrayPlan, Plan, SchedulerPlan, SlurmPlan

_Nodes: TypeAlias = SchedulerPlan | LoginPlan | NodeArrayPlan


def part(plan: Plan) -> Part | None:
    """Each size once, with who uses it."""
    if plan.slurm is None:
        return None
    rows = []
    for name, (nodes, users) in _users(plan.slurm).items():
        hardware = nodes.hardware
        gpus = f"{hardware.gpu_count} × {hardware.gpu_model or 'GPU'}" if hardware.gpu_count else ""
        if gpus and hardware.gpu_memory_gb:
            gpus += f", {hardware.gpu_memory_gb} GB each"
        fabric = ""
        if hardware.infiniband_nics:
            rate = hardware.infiniband_gbps_per_nic
            fabric = f"{hardware.infiniband_nics} × {rate} Gb/s" if rate else f"{hardware.infiniband_nics} ports"
        rows.append(
            [
                Cell(name, "name"),
                Cell(", ".join(users)),
                figure(f"{hardware.vcpus:,}" if hardware.vcpus else "", hardware.vcpus),
                figure(f"{hardware.memory_gib:,.0f} GiB" if hardware.memory_gib else "", hardware.memory_gib),
                Cell(gpus, "", str(hardware.gpu_count)),
                Cell(fabric, "", str(hardware.infiniband_nics)),
                Cell(f"{hardware.nvme_count} disks" if hardware.nvme_count else ""),
                Cell(hardware.quota_family or ""),
                Cell(hardware.retirement or ""),
            ]
        )
    head = columns(
        "VM size", "used by", "vCPUs#", "memory#", "GPUs", "InfiniBand", "local NVMe", "quota family", "retires"
    )
    intro = "What the catalogue or the definition knows of one node; an empty cell is not known, or not there."
    return Part("sizes", "VM sizes", (Table(head, rows),), intro)


def _users(slurm: SlurmPlan) -> dict[str, tuple[_Nodes, list[str]]]:
    """Name of a size → one of its users, and the roles of all."""
    found: dict[str, tuple[_Nodes, list[str]]] = {}
    roles: list[tuple[str, _Nodes]] = [("scheduler", slurm.scheduler)]
    if slurm.login.max_count:
        roles.append(("login", slurm.login))
    roles += [(array.partition, each) for array in slurm.node_arrays for each in array.of_each_size]
    for role, nodes in roles:
        found.setdefault(nodes.hardware.name, (nodes, []))[1].append(role)
    return found
