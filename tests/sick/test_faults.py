"""Faults of one node each, several nodes at once: what docs/node-health.md promises for them, on running Slurm."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.bed.sick import SickCluster, SickNode
from tests.bed.sick.table import rows
from tests.bed.slurm import hardware

Break = Callable[[SickNode], None]
HEALING: dict[str, Break] = {
    "gpu-lost": lambda node: node.gpus(7),
    "port-down": lambda node: node.port_down(5),
    "port-slow": lambda node: node.port_shows(2, rate="200 Gb/sec (4X HDR)"),
    "mount-gone": lambda node: node.lose_mount(),
    "mount-read-only": lambda node: node.read_only(),
    "mount-hangs": lambda node: node.hang_mount(),
    "memory-missing": lambda node: node.memory_kib(hardware.MEMORY_KIB // 2),
    "disk-gone": lambda node: node.disk_gone(3),
}
"""What passes again by itself, by the id of its row."""


UNSEEN: dict[str, Break] = {
    "system-disk-nearly-full": lambda node: node.state("df", " 97%   3%"),
    "ethernet-down": lambda node: node.write("sys/class/net/eth0/operstate", "down\n"),
    "load-high": lambda node: node.write("proc/loadavg", "4711.00 58.00 59.00 1/2345 6789\n"),
    "port-errors": lambda node: node.port_counts(4, "symbol_error", 7),
}
"""What is a warning: nobody knows that a job suffers from it."""
FOR_GOOD: dict[str, Break] = {
    "cpus-missing": lambda node: node.write("proc/cpuinfo", "processor\t: 0\nphysical id\t: 0\n\n" * 48),
    "partition-key-missing": lambda node: node.write("sys/class/infiniband/mlx5_ib6/ports/1/pkeys/0", "0x7fff\n"),
    "memory-errors": lambda node: node.field(3, "ecc.errors.uncorrected.volatile.sram", "1"),
    "nvlink-down": lambda node: node.state("gpu/2.link.7", "<inactive>"),
}


SCRATCH = "mount_point=/mnt/nvme\nexpected_disks=8\nmounted=true\n"
"""What misc_ndv4 says of the local disks that it has made a file system of."""


def _scratch(node: SickNode, array_state: str, disks: int) -> None:
    """The file system of the local disks is there, with an array in this state below it."""
    node.write("var/lib/cycleforge/nvme.state", SCRATCH)
    mounts = node.root / "proc/mounts"
    mounts.write_text(mounts.read_text() + "/dev/md0 /mnt/nvme xfs rw 0 0\n")
    (node.root / "mnt/nvme").mkdir(parents=True, exist_ok=True)
    node.write("sys/block/md0/md/array_state", f"{array_state}\n")
    node.write("sys/block/md0/md/raid_disks", f"{disks}\n")
    (node.root / "dev").mkdir(exist_ok=True)
    (node.root / "dev/md0").touch()


SLOWED = "0x0000000000000040"
"""Hardware thermal slowdown. Source: NVML API, nvmlClocksEventReasons"""
CLOCKS: dict[str, Break] = {
    "gpu-slowed": lambda node: node.field(3, "clocks_event_reasons.active", SLOWED),
    "scratch-gone": lambda node: node.write("var/lib/cycleforge/nvme.state", SCRATCH),
    "array-stopped": lambda node: _scratch(node, "inactive", 8),
    "link-flaps": lambda node: node.port_counts(4, "link_downed", 5),
    "corrected-errors": lambda node: node.field(3, "ecc.errors.corrected.volatile.sram", "10001"),
    "clocks-low": lambda node: node.field(3, "clocks.applications.graphics", "1200"),
    "gpu-hot": lambda node: node.field(3, "temperature.gpu", "94"),
    "persistence-off": lambda node: node.field(3, "persistence_mode", "Disabled"),
}
"""Clocks, heat, local disks and a port that comes and goes."""


@pytest.mark.fault(
    "gpu-lost", "port-down", "port-slow", "mount-gone", "mount-read-only", "mount-hangs", "memory-missing", "disk-gone"
)
def test_a_fault_that_heals_drains_its_node_until_two_runs_pass(sick: SickCluster) -> None:
    nodes = dict(zip(sick.nodes.values(), HEALING, strict=True))
    for node, fault in nodes.items():
        HEALING[fault](node)
    results = sick.quick()
    shown = sick.states()
    for node, fault in nodes.items():
        assert results[node.name]["verdict"] == "fail", fault
        assert shown[node.name].state == "drained", fault
        assert shown[node.name].reason.startswith(rows()[fault].reason), (fault, shown[node.name].reason)
    jobs = [sick.submit("true", f"--nodelist={name}") for name in sick.nodes]
    for node in nodes:
        node.heal()
    assert {result["verdict"] for result in sick.quick().values()} == {"pass"}
    assert {state.state for state in sick.states().values()} == {"drained"}, "one healthy run is not enough"
    assert {sick.job(job)["JobState"] for job in jobs} == {"PENDING"}
    sick.slurm("scancel", *jobs[1:])  # each that runs costs an epilog
    sick.quick()
    assert sick.finish(jobs[0])["ExitCode"] == "0:0"
    sick.wait("all nodes are idle", lambda: {state.state for state in sick.states().values()} == {"idle"})
    assert {node.hook("prolog")[0] for node in nodes} == {0}, "and every one lets a job in"


@pytest.mark.fault("system-disk-nearly-full", "ethernet-down", "load-high", "port-errors")
@pytest.mark.fault("cpus-missing", "partition-key-missing", "memory-errors", "nvlink-down")
def test_a_warning_drains_nothing_and_each_fault_its_own_node(sick: SickCluster) -> None:
    nodes = dict(zip(sick.nodes, UNSEEN | FOR_GOOD, strict=True))
    for name, fault in nodes.items():
        (UNSEEN | FOR_GOOD)[fault](sick[name])
    results, shown = sick.quick(), sick.states()
    for name, fault in nodes.items():
        told, result = rows()[fault], results[name]
        assert result["verdict"] == ("fail" if told.drained else "warn"), (fault, result)
        assert shown[name].state == ("drained" if told.drained else "idle"), (fault, shown[name])
        assert shown[name].reason.startswith(told.reason), (fault, shown[name])
    jobs = {name: sick.submit("true", f"--nodelist={name}") for name in nodes}
    for name, fault in nodes.items():
        if not rows()[fault].drained:
            assert sick.finish(jobs[name])["ExitCode"] == "0:0", fault
    for name, fault in nodes.items():
        if rows()[fault].drained:
            assert sick.job(jobs[name])["JobState"] == "PENDING", fault


@pytest.mark.fault("gpu-slowed", "scratch-gone", "array-stopped", "link-flaps", "corrected-errors")
@pytest.mark.fault("clocks-low", "gpu-hot", "persistence-off")
def test_clocks_local_disks_and_a_port_that_comes_and_goes(sick: SickCluster) -> None:
    nodes = dict(zip(CLOCKS, sick.nodes.values(), strict=True))
    flaps, scratch = nodes["link-flaps"], (nodes["scratch-gone"], nodes["array-stopped"])
    flaps.quick()  # what the port has counted until now
    for fault, node in nodes.items():
        CLOCKS[fault](node)
    results, shown = sick.quick(), sick.states()
    jobs = {fault: sick.submit("true", f"--nodelist={node.name}") for fault, node in nodes.items()}
    for fault, node in nodes.items():
        row, state = rows()[fault], shown[node.name]
        assert state.state == ("drained" if row.drained else "idle"), (fault, state, results[node.name])
        assert state.reason.startswith(row.reason), (fault, state.reason)
        assert results[node.name]["verdict"] == ("fail" if row.drained else "warn"), fault
    for fault, job in jobs.items():
        if not rows()[fault].drained:
            assert sick.finish(job)["ExitCode"] == "0:0", fault
        else:
            assert sick.job(job)["JobState"] == "PENDING", fault
            if fault != "link-flaps":
                sick.slurm("scancel", job)  # each that runs costs an epilog
    drained = [node for fault, node in nodes.items() if rows()[fault].drained]
    for node in drained:
        node.heal()
    for node in scratch:
        (node.root / "var/lib/cycleforge/nvme.state").unlink()
    flaps.port_counts(4, "link_downed", 5)
    for _ in range(2):
        sick.quick(*(node.name for node in drained))
    assert sick.states()[flaps.name].state == "drained", "the losses of this day are still counted"
    flaps.reboot()
    for _ in range(2):
        flaps.quick()
    assert sick.finish(jobs["link-flaps"])["ExitCode"] == "0:0"
    sick.wait("all nodes are idle", lambda: {state.state for state in sick.states().values()} == {"idle"})
