"""`slurm.policy`: who may use how much, which job goes first, and when nodes are kept free."""

from typing import Literal

from .fields import Section, setting

QosFlag = Literal[
    "DenyOnLimit",
    "EnforceUsageThreshold",
    "NoDecay",
    "NoReserve",
    "OverPartQOS",
    "PartitionMaxNodes",
    "PartitionMinNodes",
    "PartitionTimeLimit",
    "RequiresReservation",
    "UsageFactorSafe",
]
ReservationFlag = Literal["DAILY", "FLEX", "IGNORE_JOBS", "MAINT", "WEEKDAY", "WEEKEND", "WEEKLY"]


class PartitionPolicy(Section):
    """What of a partition's use is decided beside its nodes."""

    max_time: str | None = setting(
        None,
        text="Longest time limit of a job, as Slurm writes times: minutes, H:M:S, D-H, D-H:M:S; default: no limit.",
        example="3-00:00:00",
        active=False,
    )
    default_time: str | None = setting(
        None, text="Time limit of a job that names none; default: max_time.", example="01:00:00", active=False
    )
    priority_tier: int | None = setting(
        None,
        text="Jobs of a higher tier go first and, with preemption by partition, take nodes of lower ones; default: 1.",
        ge=0,
        le=65533,
        example=1,
        active=False,
    )
    preempt_mode: Literal["off", "requeue", "cancel"] | None = setting(
        None,
        text="What happens to a preempted job; off: its jobs are not preempted; default: policy.preempt_mode.",
        example="requeue",
        active=False,
    )
    grace_time_s: int | None = setting(
        None,
        text="Time that a preempted job gets between SIGTERM and SIGKILL.",
        unit="s",
        ge=0,
        le=86400,
        example=120,
        active=False,
    )
    qos: str | None = setting(
        None, text="QoS whose limits hold for all jobs of the partition.", example="limited", active=False
    )
    allow_accounts: list[str] = setting(
        list, text="Only jobs of these accounts; default: all.", example=["research"], active=False
    )
    allow_qos: list[str] = setting(
        list, text="Only jobs with these QoS; default: all.", example=["normal"], active=False
    )


class _OverlayNames(Section):
    name: str = setting(text="Name of the partition.", example="urgent")
    over: list[str] = setting(text="Partitions whose nodes it uses, too.", min_length=1, example=["htc"])


class PriorityPartition(PartitionPolicy, _OverlayNames):
    """A further partition over nodes that other partitions have."""


class FairShare(Section):
    """Priority of waiting jobs by what their accounts and users have used (PriorityType=priority/multifactor)."""

    half_life: str = setting("7-0", text="Time after which past use counts half; 0: it never fades.", example="14-0")
    reset: Literal["none", "daily", "weekly", "monthly", "quarterly", "yearly"] = setting(
        "none", text="When past use is forgotten; needed where half_life is 0.", example="none"
    )
    max_age: str = setting("7-0", text="Waiting time after which a job's age counts fully.", example="7-0")
    weight_fair_share: int = setting(10000, text="Weight of past use.", ge=0, le=1000000000, example=10000)
    weight_age: int = setting(1000, text="Weight of the waiting time.", ge=0, le=1000000000, example=1000)
    weight_job_size: int = setting(0, text="Weight of the job's size.", ge=0, le=1000000000, example=0)
    weight_partition: int = setting(0, text="Weight of the partition.", ge=0, le=1000000000, example=0)
    weight_qos: int = setting(10000, text="Weight of the priority of the QoS.", ge=0, le=1000000000, example=10000)


class AssociationLimits(Section):
    """Limits of an account or of a user in one."""

    fair_share: int | None = setting(
        None, text="Share of the machine among its siblings.", ge=0, le=1000000000, example=10, active=False
    )
    qos: list[str] = setting(
        list, text="QoS that its jobs may have; default: those of the account above, at the top normal.", example=[]
    )
    default_qos: str | None = setting(None, text="QoS of jobs that name none.", example="normal", active=False)
    max_jobs: int | None = setting(
        None, text="Running jobs of each user.", unit="jobs", ge=0, le=1000000, example=50, active=False
    )
    max_submit_jobs: int | None = setting(
        None, text="Running and waiting jobs of each user.", unit="jobs", ge=0, le=1000000, example=500, active=False
    )
    max_wall: str | None = setting(None, text="Longest time limit of a job.", example="2-00:00:00", active=False)
    max_tres_per_job: str | None = setting(
        None,
        text="Most that one job may have, as Slurm writes it: cpu=64,gres/gpu=8.",
        example="gres/gpu=16",
        active=False,
    )
    group_tres: str | None = setting(
        None, text="Most that all its running jobs may have together.", example="cpu=960,gres/gpu=32", active=False
    )


class _AccountNames(Section):
    name: str = setting(text="Name of the account: lower case.", example="research")
    parent: str | None = setting(None, text="Account above it; default: root.", example="science", active=False)


class Account(AssociationLimits, _AccountNames):
    """An account of Slurm: a group that shares of the machine are counted for."""


class _UserNames(Section):
    name: str = setting(text="Login name.", example="alice")
    accounts: list[str] = setting(text="Accounts that the user's jobs may have.", min_length=1, example=["research"])
    default_account: str | None = setting(
        None, text="Account of jobs that name none; default: the first one.", example="research", active=False
    )
    admin_level: Literal["none", "operator", "administrator"] | None = setting(
        None, text="What the user may change with sacctmgr and scontrol.", example="operator", active=False
    )


