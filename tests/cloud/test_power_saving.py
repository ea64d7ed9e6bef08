"""Nodes start with jobs and stop when they are idle, with the lines that a plan appends to slurm.conf."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bed.cloud import Cloud, Pool, running_cloud
from tests.bed.plans import plan_from, slurm_of

NODES = ("emu-htc-1", "emu-htc-2")
DEFINITION = "slurm: {idle_timeout_s: 60}"


@pytest.fixture(scope="module")
def running() -> Iterator[Cloud]:
    lines = slurm_of(plan_from(DEFINITION)).additional_config
    with running_cloud([Pool("htc", 2, default=True)], lines) as cloud:
        yield cloud


@pytest.fixture
def cloud(running: Cloud) -> Cloud:
    running.restore()
    return running


def test_a_job_starts_its_node_and_an_idle_node_is_deleted(cloud: Cloud) -> None:
    before = len(cloud.calls())
    assert cloud.ok("srun --nodes=1 hostname").split() == [NODES[0]]
    assert cloud.vms() == {NODES[0]}
    cloud.wait("the idle node is deleted", lambda: cloud.vms() == set())
    cloud.wait("its name is free again", lambda: {"IDLE", "CLOUD", "POWERED_DOWN"} == cloud.flags(NODES[0]))
    assert cloud.calls()[before:] == [f"resume {NODES[0]}", f"suspend {NODES[0]}"]
