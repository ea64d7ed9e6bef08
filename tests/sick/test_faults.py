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
