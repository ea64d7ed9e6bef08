"""Every key that gives a new network's subnet its prefix is held to the same rules."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from generator.definition.model.network import SubnetPrefixes
from tests.rules.annotations import findings_of

SPACE = "10.50.0.0/20"
REFUSED = {
    "10.50.0.1/24": "E0301",
    "169.254.0.0/24": "E0303",
    "10.60.0.0/25": "E0304",
    SPACE: "E0305",
    "10.50.4.0/30": "E0306",
}
"""A prefix that no subnet of the network can have, and the rule that says so."""
KEYS = (*SubnetPrefixes.declared_keys, "compute_subnets")


def definition(key: str, prefix: str) -> dict[str, Any]:
    """Each role has a subnet here, and one key the prefix."""
    network: dict[str, Any] = {"address_space": SPACE, "access": "bastion"}
    network |= {key: [{"name": "gpu", "prefix": prefix}]} if key == "compute_subnets" else {"subnets": {key: prefix}}
    partition = {"name": "htc", "vm_size": "Standard_D4ads_v5", "max_nodes": 2}
    if key == "compute_subnets":
        partition["subnet"] = "gpu"
    return {
        "name": "case",
        "location": "southcentralus",
        "network": network,
        "storage": {
            "home": {"type": "anf", "size_tib": 4},
            "mounts": [{"path": "/data", "type": "amlfs", "tier": 125, "size_tib": 16}],
        },
        "slurm": {"accounting": {"type": "new"}, "partitions": [partition]},
    }


@pytest.mark.parametrize("prefix", REFUSED)
@pytest.mark.parametrize("key", KEYS)
def test_a_prefix_is_refused_under_every_key(key: str, prefix: str) -> None:
    text = yaml.safe_dump(definition(key, prefix), sort_keys=False)
    line = next(number for number, each in enumerate(text.splitlines(), 1) if prefix in each and "space" not in each)
    assert REFUSED[prefix] in {found.rule_id for found in findings_of(text) if found.line == line}
