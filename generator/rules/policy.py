"""The scheduling policy: names, references, limits, times, what Slurm accepts as such, and what needs accounting."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from ..definition.model.fields import Section
from ..definition.model.policy import PartitionPolicy
from ..definition.model.slurm import Slurm
from ..plan.policy import MAX_ROW, conf_lines, enforces, policy_rows
from ..problems.problem import Problem
from ..words.slurm_time import minutes
from .base import PARTITIONS, ClusterRule, Path, Site, choose_from, first_given, quoted

POLICY: Path = ("slurm", "policy")
_CONF = "https://slurm.schedmd.com/slurm.conf.html"
_MANAGER = "https://slurm.schedmd.com/sacctmgr.html"
_LIMITS = "https://slurm.schedmd.com/resource_limits.html"
_PREEMPT = "https://slurm.schedmd.com/preempt.html"
_TRES_KEYS = (
    "max_tres_per_job", "max_tres_per_user", "max_tres_per_account", "min_tres_per_job", "group_tres",
)  # fmt: skip
_TIME_KEYS = ("max_wall", "max_time", "default_time", "duration", "half_life", "max_age")
_LISTS = ("qos", "accounts", "users", "priority_partitions", "reservations")
_WORDS = {
    "qos": "a QoS", "accounts": "an account", "users": "a user", "priority_partitions": "a partition",
    "reservations": "a reservation",
}  # fmt: skip
_Item = TypeVar("_Item", bound=Section)


def _listed(items: Iterable[_Item], *path: str) -> Iterator[tuple[Path, _Item]]:
    for place, item in enumerate(items):
        yield (*POLICY, *path, place), item


def _sections(slurm: Slurm) -> Iterator[tuple[Path, Section]]:
    """Every section that has limits or times of the policy."""
    for place, partition in enumerate(slurm.partitions):
        yield (*PARTITIONS, place), partition
    for key in _LISTS:
        yield from _listed(getattr(slurm.policy, key), key)
    if slurm.policy.fair_share is not None:
        yield (*POLICY, "fair_share"), slurm.policy.fair_share


def _partitions(slurm: Slurm) -> Iterator[tuple[Path, PartitionPolicy]]:
    for path, section in _sections(slurm):
        if isinstance(section, PartitionPolicy):
            yield path, section


class PolicyName(ClusterRule):
    id = "E3001"
    summary = "A name in the scheduling policy is not valid in Slurm."
    why = "slurmdbd keeps names in lower case, and signs that separate words or values make another name of it."
    fix = "Use lower-case letters, digits, '.', '_' and '-', beginning with a letter or digit."
    source = _MANAGER

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        for key, word in _WORDS.items():
            pattern = {"priority_partitions": PARTITION, "reservations": RESERVATION}.get(key, NAME)
            for path, item in _listed(getattr(slurm.policy, key), key):
                name: str = item.name
                if not pattern.fullmatch(name) or (key == "users" and len(name) > USER_MAX):
                    near = name.lower().replace(" ", "-")
                    good = near != name and pattern.fullmatch(near) and (key != "users" or len(near) <= USER_MAX)
                    text = f"{quoted(name)} is not a valid name of {word}"
                    yield self.problem((*path, "name"), text, f"for example {near}" if good else None)
        for path, reservation in _listed(slurm.policy.reservations, "reservations"):
            for place, user in enumerate(reservation.users):
                if not NAME.fullmatch(user):
                    yield self.problem((*path, "users", place), f"{quoted(user)} is not a valid name of a user")


class PolicyTwice(ClusterRule):
    id = "E3002"
    summary = "The scheduling policy names something twice, or as Slurm or CycleCloud name something else."
    why = "The second one would change the first; a second partition of a name stops slurmctld."
    fix = "Rename or remove one of them."
    source = _CONF

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        for key, word in _WORDS.items():
            seen = {"accounts": {"root"}, "priority_partitions": {"default", "all"}}.get(key, set[str]())
            if key == "priority_partitions":
                seen = seen | {partition.name.lower() for partition in slurm.partitions}
            for path, item in _listed(getattr(slurm.policy, key), key):
                if item.name.lower() in seen:
                    text = f"the {word.split()[-1]} {quoted(item.name)} already exists"
                    yield self.problem((*path, "name"), text)
                seen.add(item.name.lower())


class PolicyReference(ClusterRule):
    id = "E3003"
    summary = "The scheduling policy refers to something that the definition does not have."
    why = "slurmdbd refuses it, or a partition admits nobody."
    fix = "Add what is missing, or correct the name."
    source = _MANAGER

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        policy = slurm.policy
        known = {
            "QoS": ("normal", *(each.name for each in policy.qos)),
            "account": ("root", *(each.name for each in policy.accounts)),
            "partition": tuple(each.name for each in slurm.partitions),
        }
        for path, word, name in _references(slurm):
            if name not in known[word]:
                text = f"there is no {word} {quoted(name)} in the definition"
                yield self.problem(path, text, choose_from(name, known[word]))
        for path, user in _listed(policy.users, "users"):
            if user.default_account is not None and user.default_account not in user.accounts:
                text = f"the default account {quoted(user.default_account)} is not one of the accounts of {user.name}"
                yield self.problem((*path, "default_account"), text, choose_from(user.default_account, user.accounts))


def _references(slurm: Slurm) -> Iterator[tuple[Path, str, str]]:
    policy = slurm.policy
    for path, qos in _listed(policy.qos, "qos"):
        yield from _names(path, "preempt", "QoS", qos.preempt)
    for path, account in _listed(policy.accounts, "accounts"):
        if account.parent is not None:
            yield (*path, "parent"), "account", account.parent
        yield from _association(path, account.qos, account.default_qos)
    for path, user in _listed(policy.users, "users"):
        yield from _names(path, "accounts", "account", user.accounts)
        yield from _association(path, user.qos, user.default_qos)
    for path, partition in _partitions(slurm):
        if partition.qos is not None:
            yield (*path, "qos"), "QoS", partition.qos
        yield from _names(path, "allow_qos", "QoS", partition.allow_qos)
        yield from _names(path, "allow_accounts", "account", partition.allow_accounts)
    for path, overlay in _listed(policy.priority_partitions, "priority_partitions"):
        yield from _names(path, "over", "partition", overlay.over)
    for path, reservation in _listed(policy.reservations, "reservations"):
        yield from _names(path, "partitions", "partition", reservation.partitions)
        yield from _names(path, "accounts", "account", reservation.accounts)


def _names(path: Path, key: str, word: str, names: Iterable[str]) -> Iterator[tuple[Path, str, str]]:
    for place, name in enumerate(names):
        yield (*path, key, place), word, name


def _association(path: Path, qos: Iterable[str], default: str | None) -> Iterator[tuple[Path, str, str]]:
    yield from _names(path, "qos", "QoS", qos)
    if default is not None:
        yield (*path, "default_qos"), "QoS", default


class PolicyCycle(ClusterRule):
    id = "E3004"
    summary = "Accounts are below each other in a circle, or QoS preempt each other in one."
    why = "A hierarchy has a top; jobs that preempt each other in turn never end."
    fix = "Remove one of the references that the message names."
    source = _PREEMPT

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        policy = slurm.policy
        above = {each.name: [each.parent] if each.parent else [] for each in policy.accounts}
        for path, account in _listed(policy.accounts, "accounts"):
            if circle := _circle(account.name, above):
                yield self.problem((*path, "parent"), f"the accounts are in a circle: {' below '.join(circle)}")
        preempts = {each.name: each.preempt for each in policy.qos}
        for path, qos in _listed(policy.qos, "qos"):
            if circle := _circle(qos.name, preempts):
                yield self.problem((*path, "preempt"), f"QoS preempt each other: {' preempts '.join(circle)}")


def _circle(start: str, edges: Mapping[str, list[str]]) -> list[str]:
    """The way from a name back to itself, reported at the first name of the circle by order; empty without one."""
    way, todo = {start: [start]}, [start]
    while todo:
        here = todo.pop()
        for there in edges.get(here, []):
            if there == start:
                circle = [*way[here], start]
                return circle if start == next(name for name in edges if name in circle) else []
            if there not in way:
                way[there] = [*way[here], there]
                todo.append(there)
    return []


class PolicyResources(ClusterRule):
    id = "E3005"
    summary = "A limit is not a list of resources as Slurm writes them."
    why = "sacctmgr refuses the whole change, and the limit does not hold."
    fix = "Write name=number with commas, for example cpu=64,mem=512G,node=4,gres/gpu=8."
    source = "https://slurm.schedmd.com/tres.html"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        for path, section in _sections(slurm):
            for key in _TRES_KEYS:
                value = getattr(section, key, None)
                if isinstance(value, str) and (fault := tres_fault(value)):
                    yield self.problem((*path, key), f"{key} {quoted(value)} {fault}", "for example cpu=64,gres/gpu=8")


class PolicyTime(ClusterRule):
    id = "E3006"
    summary = "A time in the scheduling policy is not one that Slurm reads."
    why = "slurmctld does not start with such a time in its configuration, and sacctmgr refuses it."
    fix = "Write minutes, hours:minutes:seconds, days-hours or days-hours:minutes:seconds, in quotes."
    source = "https://slurm.schedmd.com/sbatch.html#OPT_time"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        for path, section in _sections(slurm):
            for key in _TIME_KEYS:
                value = getattr(section, key, None)
                if isinstance(value, str) and minutes(value) is None:
                    yield self.problem((*path, key), f"{key} {quoted(value)} is not a time", 'for example "1-00:00:00"')
        for path, partition in _partitions(slurm):
            longest, usual = (minutes(text) if text else None for text in (partition.max_time, partition.default_time))
            if longest is not None and usual is not None and usual > longest:
                text = f"default_time {partition.default_time} is longer than max_time {partition.max_time}"
                yield self.problem((*path, "default_time"), text)
        for path, reservation in _listed(slurm.policy.reservations, "reservations"):
            if start_fault(reservation.start):
                text = f"start {quoted(reservation.start)} is not a moment"
                yield self.problem((*path, "start"), text, 'for example "2030-01-07T08:00:00"')


class PolicyNeedsAccounting(ClusterRule):
    id = "E3007"
    summary = "The policy names what only an accounting database can keep."
    why = "Accounts, users, QoS and past use live in slurmdbd; without it there is nothing to load them into."
    fix = "Add slurm.accounting, or remove the key; times, priority_partitions and reservations need no accounting."
    source = _LIMITS

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        if slurm.accounting is not None:
            return
        for path, word in _needing(slurm):
            hint = "accounting: {type: new}"
            yield self.problem(
                path, f"{word} need an accounting database, and the definition has none", hint, on_key=True
            )


def _needing(slurm: Slurm) -> Iterator[tuple[Path, str]]:
    policy = slurm.policy
    for key, word in (("qos", "QoS"), ("accounts", "accounts"), ("users", "users")):
        if getattr(policy, key):
            yield (*POLICY, key), word
    if policy.fair_share is not None:
        yield (*POLICY, "fair_share"), "shares of past use"
    if policy.preemption == "qos":
        yield (*POLICY, "preemption"), "QoS"
    if policy.enforce:
        yield (*POLICY, "enforce"), "limits"
    for path, partition in _partitions(slurm):
        for key, word in (("qos", "QoS"), ("allow_qos", "QoS"), ("allow_accounts", "accounts")):
            if getattr(partition, key):
                yield (*path, key), word
    for path, reservation in _listed(policy.reservations, "reservations"):
        if reservation.accounts:
            yield (*path, "accounts"), "accounts"


class PolicyAndSettings(ClusterRule):
    id = "E3008"
    summary = "slurm.settings and slurm.policy both set a key of slurm.conf."
    why = "Two places for one value, of which only one can hold."
    fix = "Remove the key from slurm.settings, or what sets it from slurm.policy."
    source = _CONF

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        own = {key.lower(): key for key in conf_lines(slurm.policy)}
        for key in slurm.settings:
            if key.lower() in own:
                text = f"{own[key.lower()]} of slurm.conf is also set by slurm.policy"
                yield self.problem(("slurm", "settings", key), text, on_key=True)


class PreemptionWithoutEffect(ClusterRule):
    id = "W3009"
    summary = "Preemption is asked for, but nothing can be preempted; or the other way round."
    why = "Jobs would wait for each other as if there were no preemption."
    fix = (
        "Give a partition over the same nodes a higher priority_tier, or a QoS the key preempt; set policy.preemption."
    )
    source = _PREEMPT

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        policy = slurm.policy
        if policy.preemption == "partition" and not any(_overtaken(slurm)):
            text = "preemption by partition is on, but all partitions over the same nodes have one priority_tier"
            yield self.problem(
                (*POLICY, "preemption"), text, "priority_partitions: [{name: urgent, over: […], priority_tier: 10}]"
            )
        if policy.preemption == "qos" and not any(qos.preempt for qos in policy.qos):
            yield self.problem((*POLICY, "preemption"), "preemption by QoS is on, but no QoS has the key preempt")
        if policy.preemption != "qos":
            for path, qos in _listed(policy.qos, "qos"):
                if qos.preempt:
                    text = f"the QoS {qos.name} preempts nothing, because preemption is not by QoS"
                    yield self.problem((*path, "preempt"), text, "policy: {preemption: qos}", on_key=True)
        if policy.preemption is None:
            for path, partition in _partitions(slurm):
                if partition.preempt_mode is not None:
                    text = "preempt_mode is given, but policy.preemption is not set"
                    yield self.problem((*path, "preempt_mode"), text, "policy: {preemption: partition}", on_key=True)


def _overtaken(slurm: Slurm) -> Iterator[bool]:
    """For each priority partition and each partition below it: whether the tiers differ."""
    tiers = {each.name: 1 if each.priority_tier is None else each.priority_tier for each in slurm.partitions}
    overlays = slurm.policy.priority_partitions
    for place, overlay in enumerate(overlays):
        own = 1 if overlay.priority_tier is None else overlay.priority_tier
        for name in overlay.over:
            yield tiers.get(name, own) != own
        for other in overlays[place + 1 :]:
            if {*overlay.over} & {*other.over}:
                yield (1 if other.priority_tier is None else other.priority_tier) != own


class AdministratorWithoutAccount(ClusterRule):
    id = "W3010"
    summary = "Jobs need an account, and the administrator has none."
    why = "Slurm refuses the validation jobs that README has the administrator submit."
    fix = "Add the administrator to policy.users, or set policy.enforce: false."
    source = _LIMITS

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        name, policy = site.definition.admin.username, slurm.policy
        if slurm.accounting is None or not enforces(policy) or name in (user.name for user in policy.users):
            return
        path = first_given(site, (*POLICY, "enforce"), POLICY)
        text = f"jobs need an account, and the administrator {name} is not among policy.users"
        account = policy.accounts[0].name if policy.accounts else "…"
        yield self.problem(path, text, f"users: [{{name: {name}, accounts: [{account}]}}]", on_key=True)


class ArraysAndJobs(ClusterRule):
    id = "E3018"
    summary = "A job array may be larger than the number of jobs that Slurm keeps."
    why = "MaxArraySize should be much smaller than MaxJobCount, or one array fills the table of all jobs."
    fix = "Raise max_job_count, or lower max_array_size."
    source = "https://slurm.schedmd.com/slurm.conf.html#OPT_MaxArraySize"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        size, count = slurm.policy.max_array_size, slurm.policy.max_job_count
        if size is not None and size > (10000 if count is None else count):
            text = f"arrays of {size - 1} jobs do not fit into {10000 if count is None else count} jobs"
            yield self.problem((*POLICY, "max_array_size"), text, f"max_job_count: {size * 2}")


class PolicyRowTooLong(ClusterRule):
    id = "E3019"
    summary = "A list in the scheduling policy is too long for a node attribute."
    why = "The scheduler reads its policy from node attributes, which hold 2,000 characters each; a row is never cut."
    fix = "Shorten the list, for example by naming an account above instead of all below it."
    source = "https://github.com/Azure/cyclecloud-slurm/blob/4.0.9/templates/slurm.txt"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        for row in policy_rows(slurm):
            if len(row.text) > MAX_ROW:
                text = (
                    f"{row.key} of {row.kind} {quoted(row.name)} has {len(row.text)} characters, at most {MAX_ROW} fit"
                )
                yield self.problem(POLICY, text, on_key=True)


NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}", re.ASCII)
"""Of accounts, users and QoS: slurmdbd keeps them in lower case, and our rows and commands need no quotes for these."""
PARTITION = re.compile(r"[a-z][a-z0-9_-]{0,30}", re.ASCII)
RESERVATION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}", re.ASCII)
USER_MAX = 32
"""Longest login name on Linux. Source: useradd(8)"""
TRES = ("billing", "cpu", "energy", "mem", "node", "pages", "vmem")
_AMOUNT = re.compile(r"\d{1,15}", re.ASCII)
_MEMORY = re.compile(r"\d{1,12}[KMGTP]?", re.ASCII)
_TYPE = re.compile(r"(?:gres|license|ic|bb|fs)/[a-z0-9][\w.:-]{0,62}", re.ASCII)
_START = re.compile(r"\d{4}-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d))?", re.ASCII)


def tres_fault(text: str) -> str | None:
    """Why a text is no list of resources as `cpu=64,mem=512G,gres/gpu=8`; None when it is one.

    Source: https://slurm.schedmd.com/tres.html
    """
    seen: set[str] = set()
    for part in text.split(","):
        name, sign, amount = part.partition("=")
        if not sign:
            return f"has no amount in '{part[:40]}'" if part else "has an empty part"
        if name in seen:
            return f"names {name} twice"
        seen.add(name)
        if not (name in TRES or _TYPE.fullmatch(name)):
            return f"has an unknown resource '{name[:40]}'"
        if not (_MEMORY if name in ("mem", "vmem") else _AMOUNT).fullmatch(amount):
            return f"has no whole number after {name}="
    return None


def start_fault(text: str) -> bool:
    """Whether a text is no moment `YYYY-MM-DDTHH:MM[:SS]`."""
    found = _START.fullmatch(text)
    if found is None:
        return True
    month, day, hour, minute, second = (int(part or 0) for part in found.groups())
    return not (1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second < 60)
