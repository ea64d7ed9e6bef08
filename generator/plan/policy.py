"""The scheduling policy: lines of slurm.conf, and rows for the project `slurm_policy` on the scheduler.

What slurm.conf itself can say goes there. Limits of partitions cannot: azslurm writes their lines into azure.conf, a
second line of the same name stops slurmctld, and `PartitionName=DEFAULT` comes too late. So the scheduler edits them
before every start of slurmctld. Accounts and QoS live in slurmdbd, reservations in slurmctld's state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from ..definition.model.fields import values_of
from ..definition.model.policy import Account, AssociationLimits, PartitionPolicy, Policy, Qos, Reservation, User
from ..definition.model.slurm import Slurm, Value

FORMAT = 1
ATTRIBUTE = "cycleforge.policy"
"""Beginning of the node attributes `cycleforge.policy.1`, `.2` …; each holds some rows."""
MAX_CHARACTERS = 2000
"""Of one attribute, as in `plan/size_facts.py`."""
SEPARATOR = " | "
_HEAD = len("1 9999/9999")
MAX_ROW = MAX_CHARACTERS - _HEAD - len(SEPARATOR)
"""Longest row, in characters."""
_DATABASE = frozenset({"qos", "account", "member", "user"})
TRACKED = frozenset({"billing", "cpu", "energy", "fs/disk", "gres/gpu", "mem", "node", "pages", "vmem"})
"""Resources that slurmdbd counts without being told: Slurm's own, and what accounting.conf of cyclecloud-slurm names.

Sources: https://slurm.schedmd.com/tres.html, azure-slurm-install/install.py in Azure/cyclecloud-slurm at 4.0.9
"""
_WEIGHTS = {
    "Age": "weight_age",
    "FairShare": "weight_fair_share",
    "JobSize": "weight_job_size",
    "Partition": "weight_partition",
    "QOS": "weight_qos",
}
_PREEMPT_TYPE = {"partition": "preempt/partition_prio", "qos": "preempt/qos"}
# Key of the model → name that sacctmgr takes after `set` and after `format=`.
_ASSOCIATION = {
    "fair_share": "fairshare",
    "qos": "qos",
    "default_qos": "defaultqos",
    "max_jobs": "maxjobs",
    "max_submit_jobs": "maxsubmitjobs",
    "max_wall": "maxwall",
    "max_tres_per_job": "maxtresperjob",
    "group_tres": "grptres",
}
_QOS = {
    "priority": "priority",
    "max_tres_per_job": "maxtresperjob",
    "max_tres_per_user": "maxtresperuser",
    "max_tres_per_account": "maxtresperaccount",
    "min_tres_per_job": "mintresperjob",
    "group_tres": "grptres",
    "max_jobs_per_user": "maxjobsperuser",
    "max_submit_jobs_per_user": "maxsubmitjobsperuser",
    "group_jobs": "grpjobs",
    "max_wall": "maxwall",
    "preempt_mode": "preemptmode",
    "grace_time_s": "gracetime",
    "usage_factor": "usagefactor",
    "flags": "flags",
}
_PARTITION = {
    "max_time": "MaxTime",
    "default_time": "DefaultTime",
    "priority_tier": "PriorityTier",
    "preempt_mode": "PreemptMode",
    "grace_time_s": "GraceTime",
    "qos": "QOS",
    "allow_accounts": "AllowAccounts",
    "allow_qos": "AllowQos",
}


class PolicyRow(Struct, frozen=True):
    """One setting of one object. Rows are in the order in which they can be applied."""

    kind: str
    """`qos`, `account`, `member` (a user in an account), `user`, `reservation`, `partition` or `overlay`."""
    name: str
    key: str
    """As sacctmgr and scontrol write it; `exists` for the object itself."""
    value: str

    @property
    def text(self) -> str:
        """The row on one line: words without spaces."""
        return f"{self.kind} {self.name} {self.key}={self.value}"


class PolicyPlan(Struct, frozen=True):
    """What `slurm_policy` does on the scheduler."""

    rows: tuple[PolicyRow, ...]
    needs_accounting: bool
    """Whether some row is for slurmdbd."""


def partition_setting(word: str) -> str | None:
    """The key of a partition in the definition for a word of Slurm's line; None where the definition has none."""
    return next((key for key, own in _PARTITION.items() if own.lower() == word.lower()), None)


def conf_lines(policy: Policy) -> dict[str, Value]:
    """Keys of slurm.conf that the policy sets, with their values.

    Source: https://slurm.schedmd.com/slurm.conf.html
    """
    lines: dict[str, Value] = {}
    if enforces(policy):
        lines["AccountingStorageEnforce"] = "associations,limits,qos"
    if extra := sorted({*_amounts(policy)} - TRACKED):
        lines["AccountingStorageTRES"] = ",".join(("gres/gpu", *extra))
    share = policy.fair_share
    if share is not None:
        lines |= {
            "PriorityType": "priority/multifactor",
            "PriorityDecayHalfLife": share.half_life,
            "PriorityUsageResetPeriod": share.reset.upper(),
            "PriorityMaxAge": share.max_age,
        }
        lines |= {f"PriorityWeight{word}": getattr(share, key) for word, key in _WEIGHTS.items()}
    if policy.preemption is not None:
        lines["PreemptType"] = _PREEMPT_TYPE[policy.preemption]
        lines["PreemptMode"] = policy.preempt_mode.upper()
    if policy.max_array_size is not None:
        lines["MaxArraySize"] = policy.max_array_size
    if policy.max_job_count is not None:
        lines["MaxJobCount"] = policy.max_job_count
    return lines


