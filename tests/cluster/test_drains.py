"""Drains have owners: ours, healthagent's and an administrator's never touch each other."""

from __future__ import annotations

import pytest

from tests.bed.slurm.client import NodeState
from tests.bed.slurm.cluster import Cluster

HEALTHAGENT = "Healthcheck failures. Run 'health -s' view health report."
OURS = "CycleForge health: gpu_count 7 GPUs, expected 8 GPUs (missing 0008:00:00)"


def healthagent(cluster: Cluster, node: str) -> None:
    """One run of healthagent's program, now; Slurm runs the same one at its interval."""
    cluster[node].ok(f"SLURMD_NODENAME={node} bash /sched/emu/health.sh")


def test_slurm_runs_healthagents_program_beside_ours(cluster: Cluster) -> None:
    log = cluster["node1"].files / "state/healthagent.log"
    log.unlink(missing_ok=True)
    cluster.wait("Slurm's own HealthCheckProgram has run", log.exists)


@pytest.mark.parametrize(
    ("by", "reason"), [("administrator", "disk replaced, please wait"), ("healthagent", HEALTHAGENT)]
)
def test_a_foreign_drain_is_neither_overwritten_nor_resumed(cluster: Cluster, by: str, reason: str) -> None:
    node = cluster["node2"]
    if by == "healthagent":
        node.state("healthagent.errors", 1)
        healthagent(cluster, "node2")
    else:
        cluster.drain("node2", reason)
    wanted = NodeState("drained", reason)
    assert cluster.states()["node2"] == wanted
    node.gpus(7)
    assert node.quick()["verdict"] == "fail"
    assert cluster.states()["node2"] == wanted
    node.forget("gpus")
    for _ in range(3):
        assert node.quick()["verdict"] == "pass"
    assert cluster.states()["node2"] == wanted


def test_our_drain_is_neither_overwritten_nor_resumed_by_healthagent(cluster: Cluster) -> None:
    node = cluster["node2"]
    node.gpus(7)
    node.quick()
    ours = NodeState("drained", OURS)
    assert cluster.states()["node2"] == ours
    for errors in (1, 0):
        node.state("healthagent.errors", errors)
        healthagent(cluster, "node2")
        healthagent(cluster, "node2")
        assert cluster.states()["node2"] == ours


def test_the_second_owner_drains_when_the_first_has_resumed(cluster: Cluster) -> None:
    node = cluster["node2"]
    node.state("healthagent.errors", 1)
    healthagent(cluster, "node2")
    node.gpus(7)
    node.quick()
    node.state("healthagent.errors", 0)
    healthagent(cluster, "node2")
    node.quick()
    assert cluster.wait_state("node2", "drained").reason == OURS


def test_a_drain_by_a_person_after_ours_is_kept(cluster: Cluster) -> None:
    node = cluster["node2"]
    node.gpus(7)
    node.quick()
    cluster.drain("node2", "sent to repair")
    node.heal()
    for _ in range(3):
        node.quick()
    assert cluster.states()["node2"] == NodeState("drained", "sent to repair")
