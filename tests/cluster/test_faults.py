"""A fault on one node drains exactly that node, with a reason that names check, value, limit and unit."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

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


PASSED = re.compile(r"\bquick: (pass|warn) by ")
"""In the last line of a run."""


def _last_begun(node: GpuNode) -> str:
    """The run that the timer began last, by the id that systemd gave it; it may have ended."""
    return node.ok("systemctl show --property=InvocationID --value cycleforge-health.service").strip()


def _runs_from(node: GpuNode, first: str) -> list[str]:
    """What every run from this one on has said, in the order in which they began."""
    lines = node.ok("journalctl.real --no-pager -o json --unit=cycleforge-health.service").splitlines()
    entries = [json.loads(line) for line in lines]
    said = {entry["INVOCATION_ID"]: "" for entry in entries if str(entry["MESSAGE"]).startswith("Starting ")}
    for entry in entries:
        run = entry.get("_SYSTEMD_INVOCATION_ID")
        if run in said:
            said[run] += f"{entry['MESSAGE']}\n"
    return list(said.values())[list(said).index(first) :]


def _until(cluster: Cluster, node: GpuNode, first: str, words: str) -> list[str]:
    """The runs from the first one to the one that says these words. The journal may be later than Slurm."""
    cluster.wait(f"the journal has: {words}", lambda: any(words in run for run in _runs_from(node, first)))
    runs = _runs_from(node, first)
    return runs[: next(place for place, run in enumerate(runs) if words in run) + 1]


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
GPU_GONE: Fault = (lambda node: node.gpus(7), "gpu_count 7 GPUs, expected 8 GPUs (missing 0008:00:00)")
MEMORY_ERROR: Fault = (
    lambda node: node.field(3, "ecc.errors.uncorrected.volatile.sram", "1"),
    "gpu_ecc_sram_uncorrectable 1 errors, at most 0 errors (GPU 3)",
)
PORT_DOWN: Fault = (_port_down, "ib_ports_active 7 ports, at least 8 ports (mlx5_ib5 DOWN Disabled)")
PORT_SLOW: Fault = (_port_slow, "ib_rate 200 Gb/s, at least 400 Gb/s (mlx5_ib2)")
READ_ONLY: Fault = (_read_only, "mount (/shared is mounted read-only)")
HEALTHY: Fault = (lambda _: None, "")


@pytest.fixture
def counted_runs(cluster: Cluster) -> Iterator[Cluster]:
    """No timer runs the checks meanwhile; its first run, within two minutes of a boot, would be one more."""
    for node in cluster.nodes.values():
        node.ok("systemctl stop cycleforge-health.timer")
    yield cluster
    for node in cluster.nodes.values():
        node.ok("systemctl start cycleforge-health.timer")


@pytest.mark.parametrize(
    "faults",
    [(GPU_GONE, HEALTHY, PORT_DOWN), (MEMORY_ERROR, READ_ONLY, PORT_SLOW)],
    ids=["GPU, none, port down", "ECC, read-only, port slow"],
)
def test_a_fault_drains_exactly_its_node_and_recovers(counted_runs: Cluster, faults: tuple[Fault, ...]) -> None:
    """Each node its own fault, one of them none."""
    cluster = counted_runs
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
        sick.gpus(6)
        last = _last_begun(sick)
        found_s = cluster.wait("node2 drained", lambda: cluster.states()["node2"].state == "drained")
        states = cluster.states()
        to_find = _until(cluster, sick, last, "drained: CycleForge health: gpu_count 6")
        sick.heal()
        last = _last_begun(sick)
        healed_s = cluster.wait("node2 idle", lambda: cluster.states()["node2"].state == "idle")
        to_heal = _until(cluster, sick, last, "resumed; it was drained for: CycleForge health: gpu_count 6")
    finally:
        for node in nodes:
            node.ok("rm -r /etc/systemd/system/cycleforge-health.timer.d; systemctl daemon-reload; "
                    "systemctl restart cycleforge-health.timer")  # fmt: skip
    figure(f"interval {INTERVAL_S} s: fault found after {found_s:.1f} s, end found after {healed_s:.1f} s")
    missing = "missing 0007:00:00, missing 0008:00:00"
    assert states["node2"].reason == f"CycleForge health: gpu_count 6 GPUs, expected 8 GPUs ({missing})"
    assert "gpu_count" not in states["node1"].reason + states["node3"].reason
    # Nothing is said about seconds, and a run in which a tool was too slow for its limit has not seen the node.
    assert not [run for run in to_find[1:] if PASSED.search(run)], "a run that begins after the fault finds it"
    assert len([run for run in to_heal[1:] if PASSED.search(run)]) <= 2, "two runs that pass are enough"


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
    job = cluster.submit_held("--nodelist=node2", "--gpus=8")
    sick.gpus(7)
    sick.quick()
    assert cluster.states()["node2"].state == "draining"
    cluster.release(job)
    ended = cluster.finish(job)
    assert (ended["JobState"], ended["ExitCode"], ended["Restarts"]) == ("COMPLETED", "0:0", "0")
    assert cluster.output(job) == "end\n"
    state = cluster.wait_state("node2", "drained")
    assert state.reason == "CycleForge health: gpu_count 7 GPUs, expected 8 GPUs (missing 0008:00:00)"


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
    reason = "CycleForge health: gpu_count 7 GPUs, expected 8 GPUs (missing 0008:00:00)"
    assert cluster.states()["node2"] == NodeState("drained", reason)
    assert {cluster.states()[name] for name in ("node1", "node3")} == {NodeState("idle", "")}
