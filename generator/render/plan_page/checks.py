"""The health checks of the nodes, with the source of each floor."""

from __future__ import annotations

from ...pages.shell import Block, Cell, Heading, Part, Table, Text, columns
from ...plan import health_checks
from ...plan.assignment import HEALTH
from ...plan.deployment import Plan
from ...plan.nodes import NodeArrayPlan

_KINDS = {"quick": health_checks.quick, "deep": health_checks.deep}


def part(plan: Plan) -> Part | None:
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
