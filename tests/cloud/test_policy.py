"""The scheduling policy on real Slurm: slurmdbd, limits that hold jobs back, preemption, reservations."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bed.cloud import Cloud, Pool, running_cloud
from tests.bed.cloud.policy import Policy
from tests.bed.plans import plan_from, slurm_of

DEFINITION = """
slurm:
  accounting: {type: new}
  idle_timeout_s: 86400
  partitions: [{name: htc, vm_size: Standard_D64ds_v5, max_nodes: 2, default: true}]
  policy:
    preemption: partition
    qos: [{name: limited, priority: 100, max_tres_per_user: "cpu=2,node=1", flags: [DenyOnLimit]}]
    accounts: [{name: science, qos: [normal, limited]}]
    users: [{name: ccadmin, accounts: [science]}, {name: root, accounts: [science], max_jobs: 50}]
    priority_partitions: [{name: urgent, over: [htc], priority_tier: 10}]
"""
PLAN = slurm_of(plan_from(DEFINITION))
assert PLAN.policy is not None
ROWS = [row.text for row in PLAN.policy.rows if "ccadmin" not in row.text]
QOS = "format=priority,maxtresperuser,flags"
NODES = ("emu-htc-1", "emu-htc-2")
RESERVED = "reservation soon exists=StartTime={};Duration=60;Nodes=ALL;Users=root"


@pytest.fixture(scope="module")
def policy() -> Iterator[Policy]:
    """One cluster for all: each test has rows and objects of its own beside those of the definition."""
    with running_cloud([Pool("htc", 2, default=True)], PLAN.additional_config, accounting=True, start=False) as cloud:
        made = Policy(cloud)
        made.give(ROWS)
        made.starts()
        cloud.wait("slurmctld has registered", lambda: made.of("cluster", "format=controlport") != "0")
        made.run("load")
        yield made


def left(said: list[str]) -> list[str]:
    """What is left to the administrator."""
    return [line.removeprefix("left as it is: ") for line in said if line.startswith("left as it is")]


# ---------------------------------------------------------------- what is in slurmdbd afterwards


def test_what_the_definition_says_is_in_slurmdbd_and_a_second_run_changes_nothing(policy: Policy) -> None:
    assert policy.of("qos", "limited", QOS) == "100|cpu=2,node=1|DenyOnLimit"
    assert policy.of("assoc", "where", "account=science", "user=root", "format=maxjobs,qos") == "50|limited,normal"
    assert policy.of("user", "root", "format=defaultaccount") == "science"
    before = policy.of("assoc"), policy.of("qos")
    assert policy.run("load") == []
    # Rows in another order are another file, and say nothing new.
    assert policy.load([*ROWS[1:], ROWS[0]]) == ["policy: 0 changes, 0 left to the administrator"]
    assert (policy.of("assoc"), policy.of("qos")) == before


def test_a_dry_run_says_everything_and_does_nothing(policy: Policy) -> None:
    record = policy.sched / "cycleforge-policy.record"
    before = policy.of("assoc"), policy.of("qos"), record.read_text(), (policy.sched / "azure.conf").read_text()
    said = policy.apply(["qos limited exists=yes", "qos limited priority=50", "qos new exists=yes"], "--dry-run")
    assert "qos limited: priority=50 (dry run: nothing was done)" in said
    assert "qos new added (dry run: nothing was done)" in said
    assert "qos limited: maxtresperuser back to Slurm's default (dry run: nothing was done)" in said
    assert "partitions in azure.conf would change (dry run: nothing was done)" in said
    after = policy.of("assoc"), policy.of("qos"), record.read_text(), (policy.sched / "azure.conf").read_text()
    assert after == before


def test_what_an_administrator_set_stays_until_the_definition_says_something_new_about_it(policy: Policy) -> None:
    own = ["qos own exists=yes", "qos own priority=1", "qos own maxtresperuser=cpu=2,node=1"]
    policy.load([*ROWS, *own])
    policy.cloud.slurm("sacctmgr", "-i", "modify", "qos", "own", "set", "priority=7", "maxtresperuser=cpu=3")
    said = policy.load([*ROWS, *own[:2], "qos own maxtresperuser=node=2"])
    assert said == ["qos own: maxtresperuser=node=2", "policy: 1 changes, 0 left to the administrator"]
    assert policy.of("qos", "own", QOS) == "7|node=2|"
    said = policy.load([*ROWS, own[0]])
    assert left(said) == ["priority of qos own is '7', which an administrator set"]
    assert policy.of("qos", "own", QOS) == "7||"


def test_only_what_we_made_and_nobody_changed_or_uses_is_deleted(policy: Policy) -> None:
    policy.cloud.slurm("sacctmgr", "-i", "add", "qos", "theirs")
    policy.load([
        *ROWS, "qos theirs exists=yes", "qos plain exists=yes", "qos changed exists=yes", "qos changed priority=3",
        "account above exists=root", "account unused exists=root", "account used exists=science",
        "member used/root exists=yes", "account waits exists=root", "member waits/root exists=yes",
    ])  # fmt: skip
    manage = ("sacctmgr", "-i")
    policy.cloud.slurm(*manage, "modify", "qos", "changed", "set", "priority=7")
    policy.cloud.slurm(*manage, "add", "user", "daemon", "account=above")
    number = held(policy, "--account=waits")
    policy.cloud.ok("srun --account=used true")
    jobs = ("sacct", "-nX", "--accounts=used", "-o", "JobIDRaw")
    policy.cloud.wait("slurmdbd has the job", lambda: policy.cloud.slurm(*jobs).strip() != "")
    said = policy.load(ROWS)
    assert {line.split(",")[0] + line.split(":")[1].split(".")[0] for line in left(said)} == {
        "member used/root jobs have used it", "account used it has root below it",
        "account above it has daemon below it", "member waits/root jobs have used it",
        "account waits it has root below it", "qos changed an administrator changed priority",
    }  # fmt: skip
    policy.cloud.slurm("scancel", number)
    assert [line for line in said if line.endswith("deleted")] == ["account unused deleted", "qos plain deleted"]
    assert {"theirs", "changed"} <= {*policy.of("qos", "format=name").split()}
    assert policy.of("assoc", "where", "account=above", "user=daemon", "format=account") == "above"
    assert policy.load([*ROWS, "qos plain exists=yes"])[0] == "qos plain added"


def test_what_an_administrator_deleted_stays_deleted(policy: Policy) -> None:
    policy.load([*ROWS, "qos short exists=yes"])
    policy.cloud.slurm("sacctmgr", "-i", "delete", "qos", "short")
    said = policy.load([*ROWS, "qos short exists=yes", "qos short priority=1"])
    assert left(said)[0] == "qos short, which the definition has, was deleted by an administrator"
    assert policy.of("qos", "short", "format=name") == ""


def test_a_run_that_fails_in_the_middle_goes_on_there(policy: Policy) -> None:
    rows = [*ROWS, "qos first exists=yes", "account child exists=nobody", "qos last exists=yes"]
    said = policy.load(rows, code=1)
    assert any(line.startswith("ERROR: Slurm refused: sacctmgr -i add account child") for line in said)
    policy.cloud.slurm("sacctmgr", "-i", "add", "account", "nobody")
    assert policy.run("load") == [
        "account child added", "qos last added", "policy: 2 changes, 0 left to the administrator",
    ]  # fmt: skip


# ---------------------------------------------------------------- what it does to jobs


def held(policy: Policy, *options: str) -> str:
    return policy.cloud.submit("true", "--hold", *options)


def test_a_job_over_the_limit_of_its_qos_is_refused_or_waits(policy: Policy) -> None:
    refused = policy.cloud.run("sbatch --qos=limited --ntasks=3 --wrap=true --output=/dev/null")
    assert refused.code != 0
    assert "QOSMaxCpuPerUserLimit" in refused.output
    policy.load([row for row in ROWS if "flags" not in row])
    number = policy.cloud.submit("true", "--qos=limited", "--ntasks=3")
    policy.cloud.wait("it waits", lambda: policy.cloud.job(number)["Reason"] == "QOSMaxCpuPerUserLimit")
    policy.cloud.slurm("scancel", number)
    policy.load(ROWS)


def test_a_user_without_account_can_submit_nothing(policy: Policy) -> None:
    refused = policy.cloud.run("cd /; sbatch --wrap=true --output=/dev/null", user=65534)
    assert refused.code != 0
    assert "Invalid account" in refused.output


def test_a_reservation_keeps_its_nodes_free_and_goes_with_its_row(policy: Policy) -> None:
    soon = RESERVED.format(policy.cloud.ok("date -d '+10 minutes' +%FT%T").strip())
    assert policy.load([*ROWS, soon])[0].startswith("reservation soon made: StartTime=")
    number = policy.cloud.submit("true", "--time=60")
    policy.cloud.wait("it waits", lambda: "Reserved" in policy.cloud.job(number)["Reason"])
    policy.cloud.slurm("scancel", number)
    policy.cloud.slurm("scontrol", "update", "ReservationName=soon", "Duration=30")
    assert left(policy.load(ROWS))[0].startswith("reservation soon, which the definition no longer has: an admin")
    policy.cloud.slurm("scontrol", "delete", "ReservationName=soon")
    later = RESERVED.format("2035-01-08T08:00:00")
    policy.load([*ROWS, later])
    assert policy.load([*ROWS, later.replace("=60", "=90")])[0].startswith("reservation soon changed")
    assert policy.load(ROWS)[0] == "reservation soon deleted"


def test_a_job_of_the_priority_partition_takes_the_nodes_of_another_which_is_requeued(policy: Policy) -> None:
    cloud = policy.cloud
    cloud.ok("srun --nodes=2 --exclusive true")
    low = cloud.submit("sleep 600", "--nodes=2", "--exclusive", "--partition=htc", "--requeue")
    cloud.wait_job(low, "RUNNING")
    cloud.ok("srun --nodes=2 --exclusive --partition=urgent true", timeout_s=200)
    assert (int(cloud.job(low)["Restarts"]), cloud.job(low)["Partition"]) == (1, "htc")
    cloud.slurm("scancel", low)


# ---------------------------------------------------------------- without accounting

TIMES = """
slurm:
  partitions: [{name: htc, vm_size: Standard_D64ds_v5, max_nodes: 2, max_time: "02:00:00", default_time: "10"}]
  policy:
    preemption: partition
    priority_partitions: [{name: urgent, over: [htc], priority_tier: 10}]
    reservations: [{name: maint, start: "2035-01-08T08:00:00", duration: "04:00:00", partitions: [htc]}]
    max_array_size: 11
