"""Brings a cluster up to date: template and parameters on the server, partitions and nodes on the scheduler.

Every step may be repeated: an import says the same again, and what replaces nodes goes on from Slurm's own states.
Sources: https://learn.microsoft.com/azure/cyclecloud/cli (import_cluster), Azure/cyclecloud-slurm README.md (azslurm
scale after a change of partitions), projects/misc_ubuntu (nodes.sh),
projects/slurm_policy (policy.sh).
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from ..results.hostlist import compress, expand
from .command_line import NotDone, must
from .shell import Runs
from .slurm import Queue

FACTS = "/var/lib/cycleforge/facts.json"
NODES = "/opt/cycleforge/misc_ubuntu/nodes.sh"
POLICY = "/opt/cycleforge/slurm_policy/policy.sh"
UNIT = "cycleforge-replace"
_LIMIT_S = 120.0
_SCALE_S = 600.0
_COUNTS = re.compile(r"^(\d+) new, (\d+) old, (\d+) without a record$", re.MULTILINE)
_CHANGES = re.compile(r"policy: (\d+) changes")
_OLD = re.compile(r"^(\S+) +old ", re.MULTILINE)


# ---------------------------------------------------------------- parameters


def facts_of(server: Runs) -> dict[str, Any]:
    """What the deployment told the server: addresses and ids. Only root may read it."""
    text = must(server, f"sudo -n cat {FACTS}", "the server")
    try:
        facts = json.loads(text)
    except ValueError:
        facts = None
    if not isinstance(facts, dict):
        raise NotDone(f"{FACTS} on the server is not a JSON object", "`cycleforge deploy NAME` writes it again")
    return facts


def parameters(
    fixed: Mapping[str, Any], late: Mapping[str, str], facts: Mapping[str, Any], secrets: Mapping[str, str]
) -> dict[str, Any]:
    """The cluster's parameters with what only the deployment knows, as the first boot fills them in."""
    values = dict(fixed)
    for parameter, source in sorted(late.items()):
        kind, _, name = source.partition(":")
        found = secrets.get(name) if kind == "secret" else facts.get(source)
        if found in (None, ""):
            raise NotDone(f"the deployment did not tell the server '{source}'", "run `cycleforge deploy NAME` first")
        values[parameter] = str(found)
    return values


# ---------------------------------------------------------------- scheduler


def policy(scheduler: Runs, rows: bytes, *, dry: bool) -> tuple[int, str]:
    """Have a scheduling policy applied, or only said what would be done: how many changes, and its words.

    What an administrator has set stays, and a second run changes nothing.
    """
    option = " --dry-run" if dry else ""
    command = (
        'umask 077; rows=$(mktemp) || exit; trap \'rm -f "${rows}"\' EXIT; cat >"${rows}" || exit; '
        f'sudo -n bash {POLICY} apply "${{rows}}"{option} 2>&1'
    )
    ran = scheduler.run(command, input=rows, limit_s=_SCALE_S)
    found = _CHANGES.search(ran.out)
    if ran.status != 0 or found is None:
        reason = " ".join((ran.out + ran.err).split())[-400:]
        raise NotDone(f"the scheduling policy was not {'compared' if dry else 'applied'}: {reason}")
    return int(found[1]), ran.out


def different(queue: Queue, wanted: Mapping[str, int]) -> list[str]:
    """What Slurm has of the partitions in another way, in words."""
    has: dict[str, int] = {}
    for node in queue.nodes:
        for partition in node.partitions:
            has[partition] = has.get(partition, 0) + 1
    return [
        f"{name}: {has.get(name, 0)} nodes, not {count}" for name, count in wanted.items() if has.get(name, 0) != count
    ]


def of_sizes(queue: Queue, partition: str, wanted: Mapping[str, str]) -> list[str]:
    """The same for a partition of several VM sizes, whose nodes are created by hand: size → names of its nodes.

    A node's size is in its name, so one that no size has is of a size, or of a number, that the definition had before.
    """
    there = [node for node in queue.nodes if partition in node.partitions]
    names = {node.name for node in there}
    by_size = {size: expand(hosts) for size, hosts in wanted.items()}
    every = {name for hosts in by_size.values() for name in hosts}
    found = []
    for size, hosts in by_size.items():
        missing = [name for name in hosts if name not in names]
        if missing:
            found.append(f"{partition}: Slurm does not have {compress(missing)} of {size}")
    extra = [node.name for node in there if node.name not in every]
    if extra:
        run = [node.name for node in there if node.name in extra and not node.is_down]
        running = f", of which {compress(run)} have VMs" if run else ""
        found.append(f"{partition}: {compress(extra)} are in no size that the definition has{running}")
    return found


def scale(scheduler: Runs) -> None:
    """Let azslurm write the partitions anew; it restarts slurmctld, and jobs go on."""
    must(scheduler, "sudo -n azslurm scale", "the scheduler", _SCALE_S)


class Ages(Struct, frozen=True):
    """How many running nodes are of which age."""

    new: int
    old: tuple[str, ...]
    unknown: int
    text: str


def ages(scheduler: Runs, generations: Sequence[str]) -> Ages:
    """Which nodes started from something else than what is imported now."""
    text = must(scheduler, shlex.join(["sudo", "-n", NODES, "list", *generations]), "the scheduler")
    counts = _COUNTS.search(text)
    if counts is None:
        raise NotDone(f"{NODES} on the scheduler does not say how many nodes are old")
    return Ages(int(counts[1]), tuple(_OLD.findall(text)), int(counts[3]), text)


def replace_words(generations: Sequence[str], *, starts: bool) -> list[str]:
    """What replaces old nodes as they become idle; it outlives the connection."""
    start = ["--start"] if starts else []
    return ["sudo", "-n", "systemd-run", "--unit", UNIT, "--collect", NODES, "replace", *start, *generations]


def is_replacing(scheduler: Runs) -> bool:
    ran = scheduler.run(f"systemctl is-active {UNIT}.service", limit_s=_LIMIT_S)
    return ran.out.strip() in ("active", "activating")


def end_now(scheduler: Runs, names: Sequence[str]) -> None:
    """End nodes with their jobs, which Slurm queues again if they allow it.

    Source: https://slurm.schedmd.com/scontrol.html (POWER_DOWN_FORCE)
    """
    hosts = shlex.quote(f"nodename={','.join(names)}")
    must(scheduler, f"sudo -n scontrol update {hosts} state=POWER_DOWN_FORCE reason=cycleforge-update", "the scheduler")
