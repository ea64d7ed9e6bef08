"""Plans of short definitions, made as every command makes them."""

from __future__ import annotations

from pathlib import Path

from generator import pipeline
from generator.plan.file_systems.base import FileSystem
from generator.plan.types import Plan

_PARTITIONS = "slurm: {partitions: [{name: htc, vm_size: Standard_D4ads_v5, max_nodes: 4}]}"


def plan_of(*lines: str, location: str = "southcentralus") -> Plan:
    """The plan of a definition with one CPU partition and these lines; AssertionError where a rule refuses it."""
    text = "\n".join(("name: lab", f"location: {location}", _PARTITIONS, *lines))
    checked = pipeline.check(text.encode(), "lab.yaml", {}, Path())
    assert checked.plan is not None, [problem.message for problem in checked.problems]
    return checked.plan


def mounted(mount: str, *lines: str, location: str = "southcentralus") -> FileSystem:
    """The file system of one mount, written as a YAML flow mapping."""
    (found,) = plan_of(f"storage: {{mounts: [{mount}]}}", *lines, location=location).mounts
    return found