"""


@pytest.fixture(scope="module")
def plain() -> Iterator[Policy]:
    plan = slurm_of(plan_from(TIMES))
    with running_cloud([Pool("htc", 2, default=True)], plan.additional_config, start=False) as cloud:
        policy = Policy(cloud)
        policy.give(policy.rows(plan))
        policy.starts()
        policy.run("load")
        yield policy


def times(cloud: Cloud) -> tuple[str, str]:
    shown = cloud.slurm("scontrol", "--oneliner", "show", "partition", "htc")
    words = dict(word.split("=", 1) for word in shown.split())
    return words["MaxTime"], words["DefaultTime"]


def test_times_of_a_partition_hold_and_outlive_what_azslurm_does(plain: Policy) -> None:
    cloud = plain.cloud
    assert times(cloud) == ("02:00:00", "00:10:00")
    assert cloud.job(held(plain))["TimeLimit"] == "00:10:00"
    file = plain.sched / "azure.conf"
    written = "".join(
        f"{line}\n" for line in file.read_text().splitlines() if not line.startswith(("#", "PartitionName"))
    )
    nodes = ",".join(NODES)
    file.write_text(
        f"PartitionName=htc Nodes={nodes} Default=YES DefMemPerCPU=1000 MaxTime=INFINITE State=UP\n{written}"
    )
    plain.restarts()
    assert times(cloud) == ("02:00:00", "00:10:00")
    assert "urgent" in cloud.slurm("sinfo", "-h", "-o", "%R").split()


def test_a_partition_with_fewer_nodes_than_the_definition_lets_slurmctld_start(plain: Policy) -> None:
    file = plain.sched / "azure.conf"
    before = file.read_text()
    file.write_text(
        f"PartitionName=htc Nodes={NODES[0]} Default=YES MaxTime=INFINITE State=UP\n"
        f"Nodename={NODES[0]} Feature=cloud STATE=CLOUD CPUs=4 ThreadsPerCore=1 RealMemory=4000\n"
    )
    plain.restarts()
    assert plain.cloud.slurm("sinfo", "-h", "-p", "urgent", "-o", "%D").strip() == "1"
    file.write_text(before)
    plain.restarts()
    plain.cloud.slurm("scontrol", "update", "ReservationName=maint", f"Nodes={','.join(NODES)}")


def test_reservations_and_arrays_need_no_accounting(plain: Policy) -> None:
    assert "Nodes=emu-htc-[1-2] " in plain.cloud.slurm("scontrol", "--oneliner", "show", "reservation", "maint")
    assert plain.cloud.run("sbatch --hold --array=0-11 --wrap=true --output=/dev/null").code != 0
    assert plain.cloud.run("sbatch --hold --array=0-10 --wrap=true --output=/dev/null").code == 0


def test_a_new_policy_reaches_the_running_cluster(plain: Policy) -> None:
    rows = ["partition htc MaxTime=30"]
    said = plain.apply(rows)
    assert "slurmctld has read its partitions anew" in said
    assert "reservation maint deleted" in said
    assert times(plain.cloud)[0] == "00:30:00"
