"""What the stand-in knows: plain data that a test reads and changes.

    state.cluster("demo", hpc=4)                       a scheduler `scheduler`, a node array `hpc` of at most four
    state.clusters["demo"].starts()                    as if started long ago
    state.failing.append(Failing("demo-hpc-*", "Preparing", "Timeout awaiting system boot-up"))
    state.unknown_types.add("Standard_ND96isr_H100_v5")   /status fails until it is taken out

Names of states: https://learn.microsoft.com/azure/cyclecloud/how-to/start-cluster, and those that
https://github.com/Azure/cyclecloud-scalelib/blob/master/src/hpc/autoscale/node/nodemanager.py compares.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

STARTS = (("Acquiring", "Allocation"), ("Preparing", "Started"), ("Ready", "Started"))
ENDS = (("Terminating", "Terminated"), ("Off", "Off"))
"""(Status, State), one step each."""


@dataclass
class Failing:
    """Nodes of this pattern do not get beyond a status; `times` is how many attempts fail."""

    node: str
    at: str
    message: str
    detail: str = ""
    recommendation: str = ""
    times: int = 99


@dataclass
class Node:
    """One node, and the steps that it still has to take."""

    name: str
    array: str | None
    machine_type: str
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    status: str = "Off"
    state: str = "Off"
    target: str = "Off"
    message: str = ""
    failed_by: Failing | None = None
    retries: int = 0
    address: str = ""
    steps: list[tuple[str, str]] = field(default_factory=list)

    @property
    def is_fixed(self) -> bool:
        """Whether it stays in the cluster when it is off, as those of a template do."""
        return self.array is None

    def goes(self, target: str, steps: tuple[tuple[str, str], ...]) -> None:
        """From now on to another target."""
        self.target, self.steps, self.message, self.failed_by = target, list(steps), "", None

    def steps_on(self, failing: list[Failing]) -> None:
        """One step."""
        if not self.steps or self.failed_by is not None:
            return
        self.status, self.state = self.steps.pop(0)
        found = next(
            (
                each
                for each in failing
                if each.times > 0 and each.at == self.status and fnmatchcase(self.name, each.node)
            ),
            None,
        )
        if found is not None:
            found.times -= 1
            self.failed_by, self.status, self.message = found, "Failed", found.message
        if self.status == "Ready" and not self.address:
            self.address = f"10.0.{len(self.name) % 250}.{int(self.id[:2], 16) % 250 + 4}"

    @property
    def record(self) -> dict[str, Any]:
        """As the server lists it: "a complete set of node attributes", of which these are read in public programs."""
        record: dict[str, Any] = {
            "Name": self.name, "NodeId": self.id, "MachineType": self.machine_type, "Status": self.status,
            "State": self.state, "TargetState": self.target, "Fixed": self.is_fixed,
        }  # fmt: skip
        if self.array is not None:
            record["Template"] = self.array
        if self.message:
            record["StatusMessage"] = self.message
        if self.address:
            record |= {"PrivateIp": self.address, "Hostname": self.name}
        return record


@dataclass
class Array:
    """One node array with one bucket."""

    name: str
    machine_type: str
    most: int
    available: int | None = None
    """None: as many as are left."""
    quota_count: int | None = None
    invalid_reason: str = ""
    last_capacity_failure: float = -1.0


@dataclass
class Cluster:
    """One cluster."""

    name: str
    arrays: dict[str, Array]
    nodes: list[Node]
    state: str = ""
    target: str = ""

    def add(self, array: str, count: int) -> list[Node]:
        """New nodes, on their way."""
        taken = {node.name for node in self.nodes}
        names = (f"{self.name}-{array}-{number}" for number in range(1, 100_000))
        free = (name for name in names if name not in taken)
        added = [Node(next(free), array, self.arrays[array].machine_type) for _ in range(count)]
        for node in added:
            node.goes("Started", STARTS)
            node.status, node.state = node.steps.pop(0)
        self.nodes += added
        return added

    def has(self, names: Set[str]) -> None:
        """Of the nodes of arrays these run, as somebody else has created and ended them, `<cluster>-<array>-<n>`."""
        self.nodes = [node for node in self.nodes if node.is_fixed or node.name in names]
        known = {node.name for node in self.nodes}
        for name in sorted(names - known):
            array = self.arrays[name.removeprefix(f"{self.name}-").rpartition("-")[0]]
            node = Node(name, array.name, array.machine_type)
            node.goes("Started", STARTS)
            while node.steps:
                node.steps_on([])
            self.nodes.append(node)

    def starts(self, *, is_up: bool = True) -> Cluster:
        """Started, and with `is_up` long ago."""
        self.state = self.target = "Started"
        for node in self.nodes:
            node.goes("Started", STARTS)
        if is_up:
            self.settle([])
        return self

    def terminates(self) -> None:
        """Everything goes."""
        self.target = "Terminated"
        for node in self.nodes:
            node.goes("Terminated", ENDS)

    def settle(self, failing: list[Failing]) -> None:
        """Whatever goes on has ended."""
        while any(node.steps and node.failed_by is None for node in self.nodes):
            self.passes(failing)

    def passes(self, failing: list[Failing]) -> None:
        """One step for each node."""
        for node in list(self.nodes):
            node.steps_on(failing)
            if node.status == "Off" and not node.is_fixed and not node.steps:
                self.nodes.remove(node)
        if self.target == "Terminated" and all(node.status == "Off" for node in self.nodes):
            self.state = "Terminated"

    def of(self, array: str) -> list[Node]:
        """The nodes of an array."""
        return [node for node in self.nodes if node.array == array]


@dataclass
class State:
    """One site."""

    clusters: dict[str, Cluster] = field(default_factory=dict)
    failing: list[Failing] = field(default_factory=list)
    unknown_types: set[str] = field(default_factory=set)
    """Machine types that the server does not know yet."""
    names: str = "Name"
    """How attributes of nodes are spelled: `Name`, or `name` with the first letter small."""
    lists_nodes: bool = True
    """Whether /status has nodes when it is asked for them."""
    tells_messages: bool = True
    """Whether the records of nodes have the reason of a failure; nobody documents that they do."""
    lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    def cluster(self, name: str, machine_type: str = "Standard_D64ds_v5", **arrays: int) -> Cluster:
        """A cluster as imported: a scheduler, and node arrays with their largest size."""
        made = {array: Array(array, machine_type, most) for array, most in arrays.items()}
        self.clusters[name] = Cluster(name, made, [Node("scheduler", None, "Standard_D4as_v5")])
        return self.clusters[name]

    def passes(self) -> None:
        """One step for all."""
        for each in self.clusters.values():
            each.passes(self.failing)

    def shown(self, cluster: Cluster) -> list[dict[str, Any]]:
        """The nodes as this site spells them."""
        return [dict(self._spelled(node.record)) for node in cluster.nodes]

    def _spelled(self, record: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        for name, value in record.items():
            if name != "StatusMessage" or self.tells_messages:
                yield (name if self.names == "Name" else name[:1].lower() + name[1:]), value