class User(AssociationLimits, _UserNames):
    """A user with the accounts; limits and QoS hold in each of them."""


class Qos(Section):
    """A quality of service: a priority and limits that jobs get by naming it, or by their account or partition."""

    name: str = setting(text="Name: lower case.", example="limited")
    priority: int | None = setting(
        None, text="Priority; needs fair_share.weight_qos.", ge=0, le=1000000000, example=100, active=False
    )
    max_tres_per_job: str | None = setting(
        None, text="Most that one job may have, as Slurm writes it: cpu=64,gres/gpu=8.", example="node=4", active=False
    )
    max_tres_per_user: str | None = setting(
        None, text="Most that the running jobs of one user may have.", example="gres/gpu=8", active=False
    )
    max_tres_per_account: str | None = setting(
        None, text="Most that the running jobs of one account may have.", example="gres/gpu=16", active=False
    )
    min_tres_per_job: str | None = setting(
        None, text="Least that a job must ask for.", example="gres/gpu=1", active=False
    )
    group_tres: str | None = setting(
        None, text="Most that all running jobs with this QoS may have together.", example="cpu=960", active=False
    )
    max_jobs_per_user: int | None = setting(
        None, text="Running jobs of one user.", unit="jobs", ge=0, le=1000000, example=10, active=False
    )
    max_submit_jobs_per_user: int | None = setting(
        None, text="Running and waiting jobs of one user.", unit="jobs", ge=0, le=1000000, example=100, active=False
    )
    group_jobs: int | None = setting(
        None, text="Running jobs of all users.", unit="jobs", ge=0, le=1000000, example=200, active=False
    )
    max_wall: str | None = setting(None, text="Longest time limit of a job.", example="1-00:00:00", active=False)
    preempt: list[str] = setting(
        list, text="QoS whose jobs its jobs take the nodes of, with preemption by qos.", example=[]
    )
    preempt_mode: Literal["cluster", "requeue", "cancel"] | None = setting(
        None, text="What happens to a preempted job of this QoS.", example="requeue", active=False
    )
    grace_time_s: int | None = setting(
        None,
        text="Time that a preempted job gets between SIGTERM and SIGKILL.",
        unit="s",
        ge=0,
        le=86400,
        example=120,
        active=False,
    )
    usage_factor: float | None = setting(
        None, text="How much its use counts for fair share.", ge=0, le=1000, example=0.5, active=False
    )
    flags: list[QosFlag] = setting(list, text="Flags of the QoS, as in `man sacctmgr`.", example=[])


class Reservation(Section):
    """Nodes that are kept free for a time."""

    name: str = setting(text="Name of the reservation.", example="maintenance")
    start: str = setting(text="Begin in the cluster's time zone, YYYY-MM-DDTHH:MM:SS.", example="2030-01-07T08:00:00")
    duration: str = setting(text="How long, as Slurm writes times.", example="04:00:00")
    partitions: list[str] = setting(
        list, text="Partitions whose nodes are kept free; default: all nodes.", example=["htc"]
    )
    users: list[str] = setting(
        list, text="Users who may use the nodes; default: root, where no accounts are named.", example=["root"]
    )
    accounts: list[str] = setting(list, text="Accounts that may use the nodes.", example=[])
    flags: list[ReservationFlag] = setting(
        list, text="MAINT for maintenance, IGNORE_JOBS, DAILY, WEEKLY, WEEKDAY, WEEKEND, FLEX.", example=["MAINT"]
    )


class Policy(Section):
    """Scheduling policy. docs/cluster.md says how it reaches a running cluster and what stays an administrator's."""

    enforce: bool | None = setting(
        None,
        text="Jobs need an account, and limits hold; default: true where accounts, users or QoS are named.",
        example=True,
        active=False,
    )
    fair_share: FairShare | None = setting(
        None, text="Priorities by age, past use and QoS; default: first in, first out.", example={}
    )
    preemption: Literal["partition", "qos"] | None = setting(
        None,
        text="Jobs take nodes of others: by priority_tier of partitions, or by preempt of QoS.",
        example="partition",
    )
    preempt_mode: Literal["requeue", "cancel"] = setting(
        "requeue", text="What happens to preempted jobs.", example="requeue"
    )
    max_array_size: int | None = setting(
        None,
        text="Highest index of a job array, plus one; default: Slurm's 1001.",
        ge=1,
        le=4000001,
        example=10001,
        active=False,
    )
    max_job_count: int | None = setting(
        None,
        text="Jobs that Slurm keeps at a time; default: Slurm's 10000.",
        unit="jobs",
        ge=1,
        le=10000000,
        example=50000,
        active=False,
    )
    qos: list[Qos] = setting(list, text="QoS; needs accounting.", example=[{"name": "limited"}])
    accounts: list[Account] = setting(list, text="Accounts; needs accounting.", example=[{"name": "research"}])
    users: list[User] = setting(
        list, text="Users; needs accounting.", example=[{"name": "ccadmin", "accounts": ["research"]}]
    )
    priority_partitions: list[PriorityPartition] = setting(
        list,
        text="Further partitions over the same nodes.",
        example=[{"name": "urgent", "over": ["htc"], "priority_tier": 10}],
    )
    reservations: list[Reservation] = setting(list, text="Reservations, for example for maintenance.", example=[])
