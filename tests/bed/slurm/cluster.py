"""A Slurm cluster of booted machines: a scheduler and three GPU nodes, set up in the order of a CycleCloud node.

Image and Slurm's own install step (configuration.py), then the cluster-init scripts of our projects as the node agent
runs them, then Slurm's daemons: our scripts never see a running Slurm, and slurmd never starts before them.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path

from tests.bed.fakes import NVIDIA_SMI
from tests.bed.limits import COMMAND_S
from tests.bed.machines.booted import QUIET, booted_machine
from tests.bed.machines.overlay import Bind, Machine
from tests.bed.machines.roots import needs, node_root
from tests.bed.slurm import configuration, hardware
from tests.bed.slurm.client import Client
from tests.bed.slurm.members import GpuNode, Member
from tests.bed.slurm.network import network
from tests.size_attributes import size_attributes

FAKES = Path(__file__).parent / "fakes"
ATTRIBUTES = {
    "azure.metadata.compute.vmSize": hardware.VM_SIZE,
    "cycleforge.mounts": "/sched /shared",
    "cycleforge.health.deep_s": "60",
    "cycleforge.health.idle_deep_h": "1",
    **size_attributes(hardware.VM_SIZE),
}
STRICT_NODE = "node3"
"""The node on which the definition wants a drain when something could not be measured."""


class Cluster(Client):
    def __init__(self, folder: Path, scheduler: Member, nodes: Mapping[str, GpuNode]) -> None:
        self.folder, self.scheduler, self.nodes = folder, scheduler, dict(nodes)
        self.shared = folder / "shared"

    def __getitem__(self, name: str) -> GpuNode:
        return self.nodes[name]

    def ok(self, script: str, *arguments: str, timeout_s: float = COMMAND_S) -> str:
        return self.scheduler.ok(script, *arguments, timeout_s=timeout_s)

    def all_idle(self, limit_s: float = 600) -> None:
        self.wait("all nodes idle", lambda: {row.state for row in self.states().values()} == {"idle"}, limit_s)

    def converge(self) -> None:
        """Run the project's scripts everywhere, the scheduler's first."""
        self.scheduler.converge()
        with ThreadPoolExecutor() as pool:
            list(pool.map(Member.converge, self.nodes.values()))

    def restore(self) -> None:
        """No jobs, no faults, no drains, no check that saw something else: what every test begins with."""
        self.slurm("scancel", "--quiet", "--user=root")
        for node in self.nodes.values():
            node.heal()
        self.wait("no jobs", lambda: self.slurm("squeue", "-h") == "")
        # slurmd starts a quick run, and so does the timer; an epilog leaves its own out while one goes on.
        for node in self.nodes.values():
            node.ends()
            node.forget_faults()
        self.wait("all nodes idle", self.all_resumed)

    def report(self) -> str:
        """What a failed test shows: Slurm's view and the last lines of health on every node."""
        lines = [self.scheduler.run("sinfo -N -o '%N %T %E'; squeue -a").output]
        for node in self.nodes.values():
            journal = "journalctl.real --no-pager -o cat -n 12 -u 'cycleforge-*' -u slurmd"
            lines.append(f"--- {node.name}\n{node.run(journal).output}")
        return "\n".join(lines)


@contextmanager
def running_cluster(blobs: Mapping[str, bytes]) -> Iterator[Cluster]:
    """Boot, set up and start a cluster; end everything that belongs to it."""
    root = node_root()
    needs("unshare", "nsenter", "ip", "systemd-nspawn")
    folder = Path(tempfile.mkdtemp(prefix="cf", dir="/tmp"))
    folder.chmod(0o755)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder)
        _shared_files(folder)
        spaces = stack.enter_context(network(configuration.CONTROLLER, configuration.ADDRESSES))
        boot = {name: partial(_boot, root, folder, name, spaces[name]) for name in configuration.ADDRESSES}
        scheduler = Member(
            configuration.CONTROLLER, "scheduler", folder / configuration.CONTROLLER, boot[configuration.CONTROLLER]
        )
        nodes = {name: GpuNode(name, "execute", folder / name, boot[name]) for name in configuration.NODES}
        for member in (scheduler, *nodes.values()):
            _machine_files(member.files)
            stack.callback(member.end)
        set_up = partial(_set_up, blobs=blobs)
        with ThreadPoolExecutor() as pool:
            list(pool.map(Member.start, (scheduler, *nodes.values())))
            set_up(scheduler)
            list(pool.map(set_up, nodes.values()))
        cluster = Cluster(folder, scheduler, nodes)
        cluster.all_idle()
        yield cluster


def _boot(root: Path, folder: Path, name: str, space: Path, *layers: Path) -> AbstractContextManager[Machine]:
    binds = [
        Bind(folder / "sched", "/sched", writable=True), Bind(folder / "shared", "/shared", writable=True),
        Bind(folder / name, "/fake", writable=True), Bind(folder / "hosts", "/etc/hosts"),
    ]  # fmt: skip
    return booted_machine(root, *layers, name=name, binds=binds, network=space, masked=QUIET)


def _set_up(member: Member, blobs: Mapping[str, bytes]) -> None:
    """Everything between the first boot and a joined node, in the order of 4.x."""
    attributes = dict(ATTRIBUTES)
    if member.name == STRICT_NODE:
        attributes["cycleforge.health.unmeasured"] = "drain"
    member.ok(configuration.INSTALL, member.role, member.name, configuration.CLUSTER, *configuration.LINKED)
    member.assign(attributes, blobs)
    member.converge()
    member.ok(configuration.START_SERVICES, "slurmctld" if member.role == "scheduler" else "slurmd")


def _shared_files(folder: Path) -> None:
    home = folder / "sched" / configuration.CLUSTER
    home.mkdir(parents=True)
    (folder / "shared").mkdir()
    (folder / "hosts").write_text(configuration.HOSTS)
    for name, text in configuration.FILES.items():
        (home / name).write_text(text)
    for name in configuration.PLATFORM_HOOKS:
        (home / name).parent.mkdir()
        (home / name).write_text("#!/usr/bin/env bash\nexit 0\n")
        (home / name).chmod(0o755)
    (folder / "sched/munge.key").write_bytes(b"a key of the tests, the same on every machine" * 3)
    shutil.copy(FAKES / "healthagent.sh", home / "health.sh")


def _machine_files(folder: Path) -> None:
    (folder / "state").mkdir(parents=True)
    shutil.copytree(FAKES, folder / "bin")
    shutil.copy(NVIDIA_SMI, folder / "bin")
    hardware.build(folder)
