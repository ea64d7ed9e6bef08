"""What Slurm on the scheduler says of nodes and jobs, and what it is told.

Sources: https://slurm.schedmd.com/scontrol.html, https://slurm.schedmd.com/squeue.html,
https://slurm.schedmd.com/power_save.html
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from msgspec import Struct

from ..results.hostlist import compress, natural_key
from .command_line import NotDone, must
from .shell import Runs

NODES = "scontrol --oneliner show node"
_BEGUN = "running,completing,suspended,stopped,configuring"
JOBS = f"squeue --noheader --all --states={_BEGUN},pending --format='%A|%u|%P|%T|%M|%N|%j'"
CONFIG = "scontrol show config"
_LIMIT_S = 90.0
_SEPARATOR = "cycleforge-next"
_STATE = re.compile(r"\sState=(\S+)")
_REASON = re.compile(r"\sReason=(.*?)(?: \[[^\]]*@[^\]]*\]|$)")
_PARTITIONS = re.compile(r"\sPartitions=(\S+)")
_SETTING = re.compile(r"^(\w+)\s*=\s*(.*?)\s*$", re.MULTILINE)
_DOWN = frozenset({"POWERED_DOWN", "POWERING_DOWN", "POWER_DOWN", "FUTURE", "CLOUD_FUTURE"})
_WITH_JOBS = frozenset({"ALLOCATED", "MIXED", "COMPLETING"})
_UNFIT = frozenset({"DRAIN", "DOWN", "FAIL", "NOT_RESPONDING", "MAINT", "ERROR", "INVALID_REG", "REBOOT_REQUESTED",
                    "REBOOT_ISSUED", "REBOOT", "RESERVED", "PLANNED", "BLOCKED"})  # fmt: skip


class SlurmNode(Struct, frozen=True):
    """One node; `states` are the words that Slurm joins with `+`."""

    name: str
    partitions: tuple[str, ...]
    states: frozenset[str]
    shown: str
    reason: str

    @property
    def is_down(self) -> bool:
        """Whether no VM runs under the name, or none will in a moment; one that is to start has a VM soon."""
        return bool(self.states & _DOWN) and "POWER_UP" not in self.states

    @property
    def can_start(self) -> bool:
        """Whether it is powered down, and Slurm would give it a job once it is up."""
        return self.is_down and "POWERED_DOWN" in self.states and "IDLE" in self.states and not self.is_unfit

    @property
    def is_idle(self) -> bool:
        """Whether its VM runs and waits for a job."""
        starts = {"POWERING_UP", "POWER_UP"} & self.states
        return "IDLE" in self.states and not (starts or self.is_down or self.has_jobs or self.is_unfit)

    @property
    def has_jobs(self) -> bool:
        return bool(self.states & _WITH_JOBS)

    @property
    def is_drained(self) -> bool:
        """Whether an administrator or a check has drained it."""
        return "DRAIN" in self.states

    @property
    def is_unfit(self) -> bool:
        """Whether Slurm gives it no job now, whatever the reason."""
        return bool(self.states & _UNFIT)


class Job(Struct, frozen=True):
    id: str
    user: str
    partition: str
    state: str
    time: str
    nodes: str
    name: str

    @property
    def is_pending(self) -> bool:
        return self.state == "PENDING"


class Queue(Struct, frozen=True):
    """Nodes, jobs and the settings of power saving, asked in one go."""

    nodes: tuple[SlurmNode, ...]
    jobs: tuple[Job, ...]
    settings: dict[str, str]

    @property
    def saves_power(self) -> bool:
        """Without it the programs of azslurm are called as an administrator calls them (SuspendTime=-1)."""
        return re.match(r"\d", self.settings.get("SuspendTime", "")) is not None


def look(scheduler: Runs) -> Queue:
    """Ask; raises NotDone and Unreachable."""
    script = f"{NODES} && echo {_SEPARATOR} && {JOBS} && echo {_SEPARATOR} && {CONFIG}"
    ran = scheduler.run(script, limit_s=_LIMIT_S)
    parts = ran.out.split(f"{_SEPARATOR}\n")
    if ran.status != 0 or len(parts) != 3:
        reason = " ".join((ran.err or ran.out).split())[:300]
        raise NotDone(f"Slurm does not answer on the scheduler: {reason or f'status {ran.status}'}")
    return Queue(read_nodes(parts[0]), read_jobs(parts[1]), dict(_SETTING.findall(parts[2])))


def read_nodes(text: str) -> tuple[SlurmNode, ...]:
    """Lines of `scontrol --oneliner show node`."""
    found = []
    for row in text.splitlines():
        name = re.match(r"NodeName=(\S+)", row)
        state = _STATE.search(row)
        if name is None or state is None:
            continue
        partitions, reason = _PARTITIONS.search(row), _REASON.search(row)
        # `*` is the sign of a node that does not answer; newer versions say NOT_RESPONDING too.
        words = state[1].replace("*", "+NOT_RESPONDING")
        found.append(
            SlurmNode(
                name[1],
                tuple(partitions[1].split(",")) if partitions else (),
                frozenset(words.split("+")),
                state[1].lower(),
                reason[1].strip() if reason else "",
            )
        )
    return tuple(sorted(found, key=lambda node: natural_key(node.name)))


def read_jobs(text: str) -> tuple[Job, ...]:
    """Lines of `squeue`; the name is last, because it may hold anything."""
    rows = (row.split("|", 6) for row in text.splitlines())
    return tuple(Job(*row) for row in rows if len(row) == 7)


# ---------------------------------------------------------------- power


def power_line(queue: Queue, names: Sequence[str], *, up: bool) -> str:
    """The line that starts nodes through ResumeProgram, or ends them through SuspendProgram; run by root.

    `POWER_DOWN` waits for a job that has got to a node in the meantime; it never ends one.
    """
    hosts = compress(names)
    if queue.saves_power:
        return f"sudo -n scontrol update {shlex.quote(f'nodename={hosts}')} state={'POWER_UP' if up else 'POWER_DOWN'}"
    program = queue.settings.get("ResumeProgram" if up else "SuspendProgram", "")
    if not program.startswith("/"):
        raise NotDone("Slurm on the scheduler neither saves power nor names a program that starts and ends nodes")
    return f"sudo -n {shlex.quote(program)} {shlex.quote(hosts)}"


def set_power(scheduler: Runs, queue: Queue, names: Sequence[str], *, up: bool) -> None:
    must(scheduler, power_line(queue, names, up=up), "the scheduler", _LIMIT_S)
