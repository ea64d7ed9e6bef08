"""A policy on a Slurm newer than Debian 12's, from its first boot on: accounts, limits, a reservation.

`make test-slurm` runs all tests of this folder there.
"""

from __future__ import annotations

from tests.bed.cloud import Pool, running_cloud
from tests.bed.cloud.policy import Policy
from tests.bed.plans import plan_from, slurm_of
from tests.bed.slurm.newer import NEWER

DEFINITION = """
slurm:
  accounting: {type: new}
  partitions:
    - name: htc
      vm_size: Standard_D64ds_v5
      max_nodes: 2
      default: true
      max_time: "02:00:00"
      allow_qos: [normal, limited]
  policy:
    preemption: partition
    qos: [{name: limited, priority: 100, max_tres_per_user: "cpu=2,node=1", flags: [DenyOnLimit]}]
    accounts: [{name: science, qos: [normal, limited]}]
    users: [{name: root, accounts: [science]}]
    priority_partitions: [{name: urgent, over: [htc], priority_tier: 10}]
    reservations: [{name: maint, start: "2035-01-08T08:00:00", duration: "04:00:00", partitions: [htc]}]
"""


def test_a_policy_is_loaded_once_and_holds() -> None:
    plan = slurm_of(plan_from(DEFINITION))
    with running_cloud(
        [Pool("htc", 2, default=True)], plan.additional_config, accounting=True, start=False, release=NEWER
    ) as cloud:
        policy = Policy(cloud)
        policy.give(policy.rows(plan))
        policy.starts()
        cloud.wait("slurmctld has registered", lambda: policy.of("cluster", "format=controlport") != "0")
        said = policy.run("load")
        assert "qos limited: priority=100" in said, "the QoS itself is there since before slurmctld started"
        assert said[-1].endswith(" 0 left to the administrator")
        assert policy.of("qos", "limited", "format=priority,maxtresperuser,flags") == "100|cpu=2,node=1|DenyOnLimit"
        assert policy.of("assoc", "where", "account=science", "user=root", "format=qos") == "limited,normal"
        assert "AllowQos=normal,limited" in cloud.slurm("scontrol", "--oneliner", "show", "partition", "htc")
        assert "MaxTime=02:00:00" in cloud.slurm("scontrol", "--oneliner", "show", "partition", "htc")
        assert "PriorityTier=10" in cloud.slurm("scontrol", "--oneliner", "show", "partition", "urgent")
        assert "Nodes=emu-htc-[1-2] " in cloud.slurm("scontrol", "--oneliner", "show", "reservation", "maint")
        assert policy.run("load") == []
