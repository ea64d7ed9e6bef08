"""What Azure's own validation demands of the resources of a deployment, one function for each demand, with its source.

A demand yields one text for each thing that Azure would refuse. `refusals` applies all of them; names are compared with
`name_limits`, and a type that is not in that table is refused, so that nothing goes unchecked.
"""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from ipaddress import IPv4Network, ip_network
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec

from generator import catalog
from generator.catalog.azure_facts import ResourceName
from tests.bed.bicep.values import Late, Resource

Check = Callable[[Sequence[Resource]], Iterator[tuple[Resource, str]]]
_NETWORK = "Microsoft.Network"
_TAG = re.compile(r"\*|[A-Z][A-Za-z]+(\.[A-Za-z0-9]+)?")
"""Everything, or a service tag, for example `Storage.WestEurope`."""


@dataclass(frozen=True)
class Demand:
    """The code with which Azure refuses, where it is published, and the check."""

    code: str
    source: str
    check: Check


@dataclass(frozen=True)
class Refusal:
    """What Azure would refuse."""

    code: str
    symbol: str
    text: str


DEMANDS: list[Demand] = []


def demand(code: str, source: str) -> Callable[[Check], Check]:
    """Enter a check in the table."""

    def entered(check: Check) -> Check:
        DEMANDS.append(Demand(code, source, check))
        return check

    return entered


def refusals(resources: Sequence[Resource]) -> list[Refusal]:
    """Everything that Azure would refuse."""
    return [Refusal(each.code, resource.symbol, text) for each in DEMANDS for resource, text in each.check(resources)]


def of_type(resources: Sequence[Resource], kind: str) -> list[Resource]:
    """The resources of one type."""
    return [each for each in resources if each.type == kind]


# ---- names


class NameLimit(msgspec.Struct):
    min: int
    max: int
    pattern: str


class NameLimits(msgspec.Struct):
    names: dict[str, NameLimit]


@cache
def name_limits() -> Mapping[str, NameLimit | ResourceName]:
    """Of the types whose names are made from a definition, as the catalogue has them, and of all others."""
    text = Path(__file__).with_name("resource_names.json").read_bytes()
    others = msgspec.json.decode(text, type=NameLimits).names
    assert not others.keys() & catalog.resource_names().names.keys()
    return {**catalog.resource_names().names, **others}


@demand(
    "InvalidResourceName", "https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules"
)
def names_fit(resources: Sequence[Resource]) -> Iterator[tuple[Resource, str]]:
    """Length and characters, after evaluation; subnets and rules are names within their network or group."""
    for resource in resources:
        yield from ((resource, text) for text in _name_faults(resource.type, resource.name))
        for key, kind in (
            ("subnets", "virtualNetworks/subnets"),
            ("securityRules", "networkSecurityGroups/securityRules"),
        ):
            for item in resource.properties.get(key) or []:
                yield from ((resource, text) for text in _name_faults(f"{_NETWORK}/{kind}", item["name"]))


def _name_faults(kind: str, name: str) -> Iterator[str]:
    rule = name_limits().get(kind)
    if rule is None:
        yield f"{kind} is not in the table of names"
        return
    if not rule.min <= len(name) <= rule.max:
        yield f"{kind} {name!r} has {len(name)} characters; {rule.min} to {rule.max} are allowed"
    if not re.fullmatch(rule.pattern, name):
        yield f"{kind} {name!r} has characters that are not allowed there"


@demand(
    "ReservedResourceName",
    "https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/error-reserved-resource-name",
)
def names_are_not_reserved(resources: Sequence[Resource]) -> Iterator[tuple[Resource, str]]:
    """Names of resources that have an endpoint of their own."""
    with_endpoint = ("Microsoft.Storage/storageAccounts", "Microsoft.DBforMySQL/flexibleServers")
    for resource in resources:
        label = (resource.properties.get("dnsSettings") or {}).get("domainNameLabel")
        for name in (resource.name if resource.type in with_endpoint else None, label):
            lower = (name or "").lower()
            if "microsoft" in lower or "windows" in lower or lower.startswith("login"):
                yield resource, f"{name!r} has a reserved word"


