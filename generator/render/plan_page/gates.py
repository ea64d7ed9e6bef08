"""What `prove.sh` will run on each partition, and what it may cost."""

from __future__ import annotations

from ...pages.shell import Block, Cell, Heading, Part, Table, columns, figure
from ...plan.deployment import Plan
from ...plan.gates import GatePlan, gate_plans


def part(plan: Plan) -> Part | None:
    """A table of each partition with its gates; of several VM sizes, one of each."""
    if plan.slurm is None:
        return None
    places: dict[tuple[str, str], list[GatePlan]] = {}
    for gate in gate_plans(plan.slurm, plan.jobs):
        places.setdefault((gate.partition, gate.vm_size), []).append(gate)
    blocks: list[Block] = []
    for (partition, vm_size), gates in places.items():
        blocks.append(Heading(f"{partition}, {vm_size.removeprefix('Standard_')}"))
        head = columns("gate", "level", "job", "nodes at least#", "at most#", "GPU hours of a node#", "what")
        blocks.append(Table(head, [_row(gate) for gate in gates]))
    intro = "prove.sh runs the gates of a level one after the other; standard includes quick, burn includes both."
    return Part("gates", "Proof", tuple(blocks), intro) if blocks else None


def _row(gate: GatePlan) -> list[Cell]:
    if gate.job is None:
        nothing = figure("", None)
        reason = f"not proven: {gate.reason}"
        return [Cell(gate.name, "name"), Cell(gate.level), Cell(""), nothing, nothing, nothing, Cell(reason, "long")]
    hours = gate.gpus_per_node * gate.minutes / 60
    return [
        Cell(gate.name, "name"),
        Cell(gate.level),
        Cell(gate.job, "short"),
        figure(str(gate.min_nodes), gate.min_nodes),
        figure(f"{gate.minutes} min", gate.minutes),
        figure(f"{hours:g}" if hours else "", hours or None),
        Cell(gate.what, "long"),
    ]
