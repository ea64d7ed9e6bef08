"""Nodes start with jobs and stop when they are idle, with the lines that a plan appends to slurm.conf."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from generator.cyclecloud import slurm
from generator.cyclecloud.scaling import are_in_place, decide
from generator.cyclecloud.shell import Ran
from tests.bed.cloud import Cloud, Pool, running_cloud
from tests.bed.plans import plan_from, slurm_of

NODES = ("emu-htc-1", "emu-htc-2")
DEFINITION = "slurm: {idle_timeout_s: 60}"


@pytest.fixture(scope="module")
def running() -> Iterator[Cloud]:
    lines = slurm_of(plan_from(DEFINITION)).additional_config
    with running_cloud([Pool("htc", 2, default=True)], lines) as cloud:
        yield cloud


def test_a_job_starts_its_node_and_an_idle_node_is_deleted(cloud: Cloud) -> None:
    before = len(cloud.calls())
    assert cloud.ok("srun --nodes=1 hostname").split() == [NODES[0]]
    assert cloud.vms() == {NODES[0]}
    cloud.wait("the idle node is deleted", lambda: cloud.vms() == set())
    cloud.wait("its name is free again", lambda: {"IDLE", "CLOUD", "POWERED_DOWN"} == cloud.flags(NODES[0]))
    assert cloud.calls()[before:] == [f"resume {NODES[0]}", f"suspend {NODES[0]}"]


def test_a_node_that_azure_refuses_is_down_and_its_job_is_queued_again(cloud: Cloud) -> None:
    with cloud.with_settings("ResumeTimeout=3"), cloud.mark("refuse", NODES[0]):
        before = len(cloud.calls())
        job = cloud.submit("hostname", "--nodes=1", "--requeue")
        cloud.wait("the ResumeFailProgram has run", lambda: f"resume_fail {NODES[0]}" in cloud.calls()[before:])
        cloud.wait("the node is down", lambda: {"DOWN", "POWERED_DOWN"} <= cloud.flags(NODES[0]))
        cloud.wait("the job is queued again", lambda: cloud.job(job)["Restarts"] == "1")
    # Slurm lets it wait for two minutes.
    assert cloud.job(job)["JobState"] == "PENDING"
    cloud.slurm("scancel", job)
    # What cron does every five minutes for nodes that are DOWN and POWERED_DOWN, and of which CycleCloud has no VM:
    # slurmcc/cli.py of cyclecloud-slurm 4.0.9, _return_to_idle.
    cloud.ok(f"scontrol update nodename={NODES[0]} state=idle")
    assert cloud.ok(f"srun --nodelist={NODES[0]} hostname").split() == [NODES[0]]


def test_a_node_with_a_job_is_not_idle(cloud: Cloud) -> None:
    # Longer than SuspendTime and the interval of power saving together: a node that stopped would end the job.
    assert cloud.ok("srun --nodes=1 bash -c 'sleep 6; hostname'").split() == [NODES[0]]


class Scheduler:
    """What `cycleforge scale` talks to; `sudo` is not installed here."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def run(self, command: str, *, input: bytes = b"", limit_s: float) -> Ran:  # noqa: A002 - as Shell
        ran = self._cloud.run(f'sudo() {{ shift; "$@"; }}\n{command}', timeout_s=limit_s)
        return Ran(ran.code, ran.output, "")


@pytest.fixture
def patient(cloud: Cloud) -> Iterator[Cloud]:
    """It ends no idle node by itself."""
    with cloud.with_settings("SuspendTime=600"):
        yield cloud


def test_scale_starts_nodes_and_ends_idle_ones(patient: Cloud) -> None:
    cloud, scheduler = patient, Scheduler(patient)
    queue = slurm.look(scheduler)
    assert queue.saves_power
    up = decide(queue, "htc", 2)
    assert (up.has, up.up, up.down) == (0, NODES, ())
    slurm.set_power(scheduler, queue, up.up, up=True)
    assert are_in_place(slurm.look(scheduler).nodes, up)
    job = cloud.submit("sleep 600", "--nodes=1")
    cloud.wait(
        "both nodes are up", lambda: [n.is_idle or n.has_jobs for n in slurm.look(scheduler).nodes] == [True] * 2
    )
    cloud.wait("the job runs", lambda: [each.state for each in slurm.look(scheduler).jobs] == ["RUNNING"])
    queue = slurm.look(scheduler)
    (running,) = queue.jobs
    down = decide(queue, "htc", 0)
    assert [node.name for node in down.busy] == [running.nodes]
    assert set(down.down) == set(NODES) - {running.nodes}
    # Told to end them all, Slurm still waits for the job.
    slurm.set_power(scheduler, queue, NODES, up=False)
    assert are_in_place(slurm.look(scheduler).nodes, down)
    cloud.wait("the idle node is deleted", lambda: cloud.vms() == {running.nodes})
    assert [each.id for each in slurm.look(scheduler).jobs] == [job]
    cloud.slurm("scancel", job)


def test_without_the_states_that_are_kept_power_saving_forgets_a_drain(cloud: Cloud) -> None:
    """Slurm 22.05 has no SuspendExcStates, so W3201 warns; with it, see test_drained_nodes.py."""
    # While a job holds it: an idle node is suspended within seconds.
    cloud.slurm("salloc", "--no-shell", f"--nodelist={NODES[0]}")
    cloud.drain(NODES[0], "CycleForge health: gpu_count 7 GPUs, expected 8 GPUs")
    cloud.slurm("scancel", "--user=root")
    cloud.wait("the VM with the fault is deleted", lambda: cloud.vms() == set())
    cloud.wait("nothing tells of it", lambda: cloud.flags(NODES[0]) == {"IDLE", "CLOUD", "POWERED_DOWN"})
