"""Lines at the end of slurm.conf: what we add to cyclecloud-slurm's own, and what the definition adds."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .. import catalog
from ..definition.model.slurm import Slurm, Value
from .policy import conf_lines

KEPT_STATES = "SuspendExcStates"
"""Nodes in these states keep their VM although they are idle."""


def slurm_conf_lines(slurm: Slurm, version: str, *, keeps_drained: bool) -> tuple[str, ...]:
    """Lines for the end of slurm.conf, where a later setting wins over cyclecloud-slurm's own.

    A key whose value is a list keeps those parameters on which cyclecloud-slurm or we rely (`slurm_conf.json`), because
    the later line replaces the whole list. With `keeps_drained`, power saving leaves drained nodes alone: some node
    runs slurm_nhc, whose drains would end with the VM. A key of ours that this version of Slurm does not know is left
    out, because slurmctld would not start; W3201 says so.

    A static pool is a SuspendTime of ten years, not `-1`: with that azslurm 4.0.9 (`is_autoscale_enabled`, which reads
    slurm.conf itself, not the files that it includes) writes nodes as State=FUTURE instead of CLOUD. No job starts such
    a node, sinfo does not show it, a restart of slurmctld forgets the ones that run, azslurmd sets the others down with
    `cyclecloud_no_node` every 15 s, `return_to_idle` does nothing, and slurmctld refuses a guest with less than all of
    RealMemory, where a node of State=CLOUD may lack a tenth. All of it was tried with azslurm and Slurm 22.05.
    """
    facts = catalog.slurm_conf()
    lines: dict[str, Value] = {
        "MaxBatchRequeue": facts.failed_prologs_before_hold.value,
        "SchedulerParameters": merged("SchedulerParameters", ""),
    }
    if slurm.accounting is not None:
        # The template's default `none` leaves MaxRSS empty in sacct; without sacct nobody reads what is gathered.
        lines["JobAcctGatherType"] = "jobacct_gather/cgroup"
    if not slurm.autoscale:
        lines["SuspendTime"] = facts.static_suspend_time_s.value
    elif slurm.idle_timeout_s is not None:
        lines["SuspendTime"] = slurm.idle_timeout_s
    if keeps_drained:
        lines[KEPT_STATES] = merged(KEPT_STATES, "")
    lines |= conf_lines(slurm.policy)
    own = {key.lower() for key in slurm.settings}
    newer = newer_keys(version)
    kept = {key: value for key, value in lines.items() if key.lower() not in own and key.lower() not in newer}
    return tuple(f"{key}={value}" for key, value in (*kept.items(), *_settings(slurm, keeps_drained)))


def slurm_release(version: str) -> tuple[int, ...]:
    """The release of a version, (25, 11) for `25.11.5`; empty for what is no version."""
    found = re.match(r"(\d{1,4})\.(\d{1,4})", version)
    return tuple(map(int, found.groups())) if found else ()


def newer_keys(version: str) -> dict[str, str]:
    """Keys of slurm.conf in lower case that came after this version, with the release; none for what is no version."""
    release = slurm_release(version)
    since: dict[str, str] = catalog.slurm_conf().keys_by_version.since
    return {key.lower(): bound for key, bound in since.items() if release and release < slurm_release(bound)}


def list_key(key: str) -> str | None:
    """The name of a key whose value is a list that others add to, in any case; None for any other key."""
    return next((name for name in catalog.slurm_conf().lists.keys if name.lower() == key.lower()), None)


def merged(name: str, value: str) -> str:
    """The parameters of a list that stay, with those of `value`; of two with the same name, the one of `value`."""
    own = parameters(value)
    stay = parameters(",".join(catalog.slurm_conf().lists.keys[name].stay))
    return ",".join((stay | own).values())


def parameters(value: str) -> dict[str, str]:
    """The parameters of a list by their name in lower case, as Slurm ignores case; the last of a name wins."""
    words = [word.strip() for word in value.split(",")]
    return {word.partition("=")[0].strip().lower(): word for word in words if word}


def slurm_value(value: Value) -> str:
    if isinstance(value, bool):
        return "YES" if value else "NO"
    return str(value)


def _settings(slurm: Slurm, keeps_drained: bool) -> Iterator[tuple[str, str]]:
    for key, value in sorted(slurm.settings.items()):
        name, text = list_key(key), slurm_value(value)
        if name == KEPT_STATES and not keeps_drained:
            name = None
        yield (name, merged(name, text)) if name else (key, text)
