"""What definitions lead to is what Azure's own validation takes; what it refuses is found in copies of an old state."""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import replace
from functools import cache, partial
from typing import Any

import pytest

from generator.plan.deployment import Plan
from tests.azure.compiled import NAMES as OLD
from tests.azure.compiled import compiled_resources
from tests.azure.demands import DEMANDS, Refusal, refusals
from tests.bed.bicep.deployment import resources_of
from tests.bed.bicep.values import Resource
from tests.bed.plans import plan_from
from tests.bicep.variants import VARIANTS, rendered_files
from tests.definitions import build

LONG = "n" * 40
"""The longest name that a deployment may have."""
MORE = {
    "long names": partial(
        plan_from,
        f"{{name: {LONG}, network: {{address_space: 10.50.0.0/20}}}}",
        "server: {jumpbox: {vm_size: Standard_D2as_v5}}",
        "storage: {home: {type: anf, size_tib: 4}, mounts: [{path: /data, type: amlfs, tier: 250, size_tib: 8}]}",
        "slurm: {accounting: {type: new}}",
    ),
    "long prefix": partial(plan_from, f"azure: {{prefix: {LONG}}}"),
    "short name": partial(plan_from, "{name: abc, slurm: {accounting: {type: new}}}"),
    "as many tags as possible": partial(plan_from, f"tags: {dict.fromkeys((f'tag{i}' for i in range(12)), 'v' * 256)}"),
    "deep mount": partial(
        plan_from,
        "network: {address_space: 10.50.0.0/20}",
        f"storage: {{mounts: [{{path: /{'/'.join(['data'] * 12)}, type: anf, size_tib: 2}}]}}",
    ),
}


@cache
def shipped(name: str) -> list[Resource]:
    """What a shipped definition leads to."""
    return resources_of(build.rendered(name))


@cache
def variant(name: str) -> list[Resource]:
    """What a variant leads to."""
    plan: Plan = (VARIANTS | MORE)[name]()
    return resources_of(rendered_files(plan))


@pytest.mark.parametrize("name", build.NAMES)
def test_azure_takes_every_shipped_definition(name: str) -> None:
    assert len(shipped(name)) > 30
    assert refusals(shipped(name)) == []


@pytest.mark.parametrize("name", [*VARIANTS, *MORE])
def test_azure_takes_every_variant(name: str) -> None:
    assert refusals(variant(name)) == []


@pytest.mark.parametrize("name", OLD)
def test_the_old_deployments_have_a_star_among_several_ports(name: str) -> None:
    found = Counter(each.code for each in refusals(compiled_resources(name)))
    stars = {"gpt3-h100": 6, "hpc-lab": 1, "llm-a100": 3, "minimal": 1, "mpt-h100": 3, "reference": 6}
    assert found == {"SecurityRuleInvalidPortRange": stars[name]}


def test_every_demand_names_its_source() -> None:
    assert all("https://" in each.source or "#" in each.source for each in DEMANDS)


# ---- each demand is able to refuse


def body(kind: str) -> tuple[Resource, dict[str, Any]]:
    """The first resource of a kind in the reference, and a copy of its body to change."""
    found = next(each for each in shipped("reference") if each.type.endswith(f"/{kind}"))
    return found, copy.deepcopy(found.body)


def refused(kind: str, **changes: Any) -> list[Refusal]:
    """What is refused of that resource alone, changed."""
    found, _ = body(kind)
    return refusals([replace(found, **changes)])


def codes(found: list[Refusal]) -> set[str]:
    return {each.code for each in found}


RULE = {
    "priority": 100,
    "direction": "Inbound",
    "access": "Allow",
    "protocol": "Tcp",
    "sourceAddressPrefix": "10.0.0.0/24",
    "sourcePortRange": "*",
    "destinationAddressPrefix": "*",
    "destinationPortRange": "22",
}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"destinationPortRange": None, "destinationPortRanges": ["*"]}, "SecurityRuleInvalidPortRange"),
        ({"destinationPortRange": None, "destinationPortRanges": ["22", "70000"]}, "SecurityRuleInvalidPortRange"),
        ({"destinationPortRange": "30-20"}, "SecurityRuleInvalidPortRange"),
        ({"destinationPortRanges": ["22"]}, "SecurityRuleInvalidPortRange"),
        ({"destinationPortRange": None}, "SecurityRuleInvalidPortRange"),
        ({"sourceAddressPrefix": "10.0.0.1/24"}, "SecurityRuleInvalidAddressPrefix"),
        ({"sourceAddressPrefix": None}, "SecurityRuleInvalidAddressPrefix"),
        (
            {"sourceAddressPrefix": None, "sourceAddressPrefixes": ["10.0.0.0/24", "VirtualNetwork"]},
            "SecurityRuleInvalidAddressPrefix",
        ),
        ({"sourceAddressPrefix": None, "sourceAddressPrefixes": ["*"]}, "SecurityRuleInvalidAddressPrefix"),
        (
            {"sourceAddressPrefix": None, "sourceAddressPrefixes": ["10.0.0.0/8", "10.1.0.0/16"]},
            "OverlappingSubnetsNotPermittedInSecurityRule",
        ),
        ({"priority": 99}, "SecurityRuleConflict"),
    ],
)
def test_security_rules(change: dict[str, Any], code: str) -> None:
    for rule, expected in ((RULE, set()), (RULE | change, {code})):
        rules = [{"name": "r", "properties": rule}]
        found = refused("networkSecurityGroups", body={"properties": {"securityRules": rules}})
        assert codes(found) == expected


