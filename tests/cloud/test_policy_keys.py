"""Every key of `slurm.policy`, wherever it may stand: at the first boot of a scheduler, and on a running one.

A partition names what slurmdbd keeps, so each of its keys stands in a partition and in an overlay of its own: one key
that slurmctld does not start with is not hidden by another one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args

import pytest
import yaml

from generator.definition.model.fields import Section
from generator.definition.model.policy import PartitionPolicy, Policy
from generator.plan.cluster import SlurmPlan
from tests.bed.cloud import Pool, running_cloud
from tests.bed.cloud.policy import Policy as Scheduler
from tests.bed.plans import plan_from, slurm_of
from tests.cloud.test_first_boot import stop_slurmdbd


@dataclass(frozen=True)
class Case:
    """A value as the definition has it, and what Slurm shows of it: `word=value`."""

    value: Any
    word: str = ""
    shown: str = ""


PARTITION = {
    "max_time": Case("02:00:00", "MaxTime", "02:00:00"),
    "default_time": Case("10", "DefaultTime", "00:10:00"),
    "priority_tier": Case(7, "PriorityTier", "7"),
    "preempt_mode": Case("cancel", "PreemptMode", "CANCEL"),
    "grace_time_s": Case(30, "GraceTime", "30"),
    "qos": Case("full", "QoS", "full"),
    "allow_accounts": Case(["science"], "AllowAccounts", "science"),
    "allow_qos": Case(["normal", "full"], "AllowQos", "normal,full"),
}
ASSOCIATION = {
    "fair_share": Case(10, "fairshare", "10"),
    "qos": Case(["normal", "full"], "qos", "full,normal"),
    "default_qos": Case("full", "defaultqos", "full"),
    "max_jobs": Case(50, "maxjobs", "50"),
    "max_submit_jobs": Case(500, "maxsubmitjobs", "500"),
    "max_wall": Case("2-00:00:00", "maxwall", "2-00:00:00"),
    "max_tres_per_job": Case("gres/gpu=16", "maxtresperjob", "gres/gpu=16"),
    "group_tres": Case("cpu=960,gres/gpu=32", "grptres", "cpu=960,gres/gpu=32"),
}
CASES: Mapping[str, Mapping[str, Case]] = {
    "Policy": {
        "enforce": Case(True, "AccountingStorageEnforce", "associations,limits,qos"),
        "fair_share": Case({}, "PriorityType", "priority/multifactor"),
        "preemption": Case("qos", "PreemptType", "preempt/qos"),
        "preempt_mode": Case("requeue", "PreemptMode", "REQUEUE"),
        "max_array_size": Case(11, "MaxArraySize", "11"),
        "max_job_count": Case(5000, "MaxJobCount", "5000"),
        **{name: Case([]) for name in ("qos", "accounts", "users", "priority_partitions", "reservations")},
    },
    "FairShare": {
        "half_life": Case("14-0", "PriorityDecayHalfLife", "14-00:00:00"),
        "reset": Case("monthly", "PriorityUsageResetPeriod", "MONTHLY"),
        "max_age": Case("3-0", "PriorityMaxAge", "3-00:00:00"),
        "weight_fair_share": Case(11, "PriorityWeightFairShare", "11"),
        "weight_age": Case(12, "PriorityWeightAge", "12"),
        "weight_job_size": Case(13, "PriorityWeightJobSize", "13"),
        "weight_partition": Case(14, "PriorityWeightPartition", "14"),
        "weight_qos": Case(15, "PriorityWeightQOS", "15"),
    },
    "Qos": {
        "name": Case("full", "name", "full"),
        "priority": Case(100, "priority", "100"),
        "max_tres_per_job": Case("node=4", "maxtresperjob", "node=4"),
        "max_tres_per_user": Case("gres/gpu=8,license/ansys=2", "maxtresperuser", "gres/gpu=8,license/ansys=2"),
        "max_tres_per_account": Case("gres/gpu=16", "maxtresperaccount", "gres/gpu=16"),
        "min_tres_per_job": Case("cpu=1", "mintresperjob", "cpu=1"),
        "group_tres": Case("cpu=960", "grptres", "cpu=960"),
        "max_jobs_per_user": Case(10, "maxjobsperuser", "10"),
        "max_submit_jobs_per_user": Case(100, "maxsubmitjobsperuser", "100"),
        "group_jobs": Case(200, "grpjobs", "200"),
        "max_wall": Case("1-00:00:00", "maxwall", "1-00:00:00"),
        "preempt": Case(["low"], "preempt", "low"),
        "preempt_mode": Case("cancel", "preemptmode", "cancel"),
        "grace_time_s": Case(120, "gracetime", "00:02:00"),
        "usage_factor": Case(0.5, "usagefactor", "0.500000"),
        "flags": Case(["DenyOnLimit"], "flags", "DenyOnLimit"),
    },
    "Account": {
        "name": Case("physics", "account", "physics"),
        "parent": Case("science", "parentname", "science"),
        **ASSOCIATION,
    },
    "User": {
        "name": Case("root", "user", "root"),
        "accounts": Case(["science", "physics"], "account", "physics"),
        "default_account": Case("physics", "defaultaccount", "physics"),
        "admin_level": Case("operator", "adminlevel", "Operator"),
        **ASSOCIATION,
    },
    "PriorityPartition": {
        "name": Case("urgent"),
        "over": Case(["htc"], "Nodes", "emu-htc-[1-2]"),
        **PARTITION,
    },
    "Partition": PARTITION,
    "Reservation": {
        "name": Case("maint", "ReservationName", "maint"),
        "start": Case("2035-01-08T08:00:00", "StartTime", "2035-01-08T08:00:00"),
        "duration": Case("04:00:00", "Duration", "04:00:00"),
        "partitions": Case(["htc"], "Nodes", "emu-htc-[1-2]"),
        "users": Case(["root"], "Users", "root"),
        "accounts": Case(["science"], "Accounts", "science"),
        "flags": Case(["MAINT"], "Flags", "MAINT,SPEC_NODES"),
    },
}


def sections(section: type[Section]) -> Iterator[type[Section]]:
    yield section
    for declared in section.declared_keys.values():
        for kind in (declared.annotation, *get_args(declared.annotation)):
            if isinstance(kind, type) and issubclass(kind, Section):
                yield from sections(kind)


DECLARED = {found.__name__: list(found.declared_keys) for found in sections(Policy)} | {
    "Partition": list(PartitionPolicy.declared_keys)
}


def test_every_key_of_the_model_has_a_case() -> None:
    assert {name: sorted(keys) for name, keys in DECLARED.items()} == {
        name: sorted(cases) for name, cases in CASES.items()
    }


def written(section: str) -> dict[str, Any]:
    return {key: case.value for key, case in CASES[section].items()}


def alone(section: str) -> dict[str, dict[str, Any]]:
    """For each key of a partition, a partition that has only this one, by its name."""
    cases = {key: CASES[section][key].value for key in PartitionPolicy.declared_keys}
    prefix = {"Partition": "only", "PriorityPartition": "over"}[section]
    return {f"{prefix}-{key.replace('_', '-')}": {key: value} for key, value in cases.items()}


def definition() -> str:
    """A cluster with every key: in partitions and overlays each alone, and all together."""
    size = {"vm_size": "Standard_D64ds_v5", "max_nodes": 2}
    partitions = [{"name": "htc", "default": True, **size, **written("Partition")}]
    partitions += [{"name": name, **size, **keys} for name, keys in alone("Partition").items()]
    overlays = [{"over": ["htc"], "name": name, **keys} for name, keys in alone("PriorityPartition").items()]
    policy = written("Policy") | {
        "fair_share": written("FairShare"),
        "qos": [{"name": "low"}, written("Qos")],
        "accounts": [{"name": "science", "qos": ["normal", "full"]}, written("Account")],
        "users": [written("User")],
        "priority_partitions": [written("PriorityPartition"), *overlays],
        "reservations": [written("Reservation")],
    }
    slurm = {
        "accounting": {"type": "new"}, "idle_timeout_s": 86400, "partitions": partitions, "policy": policy,
        "settings": {"Licenses": "ansys:10"},
    }  # fmt: skip
    return yaml.safe_dump({"slurm": slurm})


PLAN: SlurmPlan = slurm_of(plan_from(definition()))
POOLS = [Pool(array.partition, 2, default=array.is_default) for array in PLAN.node_arrays]


@pytest.fixture(scope="module", params=["first boot", "running cluster"])
def scheduler(request: pytest.FixtureRequest) -> Iterator[Scheduler]:
    with running_cloud(POOLS, PLAN.additional_config, accounting=True, start=False) as cloud:
        # As in a cluster that CycleCloud has just made: slurmctld makes itself known to slurmdbd.
        cloud.slurm("sacctmgr", "-i", "delete", "cluster", "emu")
        made = Scheduler(cloud)
        made.give(made.rows(PLAN) if request.param == "first boot" else ["partition htc MaxTime=INFINITE"])
        made.starts()
        cloud.wait("slurmctld has registered", lambda: made.of("cluster", "format=controlport") not in ("", "0"))
        made.run("load")
        if request.param == "running cluster":
            made.apply(made.rows(PLAN))
        yield made


def words(shown: str) -> dict[str, str]:
    return dict(re.findall(r"(\S+?) *= *(\S*)", shown))


def differing(section: str, name: str, shown: Mapping[str, str]) -> list[str]:
    """Keys of a section of which Slurm shows something else."""
    lower = {word.lower(): value for word, value in shown.items()}
    return [
        f"{section} {name}: {key} is {lower.get(case.word.lower())!r}, not {case.shown!r}"
        for key, case in CASES[section].items()
        if case.word and lower.get(case.word.lower()) != case.shown
    ]


def rows(policy: Scheduler, section: str, *query: str) -> dict[str, str]:
    names = [case.word for case in CASES[section].values() if case.word]
    line = policy.of(*query, f"format={','.join(names)}").splitlines()[0]
    return dict(zip(names, line.split("|"), strict=True))


def partitions(policy: Scheduler) -> dict[str, dict[str, str]]:
    shown = policy.cloud.slurm("scontrol", "--oneliner", "show", "partition").splitlines()
    return {words(line)["PartitionName"]: words(line) for line in shown}


def test_every_key_arrives_and_survives_a_restart(scheduler: Scheduler) -> None:
    for _ in range(2):
        cloud = scheduler.cloud
        config = words(cloud.slurm("scontrol", "show", "config"))
        found = differing("Policy", "", config) + differing("FairShare", "", config)
        found += differing("Qos", "full", rows(scheduler, "Qos", "qos", "full"))
        of_account = ("assoc", "where", "account=physics")
        found += differing("Account", "physics", rows(scheduler, "Account", *of_account, "user="))
        shown = rows(scheduler, "User", "user", "root", "withassoc", "where", "account=physics")
        found += differing("User", "root", shown)
        has = partitions(scheduler)
        found += differing("Partition", "htc", has["htc"]) + differing("PriorityPartition", "urgent", has["urgent"])
        for section in ("Partition", "PriorityPartition"):
            for name, keys in alone(section).items():
                case = CASES[section][next(iter(keys))]
                if has[name][case.word] != case.shown:
                    found.append(f"{name}: {case.word} is {has[name][case.word]}, not {case.shown}")
        reservation = cloud.slurm("scontrol", "--oneliner", "show", "reservation", "maint")
        found += differing("Reservation", "maint", words(reservation))
        assert found == []
        assert scheduler.run("load") == []
        scheduler.restarts()


def test_without_slurmdbd_a_restart_keeps_what_partitions_name(scheduler: Scheduler) -> None:
    stop_slurmdbd(scheduler)
    scheduler.restarts()
    assert {name for name, has in partitions(scheduler).items() if has["QoS"] == "full"} == {
        "htc", "only-qos", "over-qos", "urgent"
    }  # fmt: skip
