"""Dynamic nodes: created by an administrator with a feature, started for jobs that ask for it, kept when they stop."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bed.cloud import Cloud, Pool, running_cloud
from tests.bed.plans import plan_from, slurm_of

SIZES = ("Standard_F2s_v2", "Standard_D64ds_v5")


@pytest.fixture(scope="module")
def cloud() -> Iterator[Cloud]:
    lines = slurm_of(plan_from("slurm: {idle_timeout_s: 60}")).additional_config
    with running_cloud([Pool("dyn", 2, feature="dyn")], lines) as running:
        yield running


def test_a_job_gets_a_node_with_its_feature(cloud: Cloud) -> None:
    assert cloud.states() == {}
    small, big = cloud.pools["dyn"].node_names
    cloud.add_dynamic(small, "dyn", SIZES[0])
    cloud.add_dynamic(big, "dyn", SIZES[1])
    assert {name: row.state for name, row in cloud.states().items()} == {small: "idle~", big: "idle~"}
    assert cloud.ok(f"srun --partition=dyn --constraint={SIZES[1]} hostname").split() == [big]
    assert cloud.vms() == {big}
    cloud.wait("the idle node is deleted", lambda: cloud.vms() == set())
    cloud.wait("it is still defined", lambda: cloud.flags(big) >= {"IDLE", "CLOUD", "POWERED_DOWN"})
    assert set(cloud.node(big)["AvailableFeatures"].split(",")) == {"dyn", SIZES[1]}
    assert cloud.ok(f"srun --partition=dyn --constraint={SIZES[0]} hostname").split() == [small]
    assert cloud.calls()[0] == f"resume {big}"


def test_a_feature_that_no_node_has_is_refused(cloud: Cloud) -> None:
    answer = cloud.run("srun --partition=dyn --constraint=Standard_ND96isr_H100_v5 hostname")
    assert answer.code != 0
    assert "Invalid feature specification" in answer.output
