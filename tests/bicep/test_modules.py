"""What must hold in every module, whatever its text."""

from __future__ import annotations

import base64
import json
import re
import subprocess
from pathlib import Path

import pytest

from generator import catalog
from generator.files import assets
from tests.bicep.compilers import MODULES
from tests.bicep.variants import VARIANTS, main_bicep

NO_STABLE_VERSION = {"Microsoft.Insights/diagnosticSettings"}
"""Its stable one, of 2016, has neither names nor groups of categories.
Source: https://learn.microsoft.com/azure/templates/microsoft.insights/2016-09-01/diagnosticsettings"""

TAKES_NO_TAGS = {
    "Microsoft.Authorization/roleAssignments",
    "Microsoft.DBforMySQL/flexibleServers/configurations",
    "Microsoft.DBforMySQL/flexibleServers/databases",
    "Microsoft.Insights/diagnosticSettings",
    "Microsoft.Network/privateEndpoints/privateDnsZoneGroups",
    "Microsoft.Network/virtualNetworks/virtualNetworkPeerings",
    "Microsoft.Storage/storageAccounts/blobServices",
    "Microsoft.Storage/storageAccounts/blobServices/containers",
}
RESOURCE = re.compile(r"^resource (\w+) '([\w./]+)@([\w-]+)' (existing )?=(.*?)^[}\]]$", re.MULTILINE | re.DOTALL)
SOURCES = [*MODULES, assets.folder("bicep_templates") / "main.bicep.j2"]
every_module = pytest.mark.parametrize("module", MODULES, ids=lambda module: module.stem)


def resources(module: Path) -> list[tuple[str, str]]:
    """(type, body) of the resources that a module creates."""
    return [(kind, body) for _, kind, _, existing, body in RESOURCE.findall(module.read_text()) if not existing]


def module_text(name: str) -> str:
    return (assets.folder("bicep_templates") / "modules" / f"{name}.bicep").read_text()


def test_all_modules_are_found() -> None:
    assert len(MODULES) > 15


def test_versions_are_stable_where_there_is_one() -> None:
    rows = catalog.resource_types().values()
    assert {row.name for row in rows if "preview" in (row.api_version or "")} == NO_STABLE_VERSION


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_nothing_differs_between_two_deployments(source: Path) -> None:
    assert not re.search(r"\b(utcNow|newGuid)\b", source.read_text())


@every_module
def test_everything_is_described(module: Path) -> None:
    lines = module.read_text().splitlines()
    assert any(line.startswith("metadata description = '") for line in lines)
    decorators = ("@secure()", "@minLength(", "@maxLength(", "@allowed(")
    for number, line in enumerate(lines):
        if line.startswith(("param ", "output ", "type ")):
            above = number - 1
            while lines[above].startswith(decorators):
                above -= 1
            assert re.fullmatch(r"@description\('.{8,}[.]'\)", lines[above]), f"{module.name}:{number + 1}: {line}"


@every_module
def test_every_resource_carries_the_tags(module: Path) -> None:
    for kind, body in resources(module):
        assert ("tags: tags" in body) is (kind not in TAKES_NO_TAGS), kind


@every_module
def test_no_output_is_secret(module: Path) -> None:
    text = module.read_text()
    secrets = re.findall(r"@secure\(\)\n(?:@.*\n)*param (\w+)", text)
    for output in re.findall(r"^output .*$", text, re.MULTILINE):
        assert not re.search(r"password|secret|listKeys|sharedKey", output, re.IGNORECASE)
        assert not [secret for secret in secrets if re.search(rf"\b{secret}\b", output)]


def test_passwords_are_secure_parameters_without_a_default() -> None:
    for module in MODULES:
        text = module.read_text()
        for name in re.findall(r"^param (\w*(?:[pP]assword|secrets)\w*)", text, re.MULTILINE):
            declaration = re.search(rf"((?:^@.*\n)*)^param {name} \w+$", text, re.MULTILINE)
            assert declaration is not None, f"{module.name}: {name} has a default"
            assert "@secure()" in declaration[1], f"{module.name}: {name}"


def test_the_locker_is_closed() -> None:
    text = module_text("locker")
    for line in (
        "isHnsEnabled: false", "allowSharedKeyAccess: false", "allowBlobPublicAccess: false",
        "publicNetworkAccess: 'Disabled'", "minimumTlsVersion: 'TLS1_2'", "supportsHttpsTrafficOnly: true",
        "defaultAction: 'Deny'", "bypass: 'AzureServices'", "publicAccess: 'None'",
    ):  # fmt: skip
        assert line in text


def test_what_the_locker_loses_by_mistake_comes_back_for_a_week() -> None:
    """Blobs and containers, each for as long as policies of landing zones ask for."""
    kept = re.findall(r"(\w+RetentionPolicy): \{\s+enabled: true\s+days: (\d+)\s+\}", module_text("locker"))
    assert kept == [("deleteRetentionPolicy", "7"), ("containerDeleteRetentionPolicy", "7")]