def test_two_rules_at_one_place() -> None:
    rules = [{"name": "r", "properties": RULE}, {"name": "R", "properties": RULE}]
    found = refused("networkSecurityGroups", body={"properties": {"securityRules": rules}})
    assert [each.code for each in found] == ["SecurityRuleConflict"] * 2


@pytest.mark.parametrize(
    ("space", "subnets", "code"),
    [
        ("10.0.0.1/16", {"a": "10.0.0.0/24"}, "InvalidCIDRNotation"),
        ("10.0.0.0/16", {"a": "10.0.0.0/30"}, "InvalidCIDRNotation"),
        ("10.0.0.0/16", {"AzureBastionSubnet": "10.0.0.0/27"}, "InvalidCIDRNotation"),
        ("10.0.0.0/16", {"a": "10.1.0.0/24"}, "NetcfgSubnetRangeOutsideVnet"),
        ("10.0.0.0/16", {"a": "10.0.0.0/24", "b": "10.0.0.128/25"}, "NetcfgSubnetRangesOverlap"),
        ("10.0.0.0/16", {"a": "10.0.0.0/24", "A": "10.0.1.0/24"}, "NetcfgSubnetRangesOverlap"),
        ("10.0.0.0/16", {"-a": "10.0.0.0/24"}, "InvalidResourceName"),
    ],
)
def test_networks(space: str, subnets: dict[str, str], code: str) -> None:
    listed = [{"name": name, "properties": {"addressPrefix": prefix}} for name, prefix in subnets.items()]
    properties = {"addressSpace": {"addressPrefixes": [space]}, "subnets": listed}
    assert codes(refused("virtualNetworks", body={"properties": properties})) == {code}


@pytest.mark.parametrize(
    ("kind", "tags", "refuses"),
    [
        ("privateDnsZones", 15, False),
        ("privateDnsZones", 16, True),
        ("virtualNetworkLinks", 16, True),
        ("natGateways", 50, False),
        ("natGateways", 51, True),
    ],
)
def test_numbers_of_tags(kind: str, tags: int, refuses: bool) -> None:
    _, changed = body(kind)
    changed["tags"] = {f"tag{number}": "v" for number in range(tags)}
    found = [each for each in refused(kind, body=changed) if each.code != "InvalidResourceReference"]
    assert codes(found) == ({"InvalidTags"} if refuses else set())


@pytest.mark.parametrize(
    ("kind", "tags"),
    [
        ("natGateways", {"a<b": "v"}),
        ("natGateways", {"n" * 513: "v"}),
        ("natGateways", {"a": "v" * 257}),
        ("natGateways", {"Azure-x": "v"}),
        ("natGateways", {"a": "v", "A": "v"}),
        ("storageAccounts", {"n" * 129: "v"}),
    ],
)
def test_tags(kind: str, tags: dict[str, str]) -> None:
    _, changed = body(kind)
    assert "InvalidTags" in codes(refused(kind, body=changed | {"tags": tags}))


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        ("storageAccounts", "a" * 25, "InvalidResourceName"),
        ("storageAccounts", "cf-a", "InvalidResourceName"),
        ("storageAccounts", "cfwindowslab", "ReservedResourceName"),
        ("flexibleServers", "login-db", "ReservedResourceName"),
        ("flexibleServers", "my-microsoft-db", "ReservedResourceName"),
        ("virtualNetworks", "v" * 65, "InvalidResourceName"),
        ("privateEndpoints", "p" * 65, "InvalidResourceName"),
    ],
)
def test_names(kind: str, name: str, code: str) -> None:
    assert code in codes(refused(kind, name=name))


def test_a_type_without_a_row_is_refused() -> None:
    assert "InvalidResourceName" in codes(refused("natGateways", type="Microsoft.New/things"))


def test_references_and_repetitions() -> None:
    resources = shipped("reference")
    without_nat = [each for each in resources if each.type != "Microsoft.Network/natGateways"]
    assert codes(refusals(without_nat)) == {"InvalidResourceReference"}
    assert codes(refusals([*resources, resources[0]])) == {"DuplicateResources"}


def test_a_second_zone_of_a_name() -> None:
    resources = shipped("reference")
    link = next(each for each in resources if each.symbol == "blobZone/link")
    elsewhere = replace(link, id=link.id.replace("reference-rg", "other-rg"))
    assert codes(refusals([*resources, elsewhere])) == {"Conflict"}


@pytest.mark.parametrize(
    "change",
    [
        {"computerName": "c" * 65},
        {"adminUsername": ""},
        {"customData": "AAAA" * 30000},
        {"computerName": "c" * 16, "windowsConfiguration": {}},
    ],
)
def test_machines(change: dict[str, Any]) -> None:
    _, changed = body("virtualMachines")
    changed["properties"]["osProfile"] |= change
    assert "InvalidParameter" in codes(refused("virtualMachines", body=changed))
