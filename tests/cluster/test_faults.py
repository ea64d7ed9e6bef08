"""A fault on one node drains exactly that node, with a reason that names check, value, limit and unit."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.bed.slurm import hardware
from tests.bed.slurm.client import NodeState
from tests.bed.slurm.cluster import Cluster
from tests.bed.slurm.members import GpuNode

INTERVAL_S = 3
TIMER_DROP_IN = f"""\
[Timer]
OnActiveSec=
OnUnitActiveSec=
OnActiveSec=1
OnUnitActiveSec={INTERVAL_S}
RandomizedDelaySec=0
AccuracySec=100ms
"""


def _runs(node: GpuNode) -> int:
    """How often the timer's unit has begun."""
    lines = node.ok("journalctl.real --no-pager -o cat --unit=cycleforge-health.service").splitlines()
    return sum(line.startswith("Starting ") for line in lines)


def _port_down(node: GpuNode) -> None:
    files = hardware.port(node.files, "mlx5_ib5")
    (files / "state").write_text("1: DOWN\n")
    (files / "phys_state").write_text("3: Disabled\n")


def _port_slow(node: GpuNode) -> None:
    (hardware.port(node.files, "mlx5_ib2") / "rate").write_text("200 Gb/sec (4X HDR)\n")


def _read_only(node: GpuNode) -> None:
    node.ok("mount -o remount,bind,ro /shared")


def _writable(node: GpuNode) -> None:
    node.ok("mount -o remount,bind,rw /shared")


def _xid(node: GpuNode) -> None:
    node.xid(79)


FAULTS: dict[str, tuple[Callable[[GpuNode], None], str]] = {
    "7 of 8 GPUs": (lambda node: node.gpus(7), "gpu_count 7 GPUs, expected 8 GPUs"),
    "ECC": (
        lambda node: node.field(3, "ecc.errors.uncorrected.volatile.sram", "1"),
        "gpu_ecc_sram_uncorrectable 1 errors, at most 0 errors (GPU 3)",
    ),
    "InfiniBand port down": (_port_down, "ib_ports_active 7 ports, at least 8 ports (mlx5_ib5 DOWN Disabled)"),
    "InfiniBand port slow": (_port_slow, "ib_rate 200 Gb/s, at least 400 Gb/s (mlx5_ib2)"),
    "mount read-only": (_read_only, "mount (/shared is mounted read-only)"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_drains_exactly_its_node_and_recovers(cluster: Cluster, name: str) -> None:
    break_it, reason = FAULTS[name]
    sick = cluster["node2"]
    break_it(sick)
    try:
        results = {node: cluster[node].quick() for node in cluster.nodes}
    finally:
        sick.heal()
        _writable(sick)
    assert {node: result["verdict"] for node, result in results.items()} == {
        "node1": "pass", "node2": "fail", "node3": "pass",
    }  # fmt: skip
    idle = NodeState("idle", "")
    drained = NodeState("drained", f"CycleForge health: {reason}")
    assert cluster.states() == {"node1": idle, "node2": drained, "node3": idle}
    assert results["node2"]["reason"] == reason
    sick.quick()
    assert cluster.states()["node2"] == drained, "one healthy run is not enough"
    sick.quick()
    cluster.all_idle()


def test_the_timer_finds_a_fault_and_its_end_within_the_interval(
    cluster: Cluster, figure: Callable[[str], None]
) -> None:
    nodes = cluster.nodes.values()
    for node in nodes:
        node.machine.write("/etc/systemd/system/cycleforge-health.timer.d/test.conf", TIMER_DROP_IN)
        node.ok("systemctl daemon-reload; systemctl restart cycleforge-health.timer")
    try:
        # A run takes a while itself; the fault must be found by the run after it at the latest.
        cluster.wait("a run on every node", lambda: all(node.calls("nvidia-smi") for node in nodes))
        sick = cluster["node2"]
        before = _runs(sick)
        sick.gpus(6)
        found_s = cluster.wait("node2 drained", lambda: cluster.states()["node2"].state == "drained")
        runs_to_find, states, before = _runs(sick) - before, cluster.states(), _runs(sick)
        sick.heal()
        healed_s = cluster.wait("node2 idle", lambda: cluster.states()["node2"].state == "idle")
        runs_to_heal = _runs(sick) - before
    finally:
        for node in nodes:
            node.ok("rm -r /etc/systemd/system/cycleforge-health.timer.d; systemctl daemon-reload; "
                    "systemctl restart cycleforge-health.timer")  # fmt: skip
    figure(f"interval {INTERVAL_S} s: fault found after {found_s:.1f} s, end found after {healed_s:.1f} s")
    assert states["node2"].reason == "CycleForge health: gpu_count 6 GPUs, expected 8 GPUs"
    assert (states["node1"].state, states["node3"].state) == ("idle", "idle")
    # The fault by the run that was under way or the next one; its end by two that pass, as a person would want it.
    assert runs_to_find <= 2
    assert runs_to_heal <= 3


def test_a_fatal_xid_is_resumed_by_a_person_only(cluster: Cluster) -> None:
    sick = cluster["node2"]
    _xid(sick)
    sick.quick()
    wanted = cluster.states()["node2"]
    assert wanted.state == "drained"
    begin = (
        "CycleForge health: report the host to Azure and take another VM: gpu_xid XID 79 ROBUST_CHANNEL_GPU_HAS_FALLEN"
    )
    assert wanted.reason.startswith(begin)
    sick.heal()
    for _ in range(3):
        assert sick.quick()["verdict"] == "pass"
    assert cluster.states()["node2"] == wanted


def test_a_fault_while_a_job_runs_lets_the_job_finish(cluster: Cluster) -> None:
    sick = cluster["node2"]
    job = cluster.submit("echo $$ >pid; sleep 4; echo end", "--nodelist=node2", "--gpus=8")
    cluster.wait("the job runs", lambda: cluster.job(job)["JobState"] == "RUNNING")
    sick.gpus(7)
    sick.quick()
    assert cluster.states()["node2"].state == "draining"
    ended = cluster.finish(job)
    assert (ended["JobState"], ended["ExitCode"], ended["Restarts"]) == ("COMPLETED", "0:0", "0")
    assert cluster.output(job) == "end\n"
    state = cluster.wait_state("node2", "drained")
    assert state.reason == "CycleForge health: gpu_count 7 GPUs, expected 8 GPUs"


def test_a_fault_while_the_controller_is_down_drains_when_it_is_back(cluster: Cluster) -> None:
    sick = cluster["node2"]
    cluster.scheduler.ok("systemctl stop slurmctld")
    try:
        sick.gpus(7)
        during = sick.run("systemctl start cycleforge-health.service")
    finally:
        cluster.scheduler.ok("systemctl start slurmctld")
    assert during.code != 0, "a sick node that cannot be drained shows as a failed unit"
    assert sick.result("quick")["verdict"] == "fail"
    for name in ("node1", "node3"):
        cluster.wait_state(name, "idle")
    sick.quick()
    assert cluster.states()["node2"] == NodeState("drained", "CycleForge health: gpu_count 7 GPUs, expected 8 GPUs")
    assert {cluster.states()[name] for name in ("node1", "node3")} == {NodeState("idle", "")}