def test_public_addresses_belong_to_bastion_egress_or_a_server_that_asks_for_one() -> None:
    holders = {module.stem for module in MODULES if "publicIPAddresses@" in module.read_text()}
    assert holders == {"bastion", "network", "server"}
    assert re.search(r"publicIPAddresses@\S+ = if \(publicAccess\)", module_text("server"))
    assert re.search(r"publicIPAddresses@\S+ = if \(natGateway\)", module_text("network"))
    for holder in holders:
        assert "sku: { name: 'Standard' }" in module_text(holder)


def test_every_subnet_has_its_own_security_group_and_asks_for_no_default_outbound_access() -> None:
    text = module_text("network")
    subnet = text[text.index("for (subnet, index) in subnets") :]
    assert "networkSecurityGroup: { id: securityGroups[index].id }" in subnet
    assert "defaultOutboundAccess: false" in subnet
    assert "'NetworkSecurityGroupEnabled'" in subnet


def test_role_assignments_are_repeatable_and_narrow() -> None:
    for module in MODULES:
        text = module.read_text()
        assignments = [body for kind, body in resources(module) if kind.endswith("/roleAssignments")]
        for body in assignments:
            assert re.search(r"name: guid\([\w:.()]+[iI]d, (\w+PrincipalId), \w+\)", body), module.name
            assert "principalType: 'ServicePrincipal'" in body
        if assignments and "targetScope = 'subscription'" in text:
            assert re.findall(r"'[0-9a-f]{8}-[0-9a-f-]{27}'", text) == [
                "'acdd72a7-3385-48ef-bd42-f606fba81ae7'"
            ]  # Reader


def test_the_server_takes_a_key_only_and_keeps_its_data_disk() -> None:
    text = module_text("server")
    assert "disablePasswordAuthentication: true" in text
    assert "adminPassword" not in text
    disks = text[text.index("var imageDisks") : text.index("resource address")]
    assert disks.count("deleteOption: 'Detach'") == 2
    assert "deleteOption: 'Delete'" not in disks


def test_the_extension_gets_only_settings_that_it_knows() -> None:
    text = module_text("server-bootstrap")
    assert "settings: { skipDos2Unix: true }" in text
    assert "forceUpdateTag: contentHash" in text
    protected = text[text.index("protectedSettings") :]
    assert re.findall(r"^ {6}(\w+):", protected, re.MULTILINE) == ["script"]
    assert "commandToExecute" not in text


def test_the_script_of_the_extension_hands_everything_over(tmp_path: Path) -> None:
    """The text that the module composes, run by the shell that the extension uses."""
    found = re.search(r"script: base64\('(.+)'\)", module_text("server-bootstrap"))
    assert found is not None
    facts, secrets = {"location": "here", "list": ["a", "b"]}, {"adminPassword": 'it\'s "$HOME" `x` \\ ${y} ü\n!'}
    start = """#!/bin/sh
set -eu
for given in "${CYCLEFORGE_FACTS}" "${CYCLEFORGE_SECRETS}"; do
    printf '%s' "${given}" | base64 -d
    echo
done
"""
    script = found[1].replace("\\n", "\n")
    for name, value in (("facts", facts), ("secrets", secrets)):
        encoded = base64.b64encode(json.dumps(value).encode()).decode()
        script = script.replace(f"${{base64(string({name}))}}", encoded)
    script = script.replace("${startScript}", start)
    path = tmp_path / "script.sh"
    path.write_text(script)
    path.chmod(0o500)
    done = subprocess.run(["/bin/sh", "-c", str(path)], capture_output=True, text=True, check=True)
    assert [json.loads(line) for line in done.stdout.splitlines()] == [facts, secrets]


def test_netapp_volumes_are_not_open_to_everybody() -> None:
    text = module_text("netapp-volume")
    assert "allowedClients: allowedClients" in text
    assert "0.0.0.0/0" not in text


PLURAL = re.compile(r"^ +(\w+)(?:Prefixes|Ranges): (.+)$", re.MULTILINE)


@every_module
def test_one_entry_is_in_the_singular_property_and_only_several_in_the_plural(module: Path) -> None:
    """Azure refuses `*` in a plural property: SecurityRuleInvalidPortRange.

    https://github.com/Azure/terraform-azurerm-network-security-group/issues/21
    """
    text = module.read_text()
    for body in [body for kind, body in resources(module) if kind.endswith("/networkSecurityGroups")]:
        for name, value in PLURAL.findall(body):
            if value.startswith("["):
                assert len(re.findall(r"'[\d.-]+'", value)) > 1, value
                continue
            one = re.fullmatch(r"length\(([\w.]+)\) == 1 \? null : \1", value)
            assert one is not None, value
            first = f"length({one[1]}) == 1 ? {one[1]}[0] : null"
            assert f"{name}Prefix: {first}" in body or f"{name}Range: {first}" in body
    assert module.stem not in ("network", "server") or PLURAL.search(text)


def test_every_module_is_in_use() -> None:
    used = {
        name for build in VARIANTS.values() for name in re.findall(r"'modules/([\w-]+)\.bicep'", main_bicep(build()))
    }
    written = {name for name in used if name.startswith("payload-")}
    assert used - written == {module.stem for module in MODULES}