@demand("DuplicateResources", "https://learn.microsoft.com/azure/azure-resource-manager/templates/syntax")
def nothing_is_there_twice(resources: Sequence[Resource]) -> Iterator[tuple[Resource, str]]:
    """Two resources of one id; names are compared without case."""
    seen: set[str] = set()
    for resource in resources:
        if resource.id.lower() in seen:
            yield resource, f"{resource.id} is there twice"
        seen.add(resource.id.lower())


@demand(
    "InvalidResourceReference",
    "https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/error-not-found",
)
def references_lead_somewhere(resources: Sequence[Resource]) -> Iterator[tuple[Resource, str]]:
    """An id in the deployment's own new group names something that the deployment creates."""
    groups = {each.id.lower() for each in of_type(resources, "Microsoft.Resources/resourceGroups")}
    known = {each.id.lower() for each in resources} | {
        f"{vnet.id}/subnets/{subnet['name']}".lower()
        for vnet in of_type(resources, f"{_NETWORK}/virtualNetworks")
        for subnet in vnet.properties["subnets"]
    }
    for resource in resources:
        if resource.is_deployment:
            continue
        for text in _texts(resource.body):
            own = any(text.lower().startswith(f"{group}/providers/") for group in groups)
            if own and not isinstance(text, Late) and "\n" not in text and text.lower() not in known:
                yield resource, f"{text} is not created"


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


# ---- tags


@demand("InvalidTags", "https://learn.microsoft.com/azure/azure-resource-manager/management/tag-resources#limitations")
def tags_fit(resources: Sequence[Resource]) -> Iterator[tuple[Resource, str]]:
    """50 tags, and 15 for private DNS zones and their links (Azure/azure-rest-api-specs#13600)."""
    for resource in resources:
        tags = resource.tags
        is_zone = resource.type.startswith(f"{_NETWORK}/privateDnsZones")
        longest = 128 if resource.type == "Microsoft.Storage/storageAccounts" else 512
        if len(tags) > (15 if is_zone else 50):
            yield resource, f"{len(tags)} tags"
        if len({name.lower() for name in tags}) < len(tags):
            yield resource, "two tags differ only in case"
        for name, value in tags.items():
            if not 1 <= len(name) <= longest or re.search(r"[<>%&\\?/]", name):
                yield resource, f"the tag name {name!r}"
            if name.lower().startswith(("azure", "microsoft", "windows")):
                yield resource, f"the tag name {name!r} begins with a reserved word"
            if len(value) > 256:
                yield resource, f"the value of the tag {name!r} has {len(value)} characters"


# ---- security rules


def _rules(resources: Sequence[Resource]) -> Iterator[tuple[Resource, str, dict[str, Any]]]:
    for group in of_type(resources, f"{_NETWORK}/networkSecurityGroups"):
        for rule in group.properties["securityRules"]:
            yield group, rule["name"], rule["properties"]


def _both_forms(rule: dict[str, Any], singular: str, plural: str) -> tuple[str | None, list[str] | None]:
    return rule.get(singular), rule.get(plural)


@demand(
    "SecurityRuleInvalidPortRange",
    "Azure/terraform-azurerm-network-security-group#21 and #44; "
    "https://learn.microsoft.com/azure/virtual-network/network-security-groups-overview#security-rules",
)
def port_ranges_are_valid(resources: Sequence[Resource]) -> Iterator[tuple[Resource, str]]:
    """`*` only in the singular property; the plural one takes ports and ranges."""
    for group, name, rule in _rules(resources):
        for side in ("source", "destination"):
            one, several = _both_forms(rule, f"{side}PortRange", f"{side}PortRanges")
            if (one is None) == (not several):
                yield group, f"{name}: {side} ports are given in {'both forms' if one else 'no form'}"
            for text in ([] if one in (None, "*") else [one]) + list(several or []):
                if not _is_port_range(text):
                    yield group, f"{name}: {text!r} among {side}PortRanges" if several else f"{name}: {text!r}"


