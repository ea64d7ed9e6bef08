"""Settings of slurm_nhc in the `configuration` of scheduler and partitions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..definition.model.slurm import Slurm, Value
from ..problems.problem import Problem
from .base import ClusterRule, Site
from .drained_nodes import health_roles
from .figures import figures
from .roles import RoleNode
from .wording import quoted

_PREFIX = "cycleforge.health."
_GUARD, _RESULTS, _ENABLED = (f"{_PREFIX}{name}" for name in ("guard", "results", "enabled"))
_FOLDER = "/sched/cycleforge-health"
_SWITCH = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_NOT_SET = ("", "None")
_PATH = re.compile(r"(/[A-Za-z0-9._-]+)+", re.ASCII)


def _whole(value: Value, row: Mapping[str, Any]) -> str | None:
    is_number = not isinstance(value, bool) and re.fullmatch("[0-9]{1,12}", str(value), re.ASCII)
    if is_number and row["min"] <= int(value) <= row["max"]:
        return None
    return f"a whole number from {row['min']} to {row['max']}"


def _switch(value: Value, row: Mapping[str, Any]) -> str | None:
    del row
    return None if str(value).lower() in _SWITCH else "true or false"


def _choice(value: Value, row: Mapping[str, Any]) -> str | None:
    return None if not isinstance(value, bool) and str(value) in row["values"] else _words(row)


def _path(value: Value, row: Mapping[str, Any]) -> str | None:
    text = str(value)
    if text in row.get("values", ()) or (_PATH.fullmatch(text) and "/../" not in f"{text}/"):
        return None
    return f"an absolute path of letters, digits, '.', '_', '-'{', or ' + _words(row) if 'values' in row else ''}"


def _words(row: Mapping[str, Any]) -> str:
    """The words in quotes: without them YAML reads some as true or false."""
    return " or ".join(f'"{word}"' for word in row["values"])


_WANTED: Mapping[str, Callable[[Value, Mapping[str, Any]], str | None]] = {
    "whole": _whole,
    "switch": _switch,
    "choice": _choice,
    "path": _path,
}


class BadHealthSetting(ClusterRule):
    id = "E3401"
    summary = "A setting of slurm_nhc has a value that its scripts refuse."
    why = "The project stops there on every node: no node of the role is checked, and none becomes ready for jobs."
    fix = "Write a value that the message allows, or remove the key: its default is in projects/README.md."
    source = "https://learn.microsoft.com/azure/cyclecloud/cluster-references/configuration-reference"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        accepted: Mapping[str, Mapping[str, Any]] = figures()["health_values"]["keys"]
        for _, node in health_roles(site):
            for key, value in node.settings.configuration.items():
                row = accepted.get(key)
                if row is None or str(value) in _NOT_SET:
                    continue
                wanted = _WANTED[str(row["kind"])](value, row)
                if wanted:
                    shown = str(value).lower() if isinstance(value, bool) else str(value)
                    text = f"{node.label}: {key} cannot be {quoted(shown)}"
                    yield self.problem((*node.path, "configuration", key), text, f"expected {wanted}")


class GuardOnOneSide(ClusterRule):
    id = "W3402"
    summary = "Scheduler and nodes differ in the guard against one shared cause, or in the folder that it needs."
    why = (
        "Nodes write there that a check fails, and hold their drain back only while the scheduler looks at the same "
        "folder. With one of the two alone a share that goes away drains every node."
    )
    fix = "Write the same value, or none, in the configuration of the scheduler and of every partition."
    source = "https://slurm.schedmd.com/scontrol.html"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        found = health_roles(site)
        scheduler = next((node for role, node in found if role == "scheduler"), None)
        if scheduler is None or not _is_on(scheduler, _ENABLED):
            return
        for role, node in found:
            if role != "execute" or not _is_on(node, _ENABLED):
                continue
            keys = [_GUARD] if _is_on(node, _GUARD) != _is_on(scheduler, _GUARD) else []
            if not keys and _is_on(node, _GUARD) and _folder(node) != _folder(scheduler):
                keys = [_RESULTS]
            for key in keys:
                written = node if key in node.settings.configuration else scheduler
                text = f"{node.label} and the scheduler differ in {key}, so the guard works for none of the two"
                yield self.problem((*written.path, "configuration", key), text)


def _is_on(node: RoleNode, key: str) -> bool:
    """A switch, which is on where it is not set; what is no switch is for E3401."""
    return _SWITCH.get(str(node.settings.configuration.get(key, True)).lower(), True)


def _folder(node: RoleNode) -> str:
    text = str(node.settings.configuration.get(_RESULTS, _FOLDER))
    return _FOLDER if text in _NOT_SET else text
