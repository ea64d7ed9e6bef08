"""What README says to do with a node that azslurm has set down: its command is run, and the node takes a job again.

azslurmd 4.0.9 sets nodes down with the words of `MARK` (slurmcc/allocation.py, mark_missing_in_cyclecloud and
mark_down_as_zombie). `azslurm return_to_idle` (slurmcc/cli.py) leaves both alone: it looks at nodes that are DOWN and
POWERED_DOWN, which one without a VM is not, and of these only at nodes without a VM, which a zombie has.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bed.cloud import Cloud, pools_of, running_cloud
from tests.bed.plans import plan_from, slurm_of
from tests.cloud.readme_commands import readme_text, remedy

PLAN = plan_from()
NODE = "minimal-htc-1"
MARK = f"scontrol update NodeName={NODE} NodeAddr={NODE} NodeHostName={NODE} State=down Reason="
OFF = {"IDLE", "CLOUD", "POWERED_DOWN"}


@pytest.fixture(scope="module")
def running() -> Iterator[Cloud]:
    slurm = slurm_of(PLAN)
    with running_cloud(pools_of(slurm), slurm.additional_config) as cloud:
        yield cloud


def takes_a_job(cloud: Cloud) -> None:
    assert cloud.ok(f"srun --nodelist={NODE} hostname").split() == [NODE]
    assert NODE in cloud.vms()


def test_a_node_whose_vm_is_gone(cloud: Cloud) -> None:
    takes_a_job(cloud)
    cloud.kill(NODE)
    cloud.ok(MARK + "cyclecloud_no_node")
    # Not powered down, so return_to_idle does not look at it.
    assert cloud.flags(NODE) == {"DOWN", "CLOUD"}
    cloud.ok(remedy(readme_text(PLAN), "cyclecloud_no_node", NODE))
    cloud.wait("it is free", lambda: cloud.flags(NODE) == OFF)
    takes_a_job(cloud)


def test_a_node_whose_vm_runs_without_slurm(cloud: Cloud) -> None:
    with cloud.mark("hang", NODE):
        cloud.start(NODE)
        cloud.ok(MARK + "cyclecloud_zombie_node")
        assert cloud.flags(NODE) == {"DOWN", "CLOUD", "POWERED_DOWN"}
        cloud.ok(remedy(readme_text(PLAN), "cyclecloud_zombie_node", NODE))
        cloud.wait("its VM is deleted", lambda: cloud.vms() == set())
    cloud.wait("it is free", lambda: cloud.flags(NODE) == OFF)
    takes_a_job(cloud)


def test_a_node_that_is_down_joins_when_its_slurmd_starts(cloud: Cloud) -> None:
    cloud.ok(MARK + "cyclecloud_zombie_node")
    assert cloud.flags(NODE) == {"DOWN", "CLOUD", "POWERED_DOWN"}
    cloud.start(NODE)
    cloud.wait_state(NODE, "idle")
    takes_a_job(cloud)