def _is_port_range(text: str) -> bool:
    found = re.fullmatch(r"(\d+)(?:-(\d+))?", text)
    return found is not None and int(found[1]) <= int(found[2] or found[1]) <= 65535


@demand(
    "SecurityRuleInvalidAddressPrefix",
    "https://learn.microsoft.com/rest/api/virtualnetwork/network-security-groups/create-or-update#securityrule",
)
def rule_addresses_are_valid(resources: Sequence[Resource]) -> Iterator[tuple[Resource, str]]:
    """`*` and a service tag only in the singular property; prefixes without host bits."""
    for group, name, rule in _rules(resources):
        for side in ("source", "destination"):
            one, several = _both_forms(rule, f"{side}AddressPrefix", f"{side}AddressPrefixes")
            if (one is None) == (not several):
                yield group, f"{name}: {side} addresses are given in {'both forms' if one else 'no form'}"
            for text in several or []:
                if _prefix(text) is None:
                    yield group, f"{name}: {text!r} among {side}AddressPrefixes"
            if (
                one is not None
                and _prefix(one) is None
                and not re.fullmatch(r"\*|[A-Z][A-Za-z]+(\.[A-Za-z0-9]+)?", one)
            ):
                yield group, f"{name}: {side} {one!r}"


@demand("OverlappingSubnetsNotPermittedInSecurityRule", "kubernetes-sigs/cloud-provider-azure#6775")
def rule_addresses_do_not_overlap(resources: Sequence[Resource]) -> Iterator[tuple[Resource, str]]:
    """Within the list of one rule."""
    for group, name, rule in _rules(resources):
        for key in ("sourceAddressPrefixes", "destinationAddressPrefixes"):
            prefixes = [prefix for text in rule.get(key) or [] if (prefix := _prefix(text)) is not None]
            for one, other in combinations(prefixes, 2):
                if one.overlaps(other):
                    yield group, f"{name}: {one} and {other} overlap"


@demand("SecurityRuleConflict", "https://learn.microsoft.com/azure/virtual-network/network-security-groups-overview")
def rules_have_places_of_their_own(resources: Sequence[Resource]) -> Iterator[tuple[Resource, str]]:
    """Priorities from 100 to 4096, each once per direction; names once per group."""
    for group in of_type(resources, f"{_NETWORK}/networkSecurityGroups"):
        rules = group.properties["securityRules"]
        places = Counter((rule["properties"]["direction"], rule["properties"]["priority"]) for rule in rules)
        yield from ((group, f"{place} is there {count} times") for place, count in places.items() if count > 1)
        yield from ((group, f"priority {place}") for _, place in places if not 100 <= place <= 4096)
        names = Counter(rule["name"].lower() for rule in rules)
        yield from ((group, f"{name!r} is there twice") for name, count in names.items() if count > 1)


def _prefix(text: str) -> IPv4Network | None:
    """An IPv4 prefix or address without host bits; None for anything else."""
    try:
        found = ip_network(text)
    except ValueError:
        return None
    return found if isinstance(found, IPv4Network) else None


# ---- networks


@demand("InvalidCIDRNotation", "https://learn.microsoft.com/azure/virtual-network/virtual-networks-faq")
def network_prefixes_are_valid(resources: Sequence[Resource]) -> Iterator[tuple[Resource, str]]:
    """Host bits, and subnets smaller than /29."""
    for vnet in of_type(resources, f"{_NETWORK}/virtualNetworks"):
        subnets = {each["name"]: each["properties"]["addressPrefix"] for each in vnet.properties["subnets"]}
        for text in [*vnet.properties["addressSpace"]["addressPrefixes"], *subnets.values()]:
            prefix = _prefix(text)
            if prefix is None or prefix.prefixlen > 29:
                yield vnet, f"{text!r}"
        bastion = subnets.get("AzureBastionSubnet")
        if bastion is not None and ip_network(bastion).prefixlen > 26:
            yield vnet, f"AzureBastionSubnet {bastion} is smaller than /26"


