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
    sick.quick()
    assert {sick.finish(job)["ExitCode"] for job in jobs} == {"0:0"}
    assert {state.state for state in sick.states().values()} == {"idle"}


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
