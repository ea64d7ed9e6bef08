"""Nodes without GPUs whose jobs span nodes by InfiniBand: HB, HC and HX sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.bed.scripts.healthy import Healthy, healthy
from tests.projects.conftest import MakeNode

HB, HC, HB5 = "Standard_HB176rs_v4", "Standard_HC44rs", "Standard_HB368rs_v5"
HX, HB3 = "Standard_HX176-96rs", "Standard_HB120-64rs_v3"


@pytest.fixture
def node(make_node: MakeNode) -> Healthy:
    return healthy(make_node("slurm_nhc"), HB)


@pytest.mark.parametrize("size", [HB, HC, HX, HB3])
def test_a_healthy_node_passes_and_no_gpu_is_asked_for(make_node: MakeNode, size: str) -> None:
    node = healthy(make_node("slurm_nhc"), size)
    result = node.quick()
    assert result["verdict"] == "pass", result
    assert not [row["check"] for row in result["checks"] if row["check"].startswith(("gpu", "nvidia", "amd"))]
    assert not [call for tool in ("nvidia-smi", "rocm-smi", "journalctl") for call in node.calls(tool)]


BROKEN: list[tuple[Callable[[Healthy], Any], str, str]] = [
    (lambda node: node.cpus(174), "cpu_threads", "cpu_threads 174 threads, at least 176 threads"),
    (lambda node: node.cpus(176, sockets=1), "cpu_sockets", "cpu_sockets 1 sockets, at least 2 sockets"),
    (lambda node: node.memory(700000000), "memory_total", "memory_total 700000000 KiB"),
    (lambda node: node.port("mlx5_ib0", state="1: DOWN", phys="3: Disabled", rate="400 Gb/sec"), "ib_ports_active",
     "ib_ports_active 0 ports, at least 1 ports (mlx5_ib0 DOWN Disabled)"),
    (lambda node: node.port("mlx5_ib0", rate="100 Gb/sec (1X)"), "ib_rate", "ib_rate 100 Gb/s, at least 400 Gb/s"),
    (lambda node: node.write("sys/class/infiniband/mlx5_ib0/ports/1/pkeys/0", "0x7fff\n"), "ib_partition_keys",
     "no full-member key on mlx5_ib0"),
    (lambda node: node.lose_mount(), "mount", "/shared is not mounted"),
]  # fmt: skip


LINES = {
    "cpu_threads": "cpu", "cpu_sockets": "cpu", "memory_total": "memory", "ib_ports_active": "ib_ports",
    "ib_rate": "ib_ports", "ib_partition_keys": "ib_keys", "mount": "mounts",
}  # fmt: skip
"""The line of the configuration that makes a check."""


@pytest.mark.parametrize(("fault", "check", "reason"), BROKEN)
def test_a_fault_drains_the_node(node: Healthy, fault: Callable[[Healthy], Any], check: str, reason: str) -> None:
    node.only(LINES[check])
    fault(node)
    result = node.quick()
    assert result["verdict"] == "fail"
    assert "fail" in [row["verdict"] for row in result["checks"] if row["check"] == check]
    assert reason in node.reason()


def test_a_documented_number_of_links_is_a_warning_and_drains_nothing(make_node: MakeNode) -> None:
    """No health source has a configuration for this size, so the page's figure is no reason to take a node away."""
    node = healthy(make_node("slurm_nhc"), HB5)
    node.quick()
    assert node.verdict("ib_ports_active") == "pass"
    node.port("mlx5_ib0", state="1: DOWN")
    node.quick()
    assert node.verdict("ib_ports_active") == "warn"
    assert node.reason() == ""