def _amounts(policy: Policy) -> Iterator[str]:
    """The resources that limits of the policy name."""
    for section in (*policy.qos, *policy.accounts, *policy.users):
        for key, value in values_of(section).items():
            if "tres" in key and value is not None:
                yield from (part.partition("=")[0] for part in value.split(","))


def enforces(policy: Policy) -> bool:
    """Whether jobs need an account and limits hold: as the definition says, else where it names any."""
    return policy.enforce if policy.enforce is not None else bool(policy.qos or policy.accounts or policy.users)


def policy_plan(slurm: Slurm) -> PolicyPlan | None:
    """What the scheduler does; None when slurm.conf says everything."""
    rows = tuple(policy_rows(slurm))
    return PolicyPlan(rows, any(row.kind in _DATABASE for row in rows)) if rows else None


def policy_rows(slurm: Slurm) -> Iterator[PolicyRow]:
    """Every row, in the order in which they can be applied: what is referred to comes first."""
    policy = slurm.policy
    for qos in policy.qos:
        yield from _qos(qos)
    for qos in policy.qos:
        if qos.preempt:
            yield PolicyRow("qos", qos.name, "preempt", ",".join(qos.preempt))
    for account in _from_the_top(policy.accounts):
        yield PolicyRow("account", account.name, "exists", account.parent or "root")
        yield PolicyRow("account", account.name, "parent", account.parent or "root")
        yield from _limits("account", account.name, account)
    for user in policy.users:
        yield from _user(user)
    for partition in slurm.partitions:
        yield from _partition("partition", partition.name, partition)
    for overlay in policy.priority_partitions:
        yield PolicyRow("overlay", overlay.name, "over", ",".join(overlay.over))
        yield from _partition("overlay", overlay.name, overlay)
    for reservation in policy.reservations:
        yield PolicyRow("reservation", reservation.name, "exists", reservation_words(reservation))


def reservation_words(reservation: Reservation) -> str:
    """What `scontrol create reservation` is given, joined by semicolons."""
    where = [f"PartitionName={','.join(reservation.partitions)}"] if reservation.partitions else []
    users = reservation.users or ([] if reservation.accounts else ["root"])
    words = [
        f"StartTime={reservation.start}",
        f"Duration={reservation.duration}",
        *where,
        "Nodes=ALL",
        *([f"Users={','.join(users)}"] if users else []),
        *([f"Accounts={','.join(reservation.accounts)}"] if reservation.accounts else []),
        *([f"Flags={','.join(reservation.flags)}"] if reservation.flags else []),
    ]
    return ";".join(words)


def policy_attributes(plan: PolicyPlan | None) -> dict[str, str]:
    """Node attributes of the scheduler: `1 2/3 | row | row`, the number of the format, the part and how many there are.

    ValueError for a row that is longer than an attribute, which the rules report before.
    """
    if plan is None:
        return {}
    parts: list[list[str]] = [[]]
    for text in (row.text for row in plan.rows):
        if len(text) > MAX_ROW:
            raise ValueError(f"a row of the policy has {len(text)} characters, more than {MAX_ROW}")
        if _HEAD + sum(len(SEPARATOR) + len(each) for each in (*parts[-1], text)) > MAX_CHARACTERS:
            parts.append([])
        parts[-1].append(text)
    return {
        f"{ATTRIBUTE}.{place}": SEPARATOR.join((f"{FORMAT} {place}/{len(parts)}", *rows))
        for place, rows in enumerate(parts, 1)
    }


def _qos(qos: Qos) -> Iterator[PolicyRow]:
    yield PolicyRow("qos", qos.name, "exists", "yes")
    yield from _given("qos", qos.name, qos, _QOS)


def _user(user: User) -> Iterator[PolicyRow]:
    """The default account first: slurmdbd makes it of the first one, and removing goes the other way round."""
    default = user.default_account or user.accounts[0]
    for account in dict.fromkeys((default, *user.accounts)):
        yield PolicyRow("member", f"{account}/{user.name}", "exists", "yes")
        yield from _limits("member", f"{account}/{user.name}", user)
    yield PolicyRow("user", user.name, "defaultaccount", default)
    if user.admin_level is not None:
        yield PolicyRow("user", user.name, "adminlevel", user.admin_level)


def _limits(kind: str, name: str, limits: AssociationLimits) -> Iterator[PolicyRow]:
    yield from _given(kind, name, limits, _ASSOCIATION)


def _partition(kind: str, name: str, partition: PartitionPolicy) -> Iterator[PolicyRow]:
    yield from _given(kind, name, partition, _PARTITION)


def _given(kind: str, name: str, section: object, keys: Mapping[str, str]) -> Iterator[PolicyRow]:
    for key, word in keys.items():
        value = getattr(section, key)
        if value is None or value == []:
            continue
        yield PolicyRow(kind, name, word, ",".join(value) if isinstance(value, list) else _written(key, value))


def _written(key: str, value: Value | float) -> str:
    """PreemptMode is in capitals in slurm.conf, which sacctmgr takes as well; a float without superfluous digits."""
    if key == "preempt_mode":
        return str(value).upper()
    return f"{value:g}" if isinstance(value, float) else str(value)


def _from_the_top(accounts: Iterable[Account]) -> Iterator[Account]:
    """Parents before children, else as in the definition; accounts in a cycle, which the rules refuse, come last."""
    waiting, done = list(accounts), set[str]()
    names = {account.name for account in waiting}
    while waiting:
        ready = [each for each in waiting if each.parent not in names - done or each.parent == each.name]
        for account in ready or waiting:
            yield account
            done.add(account.name)
        waiting = [each for each in waiting if each.name not in done]
