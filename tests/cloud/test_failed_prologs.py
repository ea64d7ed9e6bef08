"""A prolog that fails: one sick node is passed by, and one that fails everywhere does not drain the partition.

Slurm holds a job after MaxBatchRequeue failed prologs since 23.02. Source: SchedMD/slurm, CHANGELOG/slurm-23.02.md, and
slurm-25.11:src/slurmctld/job_mgr.c, _handle_requeue_limit.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bed.cloud import Cloud, Pool, running_cloud
from tests.bed.plans import plan_from, slurm_of
from tests.bed.slurm.newer import NEWER

POOL = Pool("htc", 4, default=True)
NODES = POOL.node_names
PROLOG = """#!/bin/bash
echo "$SLURMD_NODENAME" >>/mnt/shared/prologs
[[ ! -e "/mnt/shared/sick.$SLURMD_NODENAME" ]]
"""
"""It fails on sick nodes."""


@pytest.fixture(scope="module")
def running() -> Iterator[Cloud]:
    lines = [*slurm_of(plan_from()).additional_config, "SuspendTime=600000"]
    with running_cloud([POOL], lines, {"prolog.d/10-prolog.sh": PROLOG}, release=NEWER) as cluster:
        cluster.start(*NODES)
        cluster.wait("all nodes are idle", cluster.all_resumed)
        yield cluster


@pytest.fixture
def cluster(running: Cloud) -> Iterator[Cloud]:
    """All nodes healthy, and no job, before and after."""
    yield running
    for path in (*running.shared.glob("sick.*"), *running.shared.glob("prologs")):
        path.unlink()
    running.slurm("scancel", "--user=root")
    running.wait("no jobs", lambda: running.slurm("squeue", "-h", "-a") == "")
    for name in drained(running):
        running.resume(name)
    running.wait("all nodes are idle", lambda: {state.state for state in running.states().values()} == {"idle"})


def sick(cluster: Cloud, *nodes: str) -> None:
    for node in nodes:
        (cluster.shared / f"sick.{node}").touch()


def prologs(cluster: Cloud) -> list[str]:
    return (cluster.shared / "prologs").read_text().split()


def drained(cluster: Cloud) -> set[str]:
    return {name for name, state in cluster.states().items() if "drain" in state.state}


def hurried(cluster: Cloud, job: str, *wanted: str) -> dict[str, str]:
    """The job once it is in one of the states, without the two minutes that Slurm waits after each requeue."""

    def arrived() -> bool:
        found = cluster.job(job)
        # A released job keeps the word REQUEUE_HOLD until it begins; what is held has no priority.
        if found["JobState"] in ("PENDING", "REQUEUE_HOLD") and found["Priority"] != "0":
            # Refused when it has begun meanwhile.
            cluster.ok('scontrol update "JobId=$1" StartTime=now 2>/dev/null || :', job)
        return found["JobState"] in wanted

    cluster.wait(f"job {job} is {' or '.join(wanted)}", arrived)
    return cluster.job(job)


def test_a_prolog_that_fails_everywhere_drains_three_nodes_and_holds_the_job(cluster: Cloud) -> None:
    sick(cluster, *NODES)
    job = cluster.submit("echo ran")
    held = hurried(cluster, job, "REQUEUE_HOLD", "COMPLETED")
    assert held["Reason"] == "launch_failure_limit_exceeded_requeued_held"
    assert drained(cluster) == set(NODES[:3])
    assert cluster.states()[NODES[0]].reason == "Prolog error"
    assert prologs(cluster) == [*NODES[:3]]
    # What README says: the cause is gone, the job is released.
    (cluster.shared / f"sick.{NODES[3]}").unlink()
    cluster.slurm("scontrol", "release", job)
    hurried(cluster, job, "COMPLETED")
    assert cluster.output(job) == "ran\n"


def test_a_job_that_meets_one_sick_node_runs_on_another(cluster: Cloud) -> None:
    sick(cluster, NODES[0])
    job = cluster.submit("echo ran")
    hurried(cluster, job, "COMPLETED")
    assert cluster.output(job) == "ran\n"
    assert prologs(cluster) == [*NODES[:2]]
    assert drained(cluster) == {NODES[0]}
