"""Training that loses a node in the middle: its VM is gone with all its processes, and the run goes on without it."""

from __future__ import annotations

import re

from tests.bed.cloud import Cloud
from tests.mpi.test_own import Runs, trained


def lose(cloud: Cloud, node: str) -> None:
    """The VM is gone; azslurmd says so. Source: azslurmd 4.0.9, slurmcc/allocation.py, mark_missing_in_cyclecloud."""
    cloud.kill(node)
    words = (f"NodeName={node}", f"NodeAddr={node}", f"NodeHostName={node}", "State=down", "Reason=cyclecloud_no_node")
    cloud.slurm("scontrol", "update", *words)


def bring_back(cloud: Cloud, *nodes: str) -> None:
    for node in nodes:
        cloud.slurm("scontrol", "update", f"NodeName={node}", "State=POWER_DOWN_FORCE")
    off = {"IDLE", "CLOUD", "POWERED_DOWN"}

    def all_off() -> bool:
        for node in nodes:
            if {"POWERED_DOWN", "DOWN"} <= cloud.flags(node):
                cloud.resume(node)
        return all(cloud.flags(node) == off for node in nodes)

    cloud.wait("they are powered down", all_off)
    cloud.start(*nodes)
    cloud.wait("they are idle", lambda: all(cloud.states()[node].state == "idle" for node in nodes))


def test_a_run_goes_on_without_the_node_that_it_has_lost(own_mpi_cluster: Cloud) -> None:
    """One run has a spare node, and goes on in its job; the other one loses the node of its batch script, and Slurm
    puts it back into the queue."""
    runs = Runs(own_mpi_cluster)
    spared = runs.train("spared", 20, "--nodes=3", "--no-kill", SPARE_NODES="1")
    alone = runs.train("alone", 20, "--nodes=1")
    for name, number in (("spared", spared), ("alone", alone)):
        runs.wait_checkpoint(name, number)
    (second,) = re.findall(r"=== launch 1 .* on \S+ (\S+)\n", runs.log("spared"))
    (only,) = re.findall(r"=== launch 1 .* on (\S+)\n", runs.log("alone"))
    try:
        lose(own_mpi_cluster, second)
        lose(own_mpi_cluster, only)
        own_mpi_cluster.wait_job(alone, "PENDING")
        # As in test_own: two minutes that nobody waits for.
        own_mpi_cluster.slurm("scontrol", "update", f"JobId={alone}", "StartTime=now+1")
        record = runs.record(spared)
        assert (record["verdict"], record["run"]) == ("warn", spared), (record, runs.log("spared"))
        (gate,) = (each for each in record["checks"] if each["check"] == "node_gate")
        assert (gate["nodes"], "down" in gate["detail"]) == ([second], True)
        again = runs.record(alone)
        assert (again["verdict"], again["run"]) == ("pass", f"{alone}-restart1"), (again, runs.log("alone"))
    finally:
        bring_back(own_mpi_cluster, second, only)
    for name, lost in (("spared", second), ("alone", only)):
        first, *later = re.findall(r"=== launch .*\n", runs.log(name))
        assert later
        assert (lost in first, [lost in launch for launch in later]) == (True, [False] * len(later))
        assert runs.log(name).endswith(trained(20) + "\n")
