"""Plans of short definitions, made as every command makes them."""

from __future__ import annotations

import json
from pathlib import Path

from generator import pipeline
from generator.definition.kinds import kind_of, sections
from generator.definition.model.fields import Section
from generator.definition.model.storage import Storage
from generator.plan.deployment import Plan
from generator.plan.file_systems.base import FileSystem

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


def with_every_kind() -> Plan:
    """A plan with a mount of each kind that a mount may have; /sched and /shared are disks of the scheduler."""
    kinds = sections(kind_of(Storage.declared_keys["mounts"]))
    return plan_of("storage:", "  mounts:", *(f"    - {_example(section)}" for section in kinds))


def _example(section: type[Section]) -> str:
    """A mount of this kind with nothing but what is required, each value the example of its key."""
    values = {name: section.declared_keys[name].example for name in section.required_keys}
    return json.dumps(values | {"path": f"/{values['type']}"})
