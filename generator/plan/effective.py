"""The plan as plain data: printed by `plan`, stored as `effective.yaml`, compared by `diff`."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from msgspec import Struct

from ..catalog.sizes import VmSize
from ..cctemplate.writing import Raw, Verbatim
from .asked import Asked
from .bicep_modules import Expression
from .deployment import Plan
from .file_systems.base import FileSystem
from .network import SecurityRule

_LEFT_OUT = frozenset({"constraint", "created_types", "egress", "fleet", "needs", "resolved", "shared_folders"})
"""What another file prints: `firewall-rules.json` all rules, the first part of `effective.yaml` the definition, Bicep
what is created, `bootstrap.json` what a password needs; the fleet is in `quota`. And of a job what its commands and
options have: the folders that it shares, and what it asks for to get one of several VM sizes."""
_MAPPINGS = frozenset(
    {
        "attributes",
        "entries",
        "late_addresses",
        "nccl",
        "options",
        "parameters",
        "settings",
        "sharp",
        "silenced",
        "tags",
    }
)
"""Fields that hold (name, value) pairs: mappings also when they are empty."""
_HARDWARE = (
    "custom",
    "vcpus",
    "memory_gib",
    "arch",
    "gpu_count",
    "gpu_model",
    "infiniband_nics",
    "nvme_count",
    "quota_family",
)
"""What tells a VM size apart; its launch masks and variables are in the jobs."""


def effective(plan: Plan) -> dict[str, Any]:
    """`definition`: the file with all defaults; `derived`: what follows from it. Order is that of the declarations."""
    return {"definition": plan.resolved, "derived": _plain(plan)}


def _plain(value: Any) -> Any:
    if isinstance(value, Asked):
        return {"ask": value.variable, "parameter": value.parameter}
    if isinstance(value, Expression | Raw | Verbatim):
        return value.text
    if isinstance(value, FileSystem):
        return _fields(value) | {"description": value.description}
    if isinstance(value, VmSize):
        return {"vm_size": value.name} | {name: getattr(value, name) for name in _HARDWARE}
    if isinstance(value, Struct):
        return _fields(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, PurePosixPath):
        return str(value)
    return value


def _rule(rule: SecurityRule) -> str:
    """A rule of a security group on one line; its priority is its place among the others."""
    sources = (rule.sources.text,) if isinstance(rule.sources, Expression) else rule.sources
    way = " to ".join(", ".join(side) for side in (sources, rule.destinations))
    ports = f"{rule.protocol} {', '.join(rule.ports)}"
    return f"{rule.access} {way}, {ports}"


def _fields(value: Any) -> dict[str, Any]:
    return {name: _field(name, getattr(value, name)) for name in value.__struct_fields__ if name not in _LEFT_OUT}


def _field(name: str, value: Any) -> Any:
    if name == "rules":
        return {rule.name: _rule(rule) for rule in value}
    if name in _MAPPINGS and isinstance(value, tuple):
        return {key: _plain(item) for key, item in value}
    return _plain(value)
