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


Fault = tuple[Callable[[GpuNode], None], str]
GPU_GONE: Fault = (lambda node: node.gpus(7), "gpu_count 7 GPUs, expected 8 GPUs")
MEMORY_ERROR: Fault = (
    lambda node: node.field(3, "ecc.errors.uncorrected.volatile.sram", "1"),
    "gpu_ecc_sram_uncorrectable 1 errors, at most 0 errors (GPU 3)",
)
PORT_DOWN: Fault = (_port_down, "ib_ports_active 7 ports, at least 8 ports (mlx5_ib5 DOWN Disabled)")
PORT_SLOW: Fault = (_port_slow, "ib_rate 200 Gb/s, at least 400 Gb/s (mlx5_ib2)")
READ_ONLY: Fault = (_read_only, "mount (/shared is mounted read-only)")
HEALTHY: Fault = (lambda _: None, "")


@pytest.mark.parametrize(
    "faults",
    [(GPU_GONE, HEALTHY, PORT_DOWN), (MEMORY_ERROR, READ_ONLY, PORT_SLOW)],
    ids=["GPU, none, port down", "ECC, read-only, port slow"],
)
def test_a_fault_drains_exactly_its_node_and_recovers(cluster: Cluster, faults: tuple[Fault, ...]) -> None:
    """Each node its own fault, one of them none."""
    broken = dict(zip(cluster.nodes, faults, strict=True))
    for name, (break_it, _) in broken.items():
        break_it(cluster[name])
    try:
        results = {name: node.quick() for name, node in cluster.nodes.items()}
    finally:
        for node in cluster.nodes.values():
            node.heal()
            _writable(node)
    assert {name: (result["verdict"], result["reason"]) for name, result in results.items()} == {
        name: ("fail" if reason else "pass", reason) for name, (_, reason) in broken.items()
    }
    shown = {
        name: NodeState("drained", f"CycleForge health: {reason}") if reason else NodeState("idle", "")
        for name, (_, reason) in broken.items()
    }
    assert cluster.states() == shown
    sick = [cluster[name] for name, (_, reason) in broken.items() if reason]
    for node in sick:
        node.quick()
    assert cluster.states() == shown, "one healthy run is not enough"
    for node in sick:
        node.quick()
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
