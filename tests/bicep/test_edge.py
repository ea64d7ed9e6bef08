"""Definitions at the edge of what `validate` accepts: what it accepts compiles, and Azure takes it."""

from __future__ import annotations

import json
import string
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest

from generator import pipeline
from generator.plan.deployment import Plan
from tests.azure.demands import refusals
from tests.bed.bicep.deployment import resources_of
from tests.bed.plans import KEY
from tests.bicep.compilers import findings_below
from tests.bicep.variants import FIRST_GROUP, HUB_ID, rendered_files, write_folder

SEEDS = range(48)
WORDS = [
    "null",
    "true",
    "if",
    "for",
    "var",
    "existing",
    "a b",
    "it's",
    'say "x"',
    "cost-center",
    "1st",
    "_",
    "$",
    "größe",
]
VALUES = ["", "v" * 256, "'''", "back\\slash", "true", "4711"]
LETTERS = string.ascii_lowercase


def _word(random: Random, *lengths: int) -> str:
    """Of one of these lengths: a letter first, no hyphen at the end."""
    middle = LETTERS + string.digits
    length = random.choice(lengths)
    return random.choice(LETTERS) + "".join(random.choice(middle) for _ in range(length - 1))


def _tags(random: Random) -> dict[str, str]:
    long = [_word(random, 1, 127, 128, 128, 128, 128, 128, 129, 255, 256, 512) for _ in range(random.randrange(3))]
    names = [*random.sample(WORDS, random.randrange(6)), *long, *random.sample(["Deployment", "Created-By"], 1)]
    return {name: random.choice(VALUES) for name in names}


def _mount(random: Random) -> dict[str, Any]:
    path = "/" + "/".join(_word(random, 1, 12, 40) for _ in range(random.randrange(1, 4)))
    account = {"storage_account": _word(random, 3, 24), "container": _word(random, 3, 63), "create": True}
    kinds: list[dict[str, Any]] = [
        {"type": "amlfs", "tier": 125, "size_tib": 16},
        {"type": "anf", "size_tib": 2},
        {"type": "blob", **account},
    ]
    return {"path": path, **random.choice(kinds)}


def _network(random: Random) -> dict[str, Any]:
    access: dict[str, Any] = random.choice(
        [
            {"access": "bastion"},
            {"access": "public", "allowed_sources": ["203.0.113.0/24"], "nat_gateway": False},
            {"access": "hub", "hub": {"vnet_id": HUB_ID, "address_spaces": ["172.16.0.0/24"]}},
        ]
    )
    further = [
        {"name": _word(random, 1, 12, 28, 40), "prefix": f"10.50.{64 + index}.0/24"}
        for index in range(random.randrange(3))
    ]
    return {
        "address_space": "10.50.0.0/16",
        "subnets": {"compute": "10.50.0.0/20"},
        "compute_subnets": further,
    } | access


def definition(seed: int) -> dict[str, Any]:
    """One definition, the same for the same seed."""
    random = Random(seed)
    found: dict[str, Any] = {"name": _word(random, 3, 20, 40), "location": "southcentralus", "tags": _tags(random)}
    partition: dict[str, Any] = {"name": "htc", "vm_size": "Standard_D4ads_v5", "max_nodes": 2}
    found["slurm"] = {"partitions": [partition]}
    if random.random() < 0.3:
        found["azure"] = {"prefix": _word(random, 3, 40)}
    if random.random() < 0.3:
        vm = f"{FIRST_GROUP}/Microsoft.Compute/virtualMachines/first-server"
        locker = f"{FIRST_GROUP}/Microsoft.Storage/storageAccounts/firstlocker0001"
        found["server"] = {"existing": {"vm_id": vm, "release": "8.9.1", "locker_account_id": locker}}
        vnet = f"{FIRST_GROUP}/Microsoft.Network/virtualNetworks/first-vnet"
        found["network"] = {"existing": {"vnet_id": vnet, "subnets": {"compute": "compute"}}}
        return found
    found["admin"] = {"ssh_public_key": KEY}
    found["network"] = _network(random)
    if further := found["network"]["compute_subnets"]:
        partition["subnet"] = random.choice(further)["name"]
    found["server"] = {"jumpbox": {"vm_size": "Standard_D2as_v5"}} if random.random() < 0.3 else {}
    found["storage"] = {"mounts": [_mount(random) for _ in range(random.randrange(3))]}
    if random.random() < 0.5:
        server = {"server_name": _word(random, 3, 63)} if random.random() < 0.5 else {}
        found["slurm"]["accounting"] = {"type": "new", **server}
    return found


@cache
def accepted() -> dict[str, Plan]:
    """Those that have no error, by their seed."""
    checked = {
        str(seed): pipeline.check(json.dumps(definition(seed)).encode(), "edge.yaml", {}, Path()) for seed in SEEDS
    }
    return {seed: each.plan for seed, each in checked.items() if each.plan is not None}


def test_many_are_accepted_and_some_are_not() -> None:
    assert len(SEEDS) // 3 < len(accepted()) < len(SEEDS)


@pytest.mark.bicep
def test_what_is_accepted_compiles(tmp_path: Path) -> None:
    written = {seed: write_folder(plan, tmp_path / seed) for seed, plan in accepted().items()}
    assert [line for found in findings_below(written).values() for line in found] == []


@pytest.mark.parametrize("seed", [str(seed) for seed in SEEDS])
def test_azure_takes_what_is_accepted(seed: str) -> None:
    plan = accepted().get(seed)
    assert plan is None or refusals(resources_of(rendered_files(plan))) == []