@demand("NetcfgSubnetRangeOutsideVnet", "https://learn.microsoft.com/azure/virtual-network/manage-subnet-delegation")
def subnets_are_inside(resources: Sequence[Resource]) -> Iterator[tuple[Resource, str]]:
    """Inside the address space of the network."""
    for vnet in of_type(resources, f"{_NETWORK}/virtualNetworks"):
        spaces = [ip_network(text, strict=False) for text in vnet.properties["addressSpace"]["addressPrefixes"]]
        for subnet in vnet.properties["subnets"]:
            prefix = ip_network(subnet["properties"]["addressPrefix"], strict=False)
            if not any(prefix.subnet_of(space) for space in spaces):  # type: ignore[arg-type]
                yield vnet, f"{subnet['name']} {prefix}"


@demand("NetcfgSubnetRangesOverlap", "https://learn.microsoft.com/azure/virtual-network/virtual-networks-faq")
def subnets_do_not_overlap(resources: Sequence[Resource]) -> Iterator[tuple[Resource, str]]:
    """Subnets of one network; names are compared without case."""
    for vnet in of_type(resources, f"{_NETWORK}/virtualNetworks"):
        for one, other in combinations(vnet.properties["subnets"], 2):
            if ip_network(one["properties"]["addressPrefix"], strict=False).overlaps(
                ip_network(other["properties"]["addressPrefix"], strict=False)
            ):
                yield vnet, f"{one['name']} and {other['name']}"
            if one["name"].lower() == other["name"].lower():
                yield vnet, f"two subnets {one['name']}"


@demand("Conflict", "https://learn.microsoft.com/azure/dns/private-dns-virtual-network-links#restrictions")
def networks_link_to_one_zone_of_a_name(resources: Sequence[Resource]) -> Iterator[tuple[Resource, str]]:
    """A network links to one zone of a name only."""
    seen: set[tuple[str, str]] = set()
    for link in of_type(resources, f"{_NETWORK}/privateDnsZones/virtualNetworkLinks"):
        zone = link.id.lower().split("/privatednszones/")[1].split("/")[0]
        pair = (zone, str(link.properties["virtualNetwork"]["id"]).lower())
        if pair in seen:
            yield link, f"a second link to a zone {zone}"
        seen.add(pair)


# ---- machines


@demand("InvalidParameter", "https://learn.microsoft.com/rest/api/compute/virtual-machines/create-or-update#osprofile")
def machines_are_valid(resources: Sequence[Resource]) -> Iterator[tuple[Resource, str]]:
    """Computer names, user names, custom data of at most 64 KiB; no property of Trusted Launch without it."""
    for vm in of_type(resources, "Microsoft.Compute/virtualMachines"):
        profile = vm.properties["osProfile"]
        longest = 15 if "windowsConfiguration" in profile else 64
        if not 1 <= len(profile["computerName"]) <= longest:
            yield vm, f"computer name {profile['computerName']!r}"
        if not 1 <= len(profile["adminUsername"]) <= (20 if longest == 15 else 64):
            yield vm, f"user name {profile['adminUsername']!r}"
        if len(base64.b64decode(profile.get("customData") or "")) > 65536:
            yield vm, "custom data"
        security = vm.properties.get("securityProfile") or {}
        if "uefiSettings" in security and security.get("securityType") not in ("TrustedLaunch", "ConfidentialVM"):
            yield vm, "uefiSettings without Trusted Launch"
        luns = [disk["lun"] for disk in vm.properties["storageProfile"].get("dataDisks") or []]
        if len(set(luns)) < len(luns):
            yield vm, "two disks have one lun"
