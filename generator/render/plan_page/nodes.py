"""The nodes of a plan: what one of each VM size has, and its health checks, with the source of each floor."""

from __future__ import annotations

from ...pages.shell import Block, Cell, Heading, Part, Table, Text, columns, figure
from ...plan.assignment import HEALTH
from ...plan.deployment import Plan
from ...plan.health_checks import deep, quick
from ...plan.nodes import NodeArrayPlan


def vm_sizes(plan: Plan) -> Part | None:
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


_KINDS = {"quick": quick, "deep": deep}


def health_checks(plan: Plan) -> Part | None:
    """A table of each VM size whose nodes check themselves."""
    if plan.slurm is None:
        return None
    blocks: list[Block] = []
    done: set[str] = set()
    without = []
    for array in plan.slurm.node_arrays:
        if not any(spec.project == HEALTH for spec in array.specs):
            without.append(array.partition)
            continue
        for each in array.of_each_size:
            if each.vm_size not in done:
                done.add(each.vm_size)
                blocks += _of_size(each)
    if without:
        blocks.append(Text(f"Nodes of {', '.join(without)} do not check themselves."))
    intro = (
        "What slurm_nhc checks on nodes because of their VM size, beside what it checks on every node. "
        "Quick checks run every few minutes, deep ones at boot and on idle nodes; a node that fails is drained."
    )
    return Part("checks", "Health checks", tuple(blocks), intro) if blocks else None


def _of_size(array: NodeArrayPlan) -> list[Block]:
    rows = []
    for kind, lines in _KINDS.items():
        for line in lines(array.hardware, array.mig):
            name, _, arguments = line.text.partition(" ")
            if name != "use":
                source = "not published" if line.source == "null" else line.source
                rows.append([Cell(name, "name"), Cell(kind, "short"), Cell(arguments, "long"), Cell(source, "long")])
    if not rows:
        return [Heading(array.vm_size), Text("Nothing is known of this size that could be checked.")]
    return [Heading(array.vm_size), Table(columns("check", "kind", "what is expected", "source"), rows)]
