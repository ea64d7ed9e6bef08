"""Deep checks: at boot before the first job, on idle nodes, and never in the way of a job."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.bed.slurm.client import NodeState
from tests.bed.slurm.cluster import Cluster
from tests.bed.slurm.members import RESULTS, GpuNode
from tests.bed.slurm.stamps import seconds, stamped_hooks

SLOW_TOOLS = {
    "nvbandwidth": ("nvbandwidth.slow_s", "nvbandwidth -t"),
    "nvbandwidth that ignores SIGTERM": ("nvbandwidth.slow_s", "nvbandwidth -t"),
    "ib_write_bw": ("ib_write_bw.slow_s", "ib_write_bw .*localhost"),
    "mpirun": ("all_reduce_perf.slow_s", "all_reduce_perf"),
}
"""Deep tool → state file that makes it slow, and what its processes are called."""
IDLE = "cycleforge-health-idle.service"
ANY_TOOL = "nvbandwidth|ib_write_bw|mpirun|all_reduce_perf|dcgmi"


def test_a_node_whose_deep_checks_fail_at_boot_joins_and_takes_no_job(cluster: Cluster) -> None:
    node = cluster["node3"]
    node.state("bus_gb_s", "230.50")
    node.reboot()
    try:
        assert node.result("deep")["verdict"] == "fail"
        assert node.ok("systemctl is-active slurmd").strip() == "active"
        job = cluster.submit("echo ran", "--nodelist=node3")
        state = cluster.wait_state("node3", "drained")
        assert state.reason.startswith("CycleForge health: deep_checks (nccl_all_reduce 230.50 GB/s, at least 460 GB/s")
        assert cluster.output(job) == ""
        assert cluster.job(job)["JobState"] == "PENDING"
        cluster.slurm("scancel", job)
        # The rest of the cluster works, and healthy counters resume nothing.
        assert cluster.finish(cluster.submit("true", "--nodes=2"))["ExitCode"] == "0:0"
        for _ in range(3):
            node.quick()
        # A star says only that a busy host did not answer a ping.
        assert cluster.states()["node3"] in (state, NodeState("drained*", state.reason))
        first = node.result("deep")
    finally:
        node.heal()
        node.reboot()
    second = node.result("deep")
    assert second["boot_id"] != first["boot_id"]
    assert (second["verdict"], second["kind"]) == ("pass", "deep")
    _measured_before_slurmd(node)
    # The quick run that slurmd starts resumes it.
    cluster.wait_state("node3", "idle")
    assert cluster.finish(cluster.submit("true", "--nodelist=node3"))["ExitCode"] == "0:0"


def _measured_before_slurmd(node: GpuNode) -> None:
    """At this boot the deep checks ended before slurmd started."""
    show = "systemctl show --value --timestamp=unix -p"
    deep_end = node.ok(f"{show} ExecMainExitTimestampMonotonic cycleforge-health-deep.service")
    slurmd_start = node.ok(f"{show} ExecMainStartTimestampMonotonic slurmd.service")
    assert 0 < int(deep_end) < int(slurmd_start)
    active = node.ok("systemctl is-active cycleforge-health.timer cycleforge-health-deep.service slurmd munge").split()
    assert active == ["active"] * 4


@pytest.fixture
def idle_deep(cluster: Cluster) -> Cluster:
    """The last deep checks of node1 were two hours ago, and one hour is the definition's limit."""
    node = cluster["node1"]
    node.ok("touch -d '2 hours ago' \"$1\"", f"{RESULTS}/deep.json")
    return cluster


def test_an_idle_node_is_measured_again(idle_deep: Cluster) -> None:
    node = idle_deep["node1"]
    before = node.result("deep")["time"]
    calls = len(node.calls())
    node.start_unit(IDLE)
    result = node.result("deep")
    assert result["verdict"] == "pass"
    assert result["time"] > before
    tools = {call.split()[0] for call in node.calls()[calls:]}
    assert {"nvbandwidth", "all_reduce_perf", "ib_write_bw"} <= tools
    calls = len(node.calls())
    node.start_unit(IDLE)
    assert node.calls()[calls:] == [], "not due again"


def test_a_busy_node_is_left_alone(idle_deep: Cluster) -> None:
    node = idle_deep["node1"]
    job = idle_deep.submit_held("--nodelist=node1", "--ntasks=1", "--mem=1000")
    calls = len(node.calls())
    node.start_unit(IDLE)
    assert [call for call in node.calls()[calls:] if not call.startswith("nvidia-smi")] == []
    idle_deep.release(job)
    assert idle_deep.finish(job)["ExitCode"] == "0:0"


@pytest.mark.parametrize("tool", SLOW_TOOLS)
def test_a_job_stops_the_deep_run_on_its_node(idle_deep: Cluster, tool: str, figure: Callable[[str], None]) -> None:
    cluster, node = idle_deep, idle_deep["node1"]
    slow, pattern = SLOW_TOOLS[tool]
    node.state(slow, 3600)
    if "ignores" in tool:
        node.state("nvbandwidth.stubborn")
    measured = node.result("deep")
    node.start_unit(IDLE, "--no-block")
    cluster.wait(f"{tool} runs", lambda: bool(node.processes(pattern)))
    with stamped_hooks(cluster):
        job = cluster.submit(f"pgrep -a -f '{ANY_TOOL}'; echo ran", "--nodelist=node1", "--gpus=8")
        ended = cluster.finish(job)
    assert (ended["JobState"], ended["ExitCode"], ended["Restarts"]) == ("COMPLETED", "0:0", "0")
    seen = cluster.output(job)
    assert seen == "ran\n", "no process of the deep run is left when the job starts"
    assert node.processes(ANY_TOOL) == []
    _, prolog_s = seconds(node, "prolog")[job]
    figure(f"prolog that stopped {tool}: {prolog_s:.2f} s")
    cluster.wait("the unit has ended", lambda: node.run("systemctl is-active $1", IDLE).code != 0)
    assert node.ok("systemctl show --value -p Result $1", IDLE).strip() == "success"
    assert node.result("deep") == measured
    assert cluster.states()["node1"].state == "idle"
