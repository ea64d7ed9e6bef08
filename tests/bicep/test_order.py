"""In which order Azure creates what main.bicep declares.

Now and then Azure refuses a subnet of a network that is being changed, and a peering changes both networks:
https://github.com/pulumi/pulumi-azure-native/issues/4340, https://github.com/Azure/bicep-ptn-aiml-landing-zone/issues/41.
"""

from __future__ import annotations

import re

import pytest

from generator.plan.file_systems.registry import KINDS
from tests.bicep.variants import VARIANTS, main_bicep

DECLARATION = re.compile(r"^(?:module|resource) (\w+) .*?^\}$", re.MULTILINE | re.DOTALL)
SUBNET = re.compile(r"\bsubnetId: network\.outputs\.subnetIds\.")


def declarations(text: str) -> dict[str, str]:
    """Symbol → text of each module and resource."""
    return {found[1]: found[0] for found in DECLARATION.finditer(text)}


def needs(symbol: str, declared: dict[str, str]) -> set[str]:
    """What a declaration uses or names in `dependsOn`, and so on to the end."""
    found: set[str] = set()
    ahead = [symbol]
    while ahead:
        body = re.sub(r"'[^'$\n]*'|//.*", "", declared[ahead.pop()].split("\n", 1)[1])
        used = set(re.findall(r"(?<![\w.])(\w+)(?=\.(?:outputs|name|id)\b)", body))
        waits = re.search(r"dependsOn: \[([^\]]*)\]", body)
        named = (used | set(re.findall(r"\w+", waits[1]) if waits else ())) & set(declared) - found
        found |= named
        ahead += named
    return found


def users_of_subnets(declared: dict[str, str]) -> set[str]:
    return {symbol for symbol, body in declared.items() if SUBNET.search(body)}


@pytest.mark.parametrize("name", VARIANTS)
def test_nothing_takes_a_subnet_before_the_peering_is_there(name: str) -> None:
    plan = VARIANTS[name]()
    declared = declarations(main_bicep(plan))
    assert ("peering" in declared) is (plan.network.hub is not None)
    if "peering" in declared:
        assert "hubPeering" in needs("peering", declared)
        assert [symbol for symbol in users_of_subnets(declared) if "peering" not in needs(symbol, declared)] == []


def test_every_kind_of_subnet_user_is_looked_at() -> None:
    """So that a new module whose parameter has another name is noticed."""
    declared = declarations(main_bicep(VARIANTS["central_zones"]()))
    assert users_of_subnets(declared) == {"server", "jumpbox", "lockerEndpoint", "database", "lustre0", "volume0"}
    assert "".join(declared.values()).count("network.outputs.subnetIds") == len(users_of_subnets(declared))


@pytest.mark.parametrize("name", VARIANTS)
def test_nothing_waits_for_itself(name: str) -> None:
    declared = declarations(main_bicep(VARIANTS[name]()))
    assert not [symbol for symbol in declared if symbol in needs(symbol, declared)]


MAY_COME_LATER = {"bootstrap", "fingerprints", "bastion", "jumpbox"}
"""What no node needs: ways in for people, and what is read after the first boot."""


@pytest.mark.parametrize("name", [name for name, plan in VARIANTS.items() if plan().server is not None])
def test_the_first_boot_waits_for_everything_that_a_node_needs(name: str) -> None:
    """With `start_cluster` it starts nodes: a mount whose role or endpoint comes later fails on them."""
    declared = declarations(main_bicep(VARIANTS[name]()))
    modules = {symbol for symbol, body in declared.items() if body.startswith("module ")}
    assert modules - needs("bootstrap", declared) <= MAY_COME_LATER


def test_the_first_boot_is_tried_with_every_kind_of_file_system() -> None:
    tried = {type(mount) for plan in VARIANTS.values() if plan().server is not None for mount in plan().all_mounts}
    assert tried == set(KINDS)
    containers = declarations(main_bicep(VARIANTS["containers"]()))
    assert {"containers0Role0", "containers0Role1", "containers0Endpoint", "containers1Role0"} <= set(containers)
    assert "networkRoles1" in declarations(main_bicep(VARIANTS["more_existing_subnets"]()))
