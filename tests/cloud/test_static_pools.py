"""A static pool: what starts when, with the line that a plan appends and the commands of its README."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest

from tests.bed.cloud import Cloud, Pool, pools_of, running_cloud
from tests.bed.cloud.files import autoscales
from tests.bed.plans import plan_from, slurm_of
from tests.cloud.readme_commands import readme_text

PLAN = plan_from("slurm: {autoscale: false}")
FIRST, SECOND = NODES = ("minimal-htc-1", "minimal-htc-2")

JOB = "cd /mnt/shared; touch began; until [[ -e go ]]; do sleep 0.1; done; touch ended"


@pytest.fixture(scope="module")
def running() -> Iterator[Cloud]:
    slurm = slurm_of(PLAN)
    with running_cloud(pools_of(slurm), slurm.additional_config) as running:
        yield running


def test_azslurm_and_slurm_keep_power_saving(cloud: Cloud) -> None:
    assert autoscales((cloud.folder / "etc/slurm.conf").read_text())
    assert {name: row.state for name, row in cloud.states().items()} == dict.fromkeys(NODES, "idle~")
    assert cloud.vms() == set()


def test_a_job_starts_its_node_which_stays(cloud: Cloud) -> None:
    before = len(cloud.calls())
    cloud.ok("srun --nodes=1 hostname")
    time.sleep(3)
    assert cloud.calls()[before:] == [f"resume {FIRST}"]
    cloud.stop_controller()
    cloud.start_controller()
    cloud.wait("the node is known after a restart", lambda: cloud.states()[FIRST].state == "idle")
    assert cloud.states()[SECOND].state == "idle~"
    assert cloud.vms() == {FIRST}


def test_readme_starts_a_whole_partition_and_stops_it_when_its_jobs_have_ended(cloud: Cloud) -> None:
    (command,) = re.findall(r"^sudo (scontrol update .*state=power_up)$", readme_text(PLAN), re.MULTILINE)
    cloud.ok(command)
    for name in NODES:
        cloud.wait_state(name, "idle")
    assert cloud.vms() == set(NODES)
    cloud.submit(JOB, "--nodes=1")
    cloud.wait("the job has begun", (cloud.shared / "began").exists)
    busy = cloud.slurm("squeue", "-h", "-o", "%N").strip()
    (idle,) = set(NODES) - {busy}
    cloud.ok(command.replace("state=power_up", "state=power_down_asap"))
    cloud.wait("the node without a job stops", lambda: cloud.vms() == {busy})
    cloud.wait(f"{idle} is free", lambda: cloud.flags(idle) == {"IDLE", "CLOUD", "POWERED_DOWN"})
    (cloud.shared / "go").touch()
    cloud.wait("the job ends as it wants", (cloud.shared / "ended").exists)
    cloud.wait("the other one stops too", lambda: cloud.vms() == set())


def test_a_negative_time_would_hide_the_nodes() -> None:
    with running_cloud([Pool("htc", 2, default=True)], ["SuspendTime=-1"]) as hidden:
        assert not autoscales((hidden.folder / "etc/slurm.conf").read_text())
        assert hidden.states() == {}
        job = hidden.submit("hostname", "--nodes=1")
        hidden.wait("the scheduler has looked at it", lambda: hidden.job(job)["Reason"] not in ("None", "Priority"))
        assert hidden.job(job)["JobState"] == "PENDING"
        assert hidden.calls() == []
