"""Rules of Checkov and PSRule for the types that we deploy, as small predicates over the resources that Azure receives.

Each is in our own words: which resources it looks at, and whether one is as the rule wants it. Conditions of Checkov
were compared with what version 3.3.30 says of evaluated deployments; those of PSRule are from the pages of its rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.bed.bicep.values import Resource

Met = Callable[[Resource], bool]
_VM = "Microsoft.Compute/virtualMachines"
_ACCOUNT = "Microsoft.Storage/storageAccounts"
_BLOBS = f"{_ACCOUNT}/blobServices"
_MYSQL = "Microsoft.DBforMySQL/flexibleServers"
_NSG = "Microsoft.Network/networkSecurityGroups"
_ADDRESS = "Microsoft.Network/publicIPAddresses"
_VNET = "Microsoft.Network/virtualNetworks"
_CHECKOV = "https://github.com/bridgecrewio/checkov/tree/main/checkov/arm/checks/resource"
_PSRULE = "https://azure.github.io/PSRule.Rules.Azure/en/rules/Azure."
_WEB = ("*", "Internet", "0.0.0.0/0")


@dataclass(frozen=True)
class Scanned:
    """One rule of a scanner."""

    id: str
    name: str
    type: str
    met: Met

    @property
    def source(self) -> str:
        """Where its condition is published."""
        return f"{_PSRULE}{self.name.removeprefix('Azure.')}" if self.id.startswith("AZR") else _CHECKOV


def unmet(rule: Scanned, resources: Sequence[Resource]) -> Iterator[Resource]:
    """The resources that are not as the rule wants them."""
    return (each for each in resources if each.type == rule.type and not rule.met(each))


def _get(value: Any, path: str) -> Any:
    for step in path.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _is(path: str, *values: object) -> Met:
    return lambda resource: _get(resource.properties, path) in values


def _is_linux(vm: Resource) -> bool:
    return _get(vm.properties, "osProfile.linuxConfiguration") is not None


def _linux_only(met: Met) -> Met:
    """A condition that says nothing of Windows."""
    return lambda vm: not _is_linux(vm) or met(vm)


def _windows_only(met: Met) -> Met:
    return lambda vm: _is_linux(vm) or met(vm)


def _rules(group: Resource, direction: str, access: str) -> Iterator[dict[str, Any]]:
    for rule in group.properties.get("securityRules", []):
        found = rule["properties"]
        if found["direction"] == direction and found["access"] == access:
            yield found


def _covers(rule: dict[str, Any], port: int) -> bool:
    ranges = rule.get("destinationPortRanges") or [rule.get("destinationPortRange")]
    for each in ranges:
        low, _, high = str(each).partition("-")
        if each == "*" or (low.isdigit() and int(low) <= port <= int(high or low)):
            return True
    return False


def _closed_to_the_web(*ports: int) -> Met:
    def met(group: Resource) -> bool:
        return not any(
            _covers(rule, port)
            and any(each in _WEB for each in (rule.get("sourceAddressPrefixes") or [rule.get("sourceAddressPrefix")]))
            for rule in _rules(group, "Inbound", "Allow")
            for port in ports
        )

    return met


def _denies_lateral_traversal(group: Resource) -> bool:
    return any(_covers(rule, 22) and _covers(rule, 3389) for rule in _rules(group, "Outbound", "Deny"))


def _all_disks(key: str, *values: object) -> Met:
    def met(vm: Resource) -> bool:
        storage = vm.properties["storageProfile"]
        disks = (storage["osDisk"], *(storage.get("dataDisks") or ()))
        return all(_get(disk, key) in values for disk in disks)

    return met


def _keeps(policy: str) -> Met:
    return lambda blobs: (
        bool(_get(blobs.properties, f"{policy}.enabled")) and _get(blobs.properties, f"{policy}.days") >= 7
    )


def _sku(*names: str) -> Met:
    return lambda resource: _get(resource.body, "sku.name") in names


def _subnets_have_groups(vnet: Resource) -> bool:
    return all(_get(each, "properties.networkSecurityGroup.id") for each in vnet.properties["subnets"])


def _dns(vnet: Resource) -> bool:
    servers = _get(vnet.properties, "dhcpOptions.dnsServers") or []
    return not servers or len(servers) >= 2


_ENCRYPTS = _is("securityProfile.encryptionAtHost", True)
_GEO = ("Standard_GRS", "Standard_RAGRS", "Standard_GZRS", "Standard_RAGZRS")

RULES = (
    Scanned("CKV_AZURE_1", "SSH keys instead of passwords", _VM,
            _linux_only(_is("osProfile.linuxConfiguration.disablePasswordAuthentication", True))),
    Scanned("CKV_AZURE_3", "HTTPS only", _ACCOUNT, _is("supportsHttpsTrafficOnly", True)),
    Scanned("CKV_AZURE_9", "no RDP from the internet", _NSG, _closed_to_the_web(3389)),
    Scanned("CKV_AZURE_10", "no SSH from the internet", _NSG, _closed_to_the_web(22)),
    Scanned("CKV_AZURE_34", "private container", f"{_BLOBS}/containers", _is("publicAccess", None, "None")),
    Scanned("CKV_AZURE_35", "account denies by default", _ACCOUNT, _is("networkAcls.defaultAction", "Deny")),
    Scanned("CKV_AZURE_36", "trusted services pass", _ACCOUNT, _is("networkAcls.bypass", "AzureServices")),
    Scanned("CKV_AZURE_44", "TLS 1.2", _ACCOUNT, _is("minimumTlsVersion", "TLS1_2", "TLS1_3")),
    Scanned("CKV_AZURE_50", "no VM extensions", _VM, _is("osProfile.allowExtensionOperations", False)),
    Scanned("CKV_AZURE_53", "no public access to MySQL", _MYSQL, _is("network.publicNetworkAccess", "Disabled")),
    Scanned("CKV_AZURE_59", "no public access to the account", _ACCOUNT, _is("publicNetworkAccess", "Disabled")),
    Scanned("CKV_AZURE_92", "managed disks", _VM,
            lambda vm: "managedDisk" in vm.properties["storageProfile"]["osDisk"]),
    Scanned("CKV_AZURE_94", "geo-redundant backup of MySQL", _MYSQL, _is("backup.geoRedundantBackup", "Enabled")),
    Scanned("CKV_AZURE_96", "infrastructure encryption of MySQL", _MYSQL,
            lambda server: server.properties.get("dataencryption") is not None),
    Scanned("CKV_AZURE_97", "encryption at host", _VM, _ENCRYPTS),
    Scanned("CKV_AZURE_151", "encryption at host of Windows", _VM, _ENCRYPTS),
    Scanned("CKV_AZURE_177", "updates of Windows", _VM,
            _windows_only(_is("osProfile.windowsConfiguration.enableAutomaticUpdates", True))),
    Scanned("CKV_AZURE_178", "SSH keys", _VM,
            lambda vm: bool(_get(vm.properties, "osProfile.linuxConfiguration.ssh.publicKeys"))),
    Scanned("CKV_AZURE_182", "two DNS servers", _VNET, _dns),
    Scanned("CKV_AZURE_206", "replicated account", _ACCOUNT, _sku(*_GEO)),
    Scanned("AZR-000137", "Azure.NSG.AnyInboundSource", _NSG,
            lambda group: all(rule.get("sourceAddressPrefix") != "*" for rule in _rules(group, "Inbound", "Allow"))),
    Scanned("AZR-000139", "Azure.NSG.LateralTraversal", _NSG, _denies_lateral_traversal),
    Scanned("AZR-000157", "Azure.PublicIP.AvailabilityZone", _ADDRESS, lambda address: bool(address.body.get("zones"))),
    Scanned("AZR-000158", "Azure.PublicIP.StandardSKU", _ADDRESS, _sku("Standard")),
    Scanned("AZR-000195", "Azure.Storage.UseReplication", _ACCOUNT, _sku(*_GEO, "Standard_ZRS")),
    Scanned("AZR-000196", "Azure.Storage.SecureTransfer", _ACCOUNT, _is("supportsHttpsTrafficOnly", True)),
    Scanned("AZR-000197", "Azure.Storage.SoftDelete", _BLOBS, _keeps("deleteRetentionPolicy")),
    Scanned("AZR-000198", "Azure.Storage.BlobPublicAccess", _ACCOUNT, _is("allowBlobPublicAccess", False)),
    Scanned("AZR-000200", "Azure.Storage.MinTLS", _ACCOUNT, _is("minimumTlsVersion", "TLS1_2", "TLS1_3")),
    Scanned("AZR-000202", "Azure.Storage.Firewall", _ACCOUNT, _is("networkAcls.defaultAction", "Deny")),
    Scanned("AZR-000238", "Azure.VM.UseManagedDisks", _VM,
            lambda vm: "managedDisk" in vm.properties["storageProfile"]["osDisk"]),
    Scanned("AZR-000239", "Azure.VM.Standalone", _VM,
            _all_disks("managedDisk.storageAccountType", "Premium_LRS", "Premium_ZRS")),
    Scanned("AZR-000242", "Azure.VM.DiskCaching", _VM, _all_disks("caching", "ReadOnly", "ReadWrite")),
    Scanned("AZR-000243", "Azure.VM.UseHybridUseBenefit", _VM, _windows_only(_is("licenseType", "Windows_Client"))),
    Scanned("AZR-000244", "Azure.VM.AcceleratedNetworking", "Microsoft.Network/networkInterfaces",
            _is("enableAcceleratedNetworking", True)),
    Scanned("AZR-000245", "Azure.VM.PublicKey", _VM,
            _linux_only(_is("osProfile.linuxConfiguration.disablePasswordAuthentication", True))),
    Scanned("AZR-000247", "Azure.VM.Updates", _VM,
            _windows_only(_is("osProfile.windowsConfiguration.enableAutomaticUpdates", True))),
    Scanned("AZR-000263", "Azure.VNET.UseNSGs", _VNET, _subnets_have_groups),
    Scanned("AZR-000264", "Azure.VNET.SingleDNS", _VNET, _dns),
    Scanned("AZR-000289", "Azure.Storage.ContainerSoftDelete", _BLOBS, _keeps("containerDeleteRetentionPolicy")),
    Scanned("AZR-000323", "Azure.MySQL.GeoRedundantBackup", _MYSQL, _is("backup.geoRedundantBackup", "Enabled")),
)  # fmt: skip
