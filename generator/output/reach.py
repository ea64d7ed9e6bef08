"""Where a change arrives on a cluster that runs: on running nodes, on new ones, or only once something is restarted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from ..plan.generations import SCHEDULING
from .diff import Change

RUNNING = "running nodes"
NEW_NODES = "new nodes"
SCHEDULER = "scheduler restart"
CLUSTER = "cluster restart"
Effective = Mapping[str, Any]

_SLURM_CONF = ("settings", "launch_parameters", "idle_timeout_s", "autoscale", "additional_config")
"""Keys of `slurm` that are lines of slurm.conf, which the Slurm project writes when it installs a scheduler.

Source: https://github.com/Azure/cyclecloud-slurm/blob/4.0.9/azure-slurm-install/install.py
"""
_POLICY_CONF = ("enforce", "fair_share", "preemption", "preempt_mode", "max_array_size", "max_job_count")
"""Keys of `slurm.policy` that are lines of slurm.conf, too; the others are applied on the running scheduler."""
_ON_SCHEDULER = ("scheduler", "hand_back_after_h", "hand_back_h")
"""Keys of `slurm` that only the scheduler's own scripts read."""
_SLURMDBD = ("accounting", "certificate")
"""A file beside slurmdbd.conf, which is written then, too."""
_CHECKERS = ("healthagent", "slurm_nhc", "health_checks")
"""What nodes run, and hooks of jobs on the scheduler."""
_EVERYWHERE = ("storage", "mounts")
"""Beginnings of what scheduler and login nodes mount too: the cluster has to stop for it."""


def with_reach(changes: Iterable[Change], old: Effective, new: Effective) -> tuple[Change, ...]:
    return tuple(replace(each, reaches=reach(each, old, new)) for each in changes)


def reach(change: Change, old: Effective, new: Effective) -> str | None:
    """Where a change arrives; None where no node of the cluster is concerned, or where it must be created again."""
    clusters = [_cluster(each) for each in (old, new)]
    if change.cost not in ("in place", "node restart") or not all(clusters):
        return None
    names = tuple(str(step) for step in change.path[1:] if isinstance(step, str))
    restarts = change.cost == "node restart"
    if names[:1] == ("slurm",):
        return _in_cluster(names[1:], restarts, *clusters)
    if not restarts:
        return None
    return CLUSTER if names[0] in _EVERYWHERE else _nodes(*clusters)


def _in_cluster(names: tuple[str, ...], restarts: bool, old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    key = names[0] if names else ""
    if key in ("partitions", "node_arrays"):
        if key == "node_arrays" and len(names) > 2:
            restarts = names[2] not in SCHEDULING - {"generation"}
        return _new_nodes([names[1]]) if restarts and len(names) > 2 else RUNNING
    if key in _ON_SCHEDULER:
        return SCHEDULER
    if key == "login":
        return "new login nodes" if restarts else RUNNING
    if key in ("sched", "home"):
        return CLUSTER
    if _is_installed(names):
        return SCHEDULER
    if key in _CHECKERS:
        return f"{_new_nodes(_changed(old, new))}, {SCHEDULER}"
    return _nodes(old, new) if restarts else RUNNING


def _is_installed(names: tuple[str, ...]) -> bool:
    """Whether the installer of the scheduler writes it."""
    match names:
        case ("policy", key, *_):
            return key in _POLICY_CONF
        case (key, *_):
            return key in _SLURM_CONF or names[:2] == _SLURMDBD
        case _:
            return False


def _nodes(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """What has to start again for a value that several roles have."""
    found = [_new_nodes(_changed(old, new))] if _changed(old, new) else []
    if _differs(old, new, "login"):
        found.append("new login nodes")
    if _differs(old, new, "scheduler"):
        found.append(SCHEDULER)
    return ", ".join(found) or NEW_NODES


def _new_nodes(partitions: Iterable[str]) -> str:
    return f"{NEW_NODES} of {', '.join(partitions)}"


def _changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Partitions whose running nodes are old with the new plan."""
    before = {each["name"]: each.get("generation") for each in old.get("node_arrays", [])}
    return [
        each["name"]
        for each in new.get("node_arrays", [])
        if before.get(each["name"]) not in (None, each["generation"])
    ]


def _differs(old: Mapping[str, Any], new: Mapping[str, Any], role: str) -> bool:
    """Whether image, projects or attributes of a role change."""
    return any(old.get(role, {}).get(key) != new.get(role, {}).get(key) for key in ("image", "specs", "attributes"))


def _cluster(effective: Effective) -> Mapping[str, Any]:
    found: Mapping[str, Any] = effective.get("derived", {}).get("slurm") or {}
    return found
