"""What E0935 suggests for a misspelt key of slurm.conf: nothing that leads to the next error."""

from __future__ import annotations

import re

import pytest

from generator import catalog
from tests.rules.annotations import findings_of

OF_KEYS = ("E0901", "E0902", "E0923", "E0935", "W0934")
NAMES = sorted(
    {
        *catalog.slurm_keys().slurm_conf.keys,
        *catalog.limits().owned_slurm_keys.keys,
        *catalog.slurm_conf().keys_by_version.until,
        *(name for names in catalog.slurm_keys().elsewhere.places.values() for name in names),
    }
)


def found(keys: list[str], version: str) -> dict[int, tuple[str, str]]:
    """By line: the rule about the key there, and what it says."""
    lines = [f"    {key}: 1" for key in keys]
    head = ["name: case", "location: southcentralus", "slurm:", f"  version: {version}", "  settings:"]
    tail = ["  partitions: [{name: htc, vm_size: Standard_D4ads_v5, max_nodes: 2}]"]
    findings = findings_of("\n".join([*head, *lines, *tail]) + "\n")
    return {each.line - len(head) - 1: (each.rule_id, each.text) for each in findings if each.rule_id in OF_KEYS}


@pytest.mark.parametrize("version", ["24.11.7", "25.11.5"])
def test_what_is_suggested_gives_no_further_error(version: str) -> None:
    slips = [name[:-1] for name in NAMES if len(name) > 5] + [f"{name}x" for name in NAMES]
    said = found(slips, version)
    suggested = {slip: re.search(r"did you mean '(\w+)'", said[at][1]) for at, slip in enumerate(slips) if at in said}
    words = sorted({match[1] for match in suggested.values() if match})
    assert len(words) > 150
    assert found(words, version) == {}


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("NodeNam", "slurm.conf has no key 'NodeNam'"),
        ("SuspendTim", "slurm.conf has no key 'SuspendTim'; slurm.idle_timeout_s sets SuspendTime"),
        ("LicenseParameter", "slurm.conf has no key 'LicenseParameter'"),
        ("FastSchedul", "slurm.conf has no key 'FastSchedul'"),
        ("MaxTme", "slurm.conf has no key 'MaxTme'; MaxTime is one of a partition; partitions: [{max_time: …}]"),
        ("OverSubscrib", "slurm.conf has no key 'OverSubscrib'; OverSubscribe is one of a partition"),
        ("ConstrainCore", "slurm.conf has no key 'ConstrainCore'; ConstrainCores is one of cgroup.conf"),
        ("SchedulerTimeSlcie", "slurm.conf has no key 'SchedulerTimeSlcie'; did you mean 'SchedulerTimeSlice'?"),
    ],
)
def test_a_slip(key: str, text: str) -> None:
    assert found([key], "25.11.5") == {0: ("E0935", text)}
