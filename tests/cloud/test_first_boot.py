"""The first start of a scheduler whose partitions name QoS, with a slurmdbd that is new, old, late or changed."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import yaml

from generator.files import assets
from generator.plan.cluster import SlurmPlan
from tests.bed.cloud import Pool, running_cloud
from tests.bed.cloud.policy import Policy
from tests.bed.plans import plan_from, slurm_of
from tests.bed.yaml_data import yaml_data
from tests.definitions.test_worked_examples import EXAMPLES, added

DEFINITION = """
slurm:
  accounting: {type: new}
  partitions:
    - {name: htc, vm_size: Standard_D64ds_v5, max_nodes: 2, default: true, qos: cap, allow_qos: [normal, cap]}
  policy:
    enforce: false
    qos: [{name: cap, max_tres_per_user: "gres/gpu=8"}]
"""
PLAN = slurm_of(plan_from(DEFINITION))


def started(plan: SlurmPlan) -> Iterator[Policy]:
    """A scheduler before the first start of its slurmctld, which slurmdbd has never heard of."""
    pools = [Pool(name, 2, default=not place) for place, name in enumerate({a.partition: 0 for a in plan.node_arrays})]
    with running_cloud(pools, plan.additional_config, accounting=True, start=False) as cloud:
        cloud.slurm("sacctmgr", "-i", "delete", "cluster", "emu")
        policy = Policy(cloud)
        # The administrator is no user of this machine.
        policy.give([row for row in policy.rows(plan) if "ccadmin" not in row])
        yield policy


@pytest.fixture
def policy() -> Iterator[Policy]:
    yield from started(PLAN)


def named(policy: Policy, partition: str = "htc") -> tuple[str, str]:
    """QOS and AllowQos of a partition, as slurmctld has them."""
    shown = policy.cloud.slurm("scontrol", "--oneliner", "show", "partition", partition)
    words = dict(re.findall(r"(\S+?)=(\S*)", shown))
    return words["QoS"], words["AllowQos"]


def loaded(policy: Policy) -> list[str]:
    """What the first run of the timer says once slurmctld is known to slurmdbd."""
    policy.cloud.wait("slurmctld has registered", lambda: policy.of("cluster", "format=controlport") not in ("", "0"))
    return policy.run("load")


def stop_slurmdbd(policy: Policy) -> None:
    policy.cloud.ok('kill "$(</run/slurmdbd.pid)"; while pgrep -x slurmdbd >/dev/null; do sleep 0.05; done')


def start_slurmdbd(policy: Policy) -> None:
    policy.cloud.ok("slurmdbd")
    policy.cloud.wait("slurmdbd answers", lambda: policy.cloud.run("sacctmgr -n show qos").code == 0)


def test_slurmctld_starts_with_the_qos_of_its_partitions_and_the_limits_follow(policy: Policy) -> None:
    policy.starts()
    assert named(policy) == ("cap", "normal,cap")
    assert loaded(policy)[0] == "qos cap: maxtresperuser=gres/gpu=8"
    assert policy.of("qos", "cap", "format=maxtresperuser") == "gres/gpu=8"


def test_a_slurmdbd_that_comes_late_brings_the_qos_without_a_restart(policy: Policy) -> None:
    stop_slurmdbd(policy)
    policy.run("qos", code=75)
    policy.run("partitions")
    start_slurmdbd(policy)
    policy.cloud.start_controller()
    assert named(policy) == ("N/A", "ALL")
    assert "slurmctld has read its partitions anew" in loaded(policy)
    assert named(policy) == ("cap", "normal,cap")


def test_an_existing_database_keeps_the_qos_that_it_has(policy: Policy) -> None:
    policy.cloud.slurm("sacctmgr", "-i", "add", "qos", "cap", "set", "priority=7")
    policy.starts()
    assert named(policy) == ("cap", "normal,cap")
    loaded(policy)
    assert policy.of("qos", "cap", "format=priority,maxtresperuser") == "7|gres/gpu=8"
    policy.load([])
    assert policy.of("qos", "cap", "format=priority,maxtresperuser") == "7|"


def test_a_new_database_below_an_old_record_does_not_stop_slurmctld(policy: Policy) -> None:
    (policy.sched / "cycleforge-policy.record").write_text("qos cap exists|made|\n")
    policy.starts()
    assert named(policy) == ("N/A", "normal")
    loaded(policy)
    assert "qos cap added" in policy.run("load", "--again")
    assert named(policy) == ("cap", "normal,cap")


def test_a_qos_that_an_administrator_deleted_does_not_stop_slurmctld(policy: Policy) -> None:
    policy.starts()
    loaded(policy)
    policy.cloud.slurm("sacctmgr", "-i", "delete", "qos", "cap")
    policy.restarts()
    assert named(policy) == ("N/A", "normal")


def test_a_qos_that_a_partition_no_longer_names_goes_after_the_partition_has_read_it(policy: Policy) -> None:
    policy.starts()
    loaded(policy)
    said = policy.apply(["qos other exists=yes", "partition htc QOS=other"])
    order = ["qos other added", "slurmctld has read its partitions anew", "qos cap deleted"]
    assert [line for line in said if line in order] == order
    assert named(policy) == ("other", "ALL")
    policy.restarts()
    assert named(policy) == ("other", "ALL")


@pytest.mark.parametrize("name", ["minimal", "reference"])
def test_a_worked_example_of_the_page_starts(name: str) -> None:
    shipped = yaml_data((assets.root() / f"cluster_defs/{name}.yaml").read_text())
    plan = slurm_of(plan_from(base=yaml.safe_dump(added(shipped, yaml_data(EXAMPLES[name])))))
    for policy in started(plan):
        policy.starts()
        loaded(policy)
        assert named(policy, "flex")[0] == "flexible"
        assert "PriorityTier=10" in policy.cloud.slurm("scontrol", "show", "partition", "first")
