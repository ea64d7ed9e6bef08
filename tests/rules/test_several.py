"""Definitions of one run beside each other: what both would create, and what is shared on purpose."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from generator import pipeline
from generator.cli import main
from generator.pipeline import Checked
from tests.bed.plans import SMALL, merged
from tests.bed.yaml_data import yaml_data
from tests.bicep.variants import HUB_ID

SUBSCRIPTION = "/subscriptions/11111111-2222-3333-4444-555555555555"
SERVER = f"{SUBSCRIPTION}/resourceGroups/a-rg/providers/Microsoft.Compute/virtualMachines/aaa-server"
LOCKER = f"{SUBSCRIPTION}/resourceGroups/a-rg/providers/Microsoft.Storage/storageAccounts/firstlocker0001"
HUB = f"network: {{access: hub, hub: {{vnet_id: {HUB_ID}, use_remote_gateway: false}}, address_space: %s}}"
OTHER_HUB = HUB.replace("/virtualNetworks/hub", "/virtualNetworks/other")
EXISTING = f"""
admin: null
azure: {{resource_group: {{existing: a-rg}}}}
server: {{existing: {{vm_id: {SERVER}, release: 8.9.1, locker_account_id: {LOCKER}}}}}
network:
  address_space: null
  existing:
    vnet_id: {SUBSCRIPTION}/resourceGroups/a-rg/providers/Microsoft.Network/virtualNetworks/aaa-vnet
    subnets: {{compute: compute}}
"""
IN_NETWORK = f"""
network:
  address_space: null
  existing:
    vnet_id: {SUBSCRIPTION}/resourceGroups/a-rg/providers/Microsoft.Network/virtualNetworks/aaa-vnet
    subnets: {{server: server, compute: compute}}
"""
ITS_ZONE = (
    f"{SUBSCRIPTION}/resourceGroups/a-rg/providers/Microsoft.Network/privateDnsZones/privatelink.blob.core.windows.net"
)
BEHIND_A = f"""
network:
  access: hub
  address_space: 10.50.0.0/22
  hub:
    vnet_id: {SUBSCRIPTION}/resourceGroups/a-rg/providers/Microsoft.Network/virtualNetworks/aaa-vnet
    use_remote_gateway: false
"""
SHARED = "azure: {resource_group: shared}"
IN_ONE = "azure: {subscription_id: 11111111-2222-3333-4444-555555555555, prefix: lab}"
IN_A = "azure: {prefix: aaa, resource_group: a-rg}"


def text_of(name: str, *changes: str) -> str:
    """A small definition with changes, each a YAML text."""
    definition: Any = yaml_data(SMALL) | {"name": name}
    # The default jobs: a list of its own would have a warning of its own.
    definition.pop("jobs")
    for change in changes:
        definition = merged(definition, yaml_data(change))
    return json.dumps(definition)


def together(*texts: str) -> list[Checked]:
    """Definitions of one run, `0.yaml` and so on."""
    alone = [pipeline.check(text.encode(), f"{number}.yaml", {}, Path()) for number, text in enumerate(texts)]
    assert all(each.plan is not None for each in alone), [each.problems for each in alone]
    return pipeline.check_together(alone)


def ids(found: Checked) -> list[str]:
    return [problem.rule_id for problem in found.problems if problem.rule_id != "I1591"]


@pytest.mark.parametrize(
    ("one", "other", "rule"),
    [
        (text_of("aaa"), text_of("aaa", "azure: {prefix: other}"), "E0234"),
        (text_of("aaa"), text_of("bbb", "azure: {prefix: aaa}"), "E0225"),
        (text_of("aaa"), text_of("bbb", "azure: {resource_group: AAA-rg}"), "E0225"),
        (
            text_of("aaa", SHARED),
            text_of("bbb", "azure: {prefix: aaa, resource_group: {existing: shared}}"),
            "E0225",
        ),
        (text_of("aaa", HUB % "10.50.0.0/20"), text_of("bbb", HUB % "10.50.8.0/22"), "E0325"),
        (text_of("aaa", IN_A), text_of("bbb", BEHIND_A), "E0325"),
        (text_of("bbb", IN_NETWORK), text_of("ccc", IN_NETWORK), "E0371"),
        (text_of("aaa", IN_A), text_of("bbb", IN_NETWORK), "E0371"),
        (
            text_of("aaa", IN_A, "slurm: {cluster_name: lab}"),
            text_of("bbb", EXISTING, "slurm: {cluster_name: LAB}".lower()),
            "E1914",
        ),
    ],
)
def test_both_are_told_and_neither_is_built(one: str, other: str, rule: str) -> None:
    found = together(one, other)
    assert [ids(each) for each in found] == [[rule], [rule]]
    assert [each.plan for each in found] == [None, None]
    assert "1.yaml" in found[0].problems[0].message
    assert "0.yaml" in found[1].problems[0].message


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (text_of("aaa"), text_of("bbb")),
        (text_of("aaa", SHARED), text_of("bbb", "azure: {resource_group: {existing: shared}}")),
        (
            text_of("aaa", "azure: {subscription_id: 11111111-2222-3333-4444-555555555555, prefix: lab}"),
            text_of("bbb", "azure: {subscription_id: 11111111-2222-3333-4444-555555555556, prefix: lab}"),
        ),
        (
            text_of("aaa", IN_ONE, "slurm: {cluster_name: lab}"),
            text_of("bbb", IN_ONE.replace("5,", "6,"), "slurm: {cluster_name: lab}"),
        ),
        (text_of("aaa", HUB % "10.50.0.0/20"), text_of("bbb", HUB % "10.51.0.0/20")),
        (text_of("aaa", HUB % "10.50.0.0/20"), text_of("bbb", OTHER_HUB % "10.50.0.0/20")),
        (text_of("aaa", IN_A), text_of("bbb", EXISTING)),
        (text_of("bbb", IN_NETWORK), text_of("ccc", IN_NETWORK, f"network: {{blob_dns_zone: {ITS_ZONE}}}")),
        (text_of("bbb", IN_NETWORK), text_of("ccc", IN_NETWORK, "network: {blob_dns_zone: none}")),
        (text_of("bbb", IN_NETWORK), text_of("ccc", IN_NETWORK.replace("aaa-vnet", "bbb-vnet"))),
    ],
    ids=["apart", "a shared group", "subscriptions", "servers in subscriptions", "spaces", "hubs",
         "the other's server and group", "one zone", "no zone", "networks"],
)  # fmt: skip
def test_what_is_apart_or_shared_on_purpose(one: str, other: str) -> None:
    found = together(one, other)
    assert [ids(each) for each in found] == [[], []]
    assert all(each.plan is not None for each in found)


def test_one_of_the_two_may_silence_it() -> None:
    silence = "silence: [{rule: E0225, reason: only one of them is ever deployed}]"
    found = together(text_of("aaa"), text_of("bbb", "azure: {prefix: aaa}", silence))
    assert [ids(each) for each in found] == [[], []]


def test_validate_and_build_look_at_all_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = []
    for name, change in (("aaa", "{}"), ("bbb", "azure: {prefix: aaa}"), ("ccc", "{}")):
        (tmp_path / f"{name}.yaml").write_text(text_of(name, change))
        names.append(str(tmp_path / f"{name}.yaml"))
    assert main(["validate", *names]) == 1
    said = capsys.readouterr().err
    assert said.count("error E0225") == 2
    assert "aaa.yaml:1:" in said
    assert main(["build", *names, "--out", str(tmp_path / "out")]) == 1
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["ccc"]
    assert main(["validate", names[0]]) == 0
