"""The VM sizes of a plan: what one node has."""

from __future__ import annotations

from ...pages.shell import Cell, Part, Table, columns, figure
from ...plan.deployment import Plan


def part(plan: Plan) -> Part | None:
    """Each size once, with who uses it."""
    if plan.slurm is None:
        return None
    nodes = [each for each in plan.fleet if each.is_node]
    rows = []
    for name, hardware in {each.vm_size: each.hardware for each in nodes}.items():
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
                Cell(", ".join(each.name for each in nodes if each.vm_size == name)),
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
