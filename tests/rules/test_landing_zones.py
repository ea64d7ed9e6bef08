"""Definitions that a landing zone would refuse: most are caught offline, and the page names what is not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from generator.definition.model.landing_zone import LandingZone
from generator.problems.rule import registered
from generator.rules import all_rules
from generator.rules.landing_zone import _Demand
from tests.command import ROOT
from tests.rules.annotations import findings_of
from tests.rules.test_cases import LANDING_ZONES

PAGE = (ROOT / "docs" / "landing-zones.md").read_text(encoding="utf-8")
PREFLIGHT = [path for path in LANDING_ZONES if path.name.startswith("preflight-")]
CAUGHT = [path for path in LANDING_ZONES if path not in PREFLIGHT]
_GUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def policy(path: Path) -> str:
    """The public name of the policy, and its id where there is one."""
    first = path.read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith("# policy: "), path.name
    return first.removeprefix("# policy: ")


def test_there_are_thirty_and_twenty_of_them_are_caught() -> None:
    assert len(LANDING_ZONES) >= 30
    assert len(CAUGHT) >= 20
    assert {path.name[:5] for path in CAUGHT} <= {rule.id for rule in registered()}


@pytest.mark.parametrize("path", CAUGHT, ids=lambda path: path.stem)
def test_a_breach_is_an_error_at_its_line(path: Path) -> None:
    """tests/rules/test_cases.py compares line, columns and words; here that it stops the build."""
    found = [each for each in findings_of(path.read_text(encoding="utf-8")) if each.rule_id == path.name[:5]]
    assert found
    assert found[0].rule_id.startswith("E")
    lines = path.read_text(encoding="utf-8").splitlines()
    assert all("name: case" not in lines[each.line - 1] for each in found), "no place but the top of the file"


@pytest.mark.parametrize("path", PREFLIGHT, ids=lambda path: path.stem)
def test_what_only_a_preflight_knows_is_named_on_the_page(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.splitlines()[1].startswith("# only a preflight knows: ")
    assert not [each for each in findings_of(text) if each.rule_id.startswith("E")]
    assert f"| {path.stem} |" in PAGE


@pytest.mark.parametrize("path", LANDING_ZONES, ids=lambda path: path.stem)
def test_the_page_has_every_policy_id(path: Path) -> None:
    known = {found[:8] for found in _GUID.findall(PAGE)}
    unnamed = {found for found in _GUID.findall(policy(path)) if found[:8] not in known}
    assert not unnamed


def test_every_key_has_a_rule_and_a_row() -> None:
    demands = {rule.key: rule.id for rule in all_rules() if issubclass(rule, _Demand)}
    assert set(demands) == set(LandingZone.declared_keys)
    rows = dict(re.findall(r"^\| .+ \| `(\w+)` \| (E\d{4}) \|", PAGE, re.MULTILINE))
    assert rows == demands


def test_a_definition_that_meets_every_demand_is_silent() -> None:
    """With an existing server, as a company has it; each demand is made."""
    group = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups"
    text = f"""
name: case
location: southcentralus
tags: {{owner: research}}
azure: {{subscription_id: 00000000-0000-0000-0000-000000000000, resource_group: {{existing: research-rg}}}}
server:
  existing:
    vm_id: {group}/platform/providers/Microsoft.Compute/virtualMachines/cyclecloud
    release: 8.9.1
    locker_account_id: {group}/platform/providers/Microsoft.Storage/storageAccounts/locker
    assign_locker_role: false
network:
  existing:
    vnet_id: {group}/network/providers/Microsoft.Network/virtualNetworks/spoke
    subnets: {{compute: nodes}}
security:
  encryption_at_host: true
  trusted_launch: true
  disk_encryption_set_id: {group}/security/providers/Microsoft.Compute/diskEncryptionSets/disks
  diagnostics_workspace_id: {group}/security/providers/Microsoft.OperationalInsights/workspaces/logs
landing_zone:
  allowed_locations: [South Central US]
  allowed_vm_sizes: [standard_d4ads_v5, Standard_D64ds_v5]
  allowed_storage_skus: [Standard_GRS]
  allowed_networks: [{group}/network/providers/microsoft.network/virtualnetworks/SPOKE]
  denied_resource_types: [Microsoft.Network/virtualNetworks]
  required_tags: [Owner, created-by]
  {{ALL}}
slurm:
  image: {group}/images/providers/Microsoft.Compute/galleries/g/images/ubuntu/versions/1.0.0
  partitions: [{{name: htc, vm_size: Standard_D64ds_v5, max_nodes: 2}}]
"""
    switches = [name for name, declared in LandingZone.declared_keys.items() if declared.default is False]
    assert len(switches) == 15
    text = text.replace("{ALL}", "\n  ".join(f"{name}: true" for name in switches))
    assert not [each for each in findings_of(text) if each.rule_id.startswith("E")]
