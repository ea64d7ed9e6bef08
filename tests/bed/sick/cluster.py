"""The cluster: the one of `tests.bed.cloud` with static nodes, each with the disk of a GPU node."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from generator.projects.content import shipped_project
from tests.bed.cloud.cluster import Cloud, running_cloud
from tests.bed.cloud.files import Pool, gres_conf
from tests.bed.cloud.policy import FILES
from tests.bed.machines.overlay import children
from tests.bed.sick.node import SickNode
from tests.bed.slurm import hardware
from tests.bed.slurm.client import NodeState

MACHINE = Path(__file__).with_name("machine")
HOOKS = ("prolog", "epilog")
OURS = "20-cycleforge_health.sh"
CPUS, MEMORY_MIB = 4, 4000
T = TypeVar("T")


class NamedPool(Pool):
    """Nodes n1, n2… whatever their partition; `prefix` is the number before the first."""

    @property
    def node_names(self) -> tuple[str, ...]:
        """Their names in Slurm."""
        return tuple(f"n{int(self.prefix) + place}" for place in range(1, self.nodes + 1))


class SickCluster(Cloud):
    """Scheduler and emulated nodes, with Slurm's client commands."""

    def __init__(self, folder: Path, holder: int, pools: Sequence[Pool], release: tuple[int, ...]) -> None:
        super().__init__(folder, holder, pools, release)
        self.nodes: dict[str, SickNode] = {}
        self._holders: dict[str, tuple[str, int]] = {}

    def __getitem__(self, name: str) -> SickNode:
        return self.nodes[name]

    def each(self, task: Callable[[SickNode], T], *names: str) -> dict[str, T]:
        """Do something on these nodes, or on all, four at the same time; what came of it by name."""
        wanted = names or tuple(self.nodes)
        with ThreadPoolExecutor(4) as pool:
            return dict(zip(wanted, pool.map(lambda name: task(self.nodes[name]), wanted), strict=True))

    def quick(self, *names: str) -> dict[str, dict[str, Any]]:
        """Quick runs of these nodes, or of all; results by name."""
        return self.each(SickNode.quick, *names)

    def holder_of(self, name: str) -> int:
        """The process of the host that holds a node's namespaces; the file of its VM has the number inside."""
        pid = (self.folder / "azure/vms" / name).read_text().strip()
        if self._holders.get(name, ("", 0))[0] != pid:
            (first,) = children(self.holder)
            self._holders[name] = (pid, next(child for child in children(first) if _number_inside(child) == pid))
        return self._holders[name][1]

    def boot(self, name: str) -> None:
        """Start a node and wait until Slurm has heard of this boot."""
        before = self._registrations(name)
        self.start(name)
        self.wait(f"{name} has joined", lambda: self._registrations(name) > before)

    def _registrations(self, name: str) -> int:
        """How many slurmd of a node have been taken in by slurmctld; each says it once."""
        log = self.folder / "log" / name / "slurmd/slurmd.log"
        return log.read_text(errors="replace").count("slurmctld sent back") if log.exists() else 0

    def states(self) -> dict[str, NodeState]:
        """State and reason of every node, without the star of one that a ping has not reached yet after its resume."""
        return {name: NodeState(row.state.rstrip("*"), row.reason) for name, row in super().states().items()}

    def restore(self) -> None:
        """No jobs, no faults, no verdicts, no drains: what a test begins with."""
        self.run("scancel --quiet --user=root; scancel --quiet --state=PENDING")
        for node in self.nodes.values():
            node.heal()
            node.forget_health()
        self.wait("no jobs", lambda: self.slurm("squeue", "-h", "-a") == "")
        self.wait("all nodes are idle", self.all_resumed)


@contextmanager
def running_sick(
    nodes: int = 3,
    *,
    partitions: Mapping[str, int] | None = None,
    vm_size: str = hardware.VM_SIZE,
    attributes: Mapping[str, str] | None = None,
    lines: Sequence[str] = (),
) -> Iterator[SickCluster]:
    """Start a cluster of healthy nodes, all idle, and end everything that belongs to it.

    `attributes` are node attributes (`{"cycleforge.health.deep_s": "60"}`), `lines` come last in slurm.conf.
    """
    pools = _pools(partitions or {"hpc": nodes})
    hook = (MACHINE / "hook.sh").read_text()
    files = {"azure.conf": _azure_conf(pools), "gres.conf": gres_conf(pools)}
    files |= {f"{kind}.d/{OURS}": hook for kind in HOOKS}
    with running_cloud(pools, ["SuspendTime=INFINITE", *lines], files, start=False, kind=SickCluster) as cluster:
        assert isinstance(cluster, SickCluster)
        names = [name for pool in pools for name in pool.node_names]
        cluster.nodes = {name: SickNode(cluster, name, vm_size, attributes or {}) for name in names}
        for node in cluster.nodes.values():
            node.make_disk()
        _place(cluster.folder)
        cluster.start_controller()
        cluster.start(*names)
        cluster.wait("all nodes are idle", lambda: {row.state for row in cluster.states().values()} == {"idle"})
        yield cluster


def _number_inside(pid: int) -> str:
    """The number of a process in the cluster; empty when it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return ""
    return next(line.split()[2] for line in status.splitlines() if line.startswith("NSpid:"))


def _pools(partitions: Mapping[str, int]) -> list[NamedPool]:
    pools, before = [], 0
    for place, (name, count) in enumerate(partitions.items()):
        pools.append(NamedPool(name, count, prefix=str(before), gpus=hardware.GPUS, cpus=CPUS, memory_mib=MEMORY_MIB,
                               default=place == 0))  # fmt: skip
        before += count
    return pools


def _azure_conf(pools: Sequence[Pool]) -> str:
    lines = []
    for pool in pools:
        names, default = ",".join(pool.node_names), "YES" if pool.default else "NO"
        lines += [
            f"NodeName={names} CPUs={pool.cpus} ThreadsPerCore=1 RealMemory={pool.memory_mib} Gres=gpu:{pool.gpus}",
            f"PartitionName={pool.name} Nodes={names} Default={default} MaxTime=INFINITE State=UP",
        ]
    return "\n".join([*lines, ""])


def _place(folder: Path) -> None:
    """What nodes see of the bed: the hooks of the project, and the programs of their boot."""
    (folder / "hooks").mkdir()
    (folder / "opt/cycleforge").mkdir()
    for path, file in shipped_project("slurm_nhc")[1].items():
        if path.parent == FILES and path.stem in HOOKS:
            (folder / "hooks" / path.name).write_bytes(file.content)
    shutil.copy(MACHINE / "boot.sh", folder / "machine")
