"""Lines at the end of slurm.conf: what we add to cyclecloud-slurm's own, and what the definition adds."""

from __future__ import annotations

from collections.abc import Iterator

from .. import catalog
from ..definition.model.slurm import Slurm, Value
from .policy import conf_lines


def slurm_conf_lines(slurm: Slurm) -> tuple[str, ...]:
    """Lines for the end of slurm.conf, where a later setting wins over cyclecloud-slurm's own.

    A key whose value is a list keeps those parameters on which cyclecloud-slurm or we rely (`slurm_conf.json`), because
    the later line replaces the whole list.

    A static pool is a SuspendTime of ten years, not `-1`: with that azslurm 4.0.9 (`is_autoscale_enabled`, which reads
    slurm.conf itself, not the files that it includes) writes nodes as State=FUTURE instead of CLOUD. No job starts such
    a node, sinfo does not show it, a restart of slurmctld forgets the ones that run, azslurmd sets the others down with
    `cyclecloud_no_node` every 15 s, `return_to_idle` does nothing, and slurmctld refuses a guest with less than all of
    RealMemory, where a node of State=CLOUD may lack a tenth. All of it was tried with azslurm and Slurm 22.05.
    """
    facts = catalog.slurm_conf()
    lines: dict[str, Value] = {
        "MaxBatchRequeue": facts["failed_prologs_before_hold"]["value"],
        "SchedulerParameters": merged("SchedulerParameters", ""),
    }
    if slurm.accounting is not None:
        # The template's default `none` leaves MaxRSS empty in sacct; without sacct nobody reads what is gathered.
        lines["JobAcctGatherType"] = "jobacct_gather/cgroup"
    if not slurm.autoscale:
        lines["SuspendTime"] = facts["static_suspend_time_s"]["value"]
    elif slurm.idle_timeout_s is not None:
        lines["SuspendTime"] = slurm.idle_timeout_s
    lines |= conf_lines(slurm.policy)
    own = {key.lower() for key in slurm.settings}
    kept = {key: value for key, value in lines.items() if key.lower() not in own}
    return tuple(f"{key}={value}" for key, value in (*kept.items(), *_settings(slurm)))


def list_key(key: str) -> str | None:
    """The name of a key whose value is a list that others add to, in any case; None for any other key."""
    return next((name for name in catalog.slurm_conf()["lists"]["keys"] if name.lower() == key.lower()), None)


def merged(name: str, value: str) -> str:
    """The parameters of a list that stay, with those of `value`; of two with the same name, the one of `value`."""
    own = parameters(value)
    stay = parameters(",".join(catalog.slurm_conf()["lists"]["keys"][name]["stay"]))
    return ",".join((stay | own).values())


def parameters(value: str) -> dict[str, str]:
    """The parameters of a list by their name in lower case, as Slurm ignores case; the last of a name wins."""
    words = [word.strip() for word in value.split(",")]
    return {word.partition("=")[0].strip().lower(): word for word in words if word}


def slurm_value(value: Value) -> str:
    """A value as slurm.conf writes it."""
    if isinstance(value, bool):
        return "YES" if value else "NO"
    return str(value)


def _settings(slurm: Slurm) -> Iterator[tuple[str, str]]:
    for key, value in sorted(slurm.settings.items()):
        name, text = list_key(key), slurm_value(value)
        yield (name, merged(name, text)) if name else (key, text)
