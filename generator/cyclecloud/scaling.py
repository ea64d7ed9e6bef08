"""Which nodes of a partition start, or go, so that there are as many as wanted. Slurm's own words decide."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from ..errors import CannotRead, ProblemsFound
from ..results.hostlist import expand
from ..words.suggestions import suggestion
from .slurm import Queue, SlurmNode


class Scaling(Struct, frozen=True):
    """What would be done. Drained and kept nodes have a VM, so they count, and are left alone."""

    has: int
    """Nodes with a VM, or with one that is coming."""
    up: tuple[str, ...]
    down: tuple[str, ...]
    busy: tuple[SlurmNode, ...]
    drained: tuple[SlurmNode, ...]
    kept: tuple[SlurmNode, ...]
    """In SuspendExcNodes, which azslurmd fills with what has KeepAlive in CycleCloud."""
    other: tuple[SlurmNode, ...]
    """With a VM, and neither idle nor one of the above: starting, down, reserved."""

    @property
    def will_have(self) -> int:
        """How many there are afterwards."""
        return self.has + len(self.up) - len(self.down)


def decide(queue: Queue, partition: str, wanted: int) -> Scaling:
    """Start the first ones that are powered down, or end the last ones that are idle; never one with a job."""
    nodes = [node for node in queue.nodes if partition in node.partitions]
    if not nodes:
        known = sorted({name for node in queue.nodes for name in node.partitions})
        hint = suggestion(partition, known) or (
            f"partitions: {', '.join(known)}" if known else "`cycleforge nodes NAME` shows what is started"
        )
        raise CannotRead(f"Slurm has no partition '{partition}' with nodes", hint)
    if wanted > len(nodes):
        hint = "raise max_nodes in the definition, build, deploy, and `cycleforge update NAME`"
        raise ProblemsFound(f"{partition} has {len(nodes)} nodes at most, not {wanted}", hint)
    there = [node for node in nodes if not node.is_down]
    kept = _kept(queue)
    groups: dict[str, list[SlurmNode]] = {"busy": [], "drained": [], "kept": [], "other": [], "idle": []}
    for node in there:
        groups[_group(node, kept)].append(node)
    up: tuple[str, ...] = ()
    down: tuple[str, ...] = ()
    if wanted > len(there):
        up = tuple(node.name for node in nodes if node.can_start)[: wanted - len(there)]
    elif wanted < len(there):
        last = groups["idle"][::-1][: len(there) - wanted]
        down = tuple(node.name for node in last[::-1])
    left = {name: tuple(found) for name, found in groups.items() if name != "idle"}
    return Scaling(has=len(there), up=up, down=down, **left)


def _group(node: SlurmNode, kept: frozenset[str]) -> str:
    if node.has_jobs:
        return "busy"
    if node.is_drained:
        return "drained"
    if node.name in kept:
        return "kept"
    return "idle" if node.is_idle else "other"


def _kept(queue: Queue) -> frozenset[str]:
    """A number behind a colon says how many of them; all of them count as kept."""
    text = re.sub(r":\d+", "", queue.settings.get("SuspendExcNodes", ""))
    return frozenset() if text in ("", "(null)") else frozenset(expand(text))


def are_in_place(nodes: Iterable[SlurmNode], scaling: Scaling) -> bool:
    """Whether Slurm has taken it: what was to start is coming, what was to go is going."""
    by_name = {node.name: node for node in nodes}
    coming = all(name in by_name and not by_name[name].is_down for name in scaling.up)
    return coming and all(name not in by_name or by_name[name].is_down for name in scaling.down)
