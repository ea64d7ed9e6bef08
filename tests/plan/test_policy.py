"""The scheduling policy: lines of slurm.conf, rows in an order that can be applied, node attributes."""

from __future__ import annotations

import pytest

from generator.plan.policy import MAX_CHARACTERS, MAX_ROW, PolicyPlan, PolicyRow, policy_attributes
from tests.bed.plans import plan_from, slurm_of
from tests.cluster_template.rendered import read

ACCOUNTING = "slurm: {accounting: {type: new}}"
ADMIN = "{name: ccadmin, accounts: [root]}"


def rows(*changes: str) -> list[str]:
    policy = slurm_of(plan_from(*changes)).policy
    return [row.text for row in policy.rows] if policy else []


def conf(*changes: str) -> dict[str, str]:
    lines = slurm_of(plan_from(*changes)).additional_config
    return dict(line.split("=", 1) for line in lines)


def test_without_a_policy_nothing_is_said() -> None:
    plan = plan_from()
    assert slurm_of(plan).policy is None
    assert not {key for key in conf() if key.startswith(("Priority", "Preempt", "Max")) and key != "MaxBatchRequeue"}
    assert "slurm_policy" not in [project.name for project in plan.projects]


def test_what_slurm_conf_can_say_needs_no_project() -> None:
    text = "slurm: {policy: {max_array_size: 5001, max_job_count: 20000}}"
    assert {"MaxArraySize": "5001", "MaxJobCount": "20000"}.items() <= conf(text).items()
    assert rows(text) == []


def test_fair_share_and_preemption_are_lines_of_slurm_conf() -> None:
    lines = conf(
        ACCOUNTING,
        """
slurm:
  policy:
    fair_share: {half_life: "14-0", reset: yearly, weight_age: 5, weight_qos: 7}
    preemption: partition
    preempt_mode: cancel
    priority_partitions: [{name: urgent, over: [htc], priority_tier: 10}]
""",
    )
    assert lines["PriorityType"] == "priority/multifactor"
    assert lines["PriorityDecayHalfLife"] == "14-0"
    assert lines["PriorityUsageResetPeriod"] == "YEARLY"
    assert (lines["PriorityWeightAge"], lines["PriorityWeightQOS"]) == ("5", "7")
    assert (lines["PreemptType"], lines["PreemptMode"]) == ("preempt/partition_prio", "CANCEL")
    assert "AccountingStorageEnforce" not in lines


def test_limits_are_enforced_as_soon_as_some_are_named_unless_the_definition_says_no() -> None:
    some = f"slurm: {{policy: {{users: [{ADMIN}]}}}}"
    assert conf(ACCOUNTING, some)["AccountingStorageEnforce"] == "associations,limits,qos"
    assert "AccountingStorageEnforce" not in conf(ACCOUNTING, some, "slurm: {policy: {enforce: false}}")


def test_a_limit_on_what_slurmdbd_does_not_count_makes_it_count_that() -> None:
    limit = f"slurm: {{policy: {{qos: [{{name: a, max_tres_per_user: '%s'}}], users: [{ADMIN}]}}}}"
    assert "AccountingStorageTRES" not in conf(ACCOUNTING, limit % "cpu=4,gres/gpu=8")
    assert conf(ACCOUNTING, limit % "gres/gpu:a100=8,license/ansys=2")["AccountingStorageTRES"] == (
        "gres/gpu,gres/gpu:a100,license/ansys"
    )


