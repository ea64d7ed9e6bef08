"""nvidia-smi hangs: health work ends within its bound, and what could not be measured never passes."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from tests.bed.slurm.cluster import STRICT_NODE, Cluster


def test_a_hanging_driver_delays_no_job_and_drains_nothing_by_default(
    cluster: Cluster, figure: Callable[[str], None]
) -> None:
    node = cluster["node2"]
    node.state("nvidia-smi.hang")
    start = time.monotonic()
    ended = cluster.finish(cluster.submit("true", "--nodelist=node2"))
    took_s = time.monotonic() - start
    figure(f"job with a hanging nvidia-smi, from submission to the end of its epilog: {took_s:.1f} s")
    assert (ended["JobState"], ended["ExitCode"]) == ("COMPLETED", "0:0")
    # The timer may have been first: then its run, which meets the same driver, is the one that the epilog left it to.
    node.ends()
    result = node.result("quick")
    assert result["verdict"] == "incomplete"
    unmeasured = {row["check"] for row in result["checks"] if row["verdict"] == "not_measured"}
    assert "nvidia_smi" in unmeasured
    cluster.wait_state("node2", "idle")
    assert node.processes("nvidia-smi|sleep 3600") == []


def test_by_policy_what_could_not_be_measured_drains(cluster: Cluster) -> None:
    node = cluster[STRICT_NODE]
    # "Function not found in this NVML": the question was wrong, which says nothing about the GPUs.
    node.state("nvidia-smi.exit", 13)
    assert node.quick()["verdict"] == "incomplete"
    state = cluster.states()[STRICT_NODE]
    assert state.state == "drained"
    assert state.reason.startswith("CycleForge health: ")
    assert "could not be measured" in state.reason
    node.heal()
    node.quick()
    node.quick()
    cluster.wait_state(STRICT_NODE, "idle")


HELD = "/run/test-holds-the-run"
HOLD = f"[Service]\nExecStartPost=/bin/bash -c 'while [[ -e {HELD} ]]; do sleep 0.1; done'\n"


def test_no_test_begins_while_a_run_meets_what_the_last_one_broke(cluster: Cluster) -> None:
    """An epilog leaves its own run out while another one goes on, as the one that slurmd starts does at first."""
    node = cluster["node2"]
    drop_in = "/etc/systemd/system/cycleforge-health.service.d/test.conf"
    node.machine.write(drop_in, HOLD)
    node.ok(f"touch {HELD}; systemctl daemon-reload")
    try:
        node.gpus(7)
        node.start_unit("cycleforge-health.service", "--no-block")
        cluster.wait_state("node2", "drained")
        with ThreadPoolExecutor(1) as pool:
            restored = pool.submit(cluster.restore)
            try:
                cluster.wait("it waits", lambda: restored.done() or node.processes("is-active") != [])
                assert not restored.done()
            finally:
                node.ok(f"rm {HELD}")
            restored.result()
    finally:
        node.ok(f"rm -f {HELD}; rm -r {drop_in.rpartition('/')[0]}; systemctl daemon-reload")
    assert cluster.states()["node2"].state == "idle"
    assert node.quick()["verdict"] == "pass"
