"""Plans for tests, made from YAML by the same pipeline as every build.

A test says only what it is about, so that a new key of the definition or a new field of the plan breaks nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache, reduce
from pathlib import Path
from typing import Any

from generator import pipeline
from generator.plan.cluster import SlurmPlan
from generator.plan.deployment import Plan
from generator.plan.server import ServerPlan
from tests.bed.yaml_data import yaml_data

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIG5vdCBhIHNlY3JldCwgb25seSBmb3IgdGhlIHRlc3Rz user"

SMALL = f"""
name: minimal
location: southcentralus
admin: {{ssh_public_key: "{KEY}"}}
network: {{address_space: 10.50.0.0/22}}
slurm:
  scheduler: {{vm_size: Standard_D4as_v5}}
  login: {{vm_size: Standard_D4as_v5}}
  partitions:
    - {{name: htc, vm_size: Standard_D64ds_v5, max_nodes: 2, default: true}}
jobs: {{validation: [smoke]}}
"""
"""A new network behind a Bastion, built-in NFS, one CPU partition."""


def merged(base: Any, change: Any) -> Any:
    """The base with a change: mappings are merged key by key, `null` takes a key out, all else replaces."""
    if not (isinstance(base, Mapping) and isinstance(change, Mapping)):
        return change
    kept = {key: value for key, value in base.items() if not (key in change and change[key] is None)}
    added = {key: merged(base.get(key), value) for key, value in change.items() if value is not None}
    return kept | added


def plan_from(*changes: str, base: str = SMALL) -> Plan:
    """The plan of a definition: the base, changed by each YAML text in turn. A problem fails the test.

    Plans are frozen, so whoever asks for the same one again gets the same object.
    """
    return _changed_plan(base, changes)


def slurm_of(plan: Plan) -> SlurmPlan:
    assert plan.slurm is not None
    return plan.slurm


def server_of(plan: Plan) -> ServerPlan:
    assert plan.server is not None
    return plan.server


@cache
def _changed_plan(base: str, changes: tuple[str, ...]) -> Plan:
    return _plan(json.dumps(reduce(merged, map(_loaded, (base, *changes))), ensure_ascii=False))


@cache
def _loaded(text: str) -> Any:
    """The data of a YAML text, which nobody changes: `merged` makes new mappings."""
    return yaml_data(text)


@cache
def _plan(text: str) -> Plan:
    name = json.loads(text)["name"]
    checked = pipeline.check(text.encode(), f"{name}.yaml", {}, Path())
    assert checked.plan is not None, "\n".join(f"{each.rule_id}: {each.message}" for each in checked.problems)
    return checked.plan