def test_rows_come_in_an_order_in_which_they_can_be_applied() -> None:
    """A QoS that another one preempts, the account above and the default account of a user come first."""
    found = rows(
        ACCOUNTING,
        """
slurm:
  policy:
    preemption: qos
    qos:
      - {name: urgent, preempt: [low, normal], priority: 100, usage_factor: 0.5, grace_time_s: 60, preempt_mode: cancel}
      - {name: low, flags: [DenyOnLimit, NoDecay]}
    accounts: [{name: lab, parent: science, fair_share: 3}, {name: science}]
    users: [{name: ccadmin, accounts: [lab, science], default_account: science, max_jobs: 5, admin_level: operator}]
""",
    )
    assert found == [
        "qos urgent exists=yes",
        "qos urgent priority=100",
        "qos urgent preemptmode=CANCEL",
        "qos urgent gracetime=60",
        "qos urgent usagefactor=0.5",
        "qos low exists=yes",
        "qos low flags=DenyOnLimit,NoDecay",
        "qos urgent preempt=low,normal",
        "account science exists=root",
        "account science parent=root",
        "account lab exists=science",
        "account lab parent=science",
        "account lab fairshare=3",
        "member science/ccadmin exists=yes",
        "member science/ccadmin maxjobs=5",
        "member lab/ccadmin exists=yes",
        "member lab/ccadmin maxjobs=5",
        "user ccadmin defaultaccount=science",
        "user ccadmin adminlevel=operator",
    ]


def test_times_partitions_and_reservations_need_no_accounting() -> None:
    text = """
slurm:
  partitions: [{name: htc, vm_size: Standard_D64ds_v5, max_nodes: 2, max_time: 1-0, default_time: "60"}]
  policy:
    preemption: partition
    priority_partitions: [{name: urgent, over: [htc], priority_tier: 10, preempt_mode: "off"}]
    reservations: [{name: maint, start: "2030-01-07T08:00:00", duration: "04:00:00", partitions: [htc], flags: [MAINT]}]
"""
    assert rows(text) == [
        "partition htc MaxTime=1-0",
        "partition htc DefaultTime=60",
        "overlay urgent over=htc",
        "overlay urgent PriorityTier=10",
        "overlay urgent PreemptMode=OFF",
        "reservation maint exists=StartTime=2030-01-07T08:00:00;Duration=04:00:00;PartitionName=htc;Nodes=ALL;"
        "Users=root;Flags=MAINT",
    ]
    policy = slurm_of(plan_from(text)).policy
    assert policy is not None
    assert not policy.needs_accounting


def test_the_scheduler_runs_the_project_last_whichever_projects_it_has() -> None:
    text = """
slurm:
  scheduler: {projects: [misc_ubuntu]}
  partitions: [{name: htc, vm_size: Standard_D64ds_v5, max_nodes: 2, max_time: 1-0}]
"""
    plan = plan_from(text)
    assert [spec.project for spec in slurm_of(plan).scheduler.specs] == ["misc_ubuntu", "slurm_policy"]
    assert "slurm_policy" not in [spec.project for spec in slurm_of(plan).login.specs]
    assert [project.roles for project in plan.projects if project.name == "slurm_policy"] == [("scheduler",)]
    rendered = read(plan)
    assert rendered.findings == ()


def test_long_policies_are_cut_between_rows() -> None:
    made = tuple(PolicyRow("member", f"research/user{number:04}", "exists", "yes") for number in range(1000))
    attributes = policy_attributes(PolicyPlan(made, True))
    assert list(attributes)[:2] == ["cycleforge.policy.1", "cycleforge.policy.2"]
    assert all(len(value) <= MAX_CHARACTERS for value in attributes.values())
    heads, found = zip(*((value.split(" | ")[0], value.split(" | ")[1:]) for value in attributes.values()), strict=True)
    assert heads == tuple(f"1 {place}/{len(attributes)}" for place in range(1, len(attributes) + 1))
    assert [row for part in found for row in part] == [row.text for row in made]


def test_a_row_that_fits_no_attribute_is_never_cut() -> None:
    row = PolicyRow("qos", "a", "preempt", "x" * (MAX_ROW - len("qos a preempt=")))
    (value,) = policy_attributes(PolicyPlan((row,), True)).values()
    assert len(value) <= MAX_CHARACTERS
    with pytest.raises(ValueError, match="more than"):
        policy_attributes(PolicyPlan((PolicyRow("qos", "a", "preempt", row.value + "x"),), True))
