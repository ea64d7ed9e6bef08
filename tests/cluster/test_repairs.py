"""A node that is sick twice, a controller that hangs, what a run leaves behind."""

from __future__ import annotations

from tests.bed.slurm.client import NodeState
from tests.bed.slurm.cluster import Cluster
from tests.bed.slurm.members import RESULTS


def test_a_fatal_xid_on_a_node_that_we_drained_already_is_not_resumed(cluster: Cluster) -> None:
    sick = cluster["node2"]
    sick.gpus(7)
    sick.quick()
    sick.xid(79)
    sick.quick()
    assert "gpu_xid XID 79 " in cluster.states()["node2"].reason
    sick.heal()
    for _ in range(3):
        sick.quick()
    assert cluster.states()["node2"].state == "drained"


def test_a_node_with_failed_deep_checks_takes_no_job_although_slurm_does_not_answer_it(cluster: Cluster) -> None:
    node = cluster["node3"]
    node.state("bus_gb_s", "230.50")
    # Only the prolog is between the node and the job: no quick run drains it first.
    node.ok("mv /etc/systemd/system/cycleforge-health.service /root/")
    node.reboot()
    cluster.wait_state("node3", "idle")
    node.machine.write("/usr/local/sbin/scontrol", "#!/bin/bash\nexec sleep 100\n", 0o755)
    try:
        job = cluster.submit("echo ran", "--nodelist=node3")
        state = cluster.wait_state("node3", "drained")
        assert state.reason == "Prolog error"
        assert cluster.output(job) == ""
    finally:
        node.ok("rm /usr/local/sbin/scontrol; mv /root/cycleforge-health.service /etc/systemd/system/")
        node.heal()
        node.reboot()


def test_a_deep_run_that_was_stopped_leaves_no_files(cluster: Cluster) -> None:
    node = cluster["node1"]
    node.ok("touch -d '2 hours ago' \"$1\"", f"{RESULTS}/deep.json")
    before = node.ok("ls -A /tmp")
    node.state("ib_write_bw.slow_s", 300)
    node.start_unit("cycleforge-health-idle.service", "--no-block")
    cluster.wait("ib_write_bw runs", lambda: bool(node.processes("ib_write_bw .*localhost")))
    assert cluster.finish(cluster.submit("true", "--nodelist=node1"))["ExitCode"] == "0:0"
    assert node.ok("ls -A /tmp") == before


def test_units_write_no_shell_errors(cluster: Cluster) -> None:
    node = cluster["node1"]
    node.quick()
    assert "No such file" not in node.ok("journalctl.real -o cat --no-pager -u 'cycleforge-*'")
    assert cluster.states()["node1"] == NodeState("idle", "")
