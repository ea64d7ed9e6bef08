"""What `security` asks for reaches every disk, VM and log; without it nothing is asked for that may be refused."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from tests.bed.bicep.deployment import resources_of
from tests.bed.bicep.values import Resource
from tests.bed.plans import plan_from
from tests.bicep.test_modules import module_text
from tests.bicep.variants import LOGS_ID, SET_ID, VARIANTS, rendered_files
from tests.cluster_template.rendered import read

VMS = "Microsoft.Compute/virtualMachines"
LOGGED = {
    "Microsoft.DBforMySQL/flexibleServers",
    "Microsoft.Network/bastionHosts",
    "Microsoft.Network/networkSecurityGroups",
    "Microsoft.Storage/storageAccounts/blobServices",
}


@cache
def resources(variant: str) -> list[Resource]:
    """What Azure receives."""
    return resources_of(rendered_files(VARIANTS[variant]()))


def of_type(variant: str, kind: str) -> list[Resource]:
    found = [each for each in resources(variant) if each.type == kind]
    assert found, kind
    return found


def profiles(variant: str) -> list[dict[str, Any] | None]:
    """The security profiles of server and jumpbox."""
    return [vm.properties.get("securityProfile") for vm in of_type(variant, VMS)]


def test_hosts_encrypt_on_request_and_otherwise_the_property_is_absent() -> None:
    assert [profile and profile.get("encryptionAtHost") for profile in profiles("hardened")] == [True, True]
    assert all("encryptionAtHost" not in (profile or {}) for profile in profiles("everything"))


def test_only_the_jumpbox_has_trusted_launch_among_the_vms() -> None:
    server, jumpbox = profiles("hardened")
    assert server is not None
    assert "securityType" not in server
    assert jumpbox is not None
    assert jumpbox["securityType"] == "TrustedLaunch"


@pytest.mark.parametrize(("variant", "key"), [("hardened", {"id": SET_ID}), ("everything", None)])
def test_the_key_is_that_of_every_disk(variant: str, key: object) -> None:
    storage = [vm.properties["storageProfile"] for vm in of_type(variant, VMS)]
    disks = [disk["managedDisk"] for each in storage for disk in (each["osDisk"], *each.get("dataDisks", ()))]
    assert len(disks) == 3
    assert [disk.get("diskEncryptionSet") for disk in disks] == [key] * 3


@pytest.mark.parametrize(("variant", "twice"), [("hardened", True), ("everything", None)])
def test_the_locker_encrypts_twice_on_request(variant: str, twice: object) -> None:
    (account,) = of_type(variant, "Microsoft.Storage/storageAccounts")
    assert (account.properties.get("encryption") or {}).get("requireInfrastructureEncryption") is twice


def test_the_workspace_gets_the_logs_of_everything_that_has_some() -> None:
    settings = of_type("hardened", "Microsoft.Insights/diagnosticSettings")
    assert {each.properties["workspaceId"] for each in settings} == {LOGS_ID}
    logged = {each.id for kind in LOGGED for each in of_type("hardened", kind)}
    assert sorted(each.id.partition("/providers/Microsoft.Insights/")[0] for each in settings) == sorted(logged)
    assert not [each for each in resources("everything") if each.type == settings[0].type]


def test_the_settings_have_the_name_that_the_plan_gives_them() -> None:
    name = VARIANTS["hardened"]().security.diagnostics_name
    assert {each.name for each in of_type("hardened", "Microsoft.Insights/diagnosticSettings")} == {name}
    assert f"name: '{name}'" in module_text("bastion")


def test_nodes_and_their_disks_get_the_same() -> None:
    rendered = read(VARIANTS["hardened"]())
    assert rendered.findings == ()
    for node in ("scheduler", "login", "htc"):
        names = ("EncryptionAtHost", "SecurityType", "EnableSecureBoot", "EnableVTPM")
        assert [rendered.attribute(node, name) for name in names] == [True, "TrustedLaunch", False, True]
    volumes = {node: rendered.volumes(node) for node in rendered.nodes if node != "nodearraybase"}
    disks = [disk for found in volumes.values() for disk in found.values()]
    assert len(disks) >= 3
    assert {disk["Azure.Encryption.DiskEncryptionSetId"] for disk in disks} == {SET_ID}
    assert {disk["Azure.Encryption.Type"] for disk in disks} == {"EncryptionAtRestWithCustomerKey"}


def test_nodes_ask_for_nothing_by_themselves() -> None:
    text = read(plan_from()).text
    assert not [word for word in ("EncryptionAtHost", "SecurityType", "Azure.Encryption") if word in text]


def test_secure_boot_is_on_where_it_is_asked_for() -> None:
    assert read(plan_from("security: {trusted_launch: true, secure_boot: true}")).attribute(
        "htc", "EnableSecureBoot"
    ) is True  # fmt: skip
