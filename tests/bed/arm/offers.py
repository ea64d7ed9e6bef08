"""What a region offers to the subscription: VM sizes, quota, images and terms, file systems, databases; names.

The healthy state offers everything that the catalogue knows in `REGIONS`. Forms: the example or the model in the source
of the row in requests_offers.json; what an example does not show has its own source below.
"""

from __future__ import annotations

import re
from typing import Any

from generator import catalog

from .answers import Parts, answer
from .exchange import Answer, Asked, RefusedError
from .state import Caller, State

REGIONS = ("eastus", "southcentralus")
ZONES = ["1", "2", "3"]
PLENTY = 100_000
IMAGES = {
    "azurecyclecloud:azure-cyclecloud:cyclecloud8-gen2": True,
    "microsoft-dsvm:ubuntu-hpc:2204": False,
    "microsoft-dsvm:ubuntu-hpc:2404": False,
    "almalinux:almalinux-hpc:9-hpc-gen2": True,
}
"""Image without its version → whether it has a plan."""
NODE_IMAGE = "22.04.2026050101"
SKUS, LUSTRE_SKUS = "/providers/microsoft.compute/skus", "/providers/microsoft.storagecache/skus"


def documents() -> dict[str, Any]:
    """What is only read, by path below the subscription."""
    found: dict[str, Any] = {SKUS: [], LUSTRE_SKUS: []}
    for region in REGIONS:
        found[SKUS] += [_size(name, region) for name in catalog.vm_size_names()]
        found[LUSTRE_SKUS] += [_lustre(name, region) for name in catalog.file_systems().amlfs.tiers]
        netapp = [{"name": _name("totalTibsPerSubscription"), "properties": {"currentValue": 0, "limit": 100}}]
        zones = [{"availabilityZone": zone, "isAvailable": True} for zone in ZONES]
        found |= {
            f"/providers/microsoft.compute/locations/{region}/usages": _usages(),
            f"/providers/microsoft.storagecache/locations/{region}/usages": [_usage("AmlFilesystem", 0, 4)],
            f"/providers/microsoft.network/locations/{region}/usages": [
                _usage("PublicIPAddresses", 0, 1000),
                _usage("StandardSkuPublicIpAddresses", 0, 1000),
            ],
            f"/providers/microsoft.storage/locations/{region}/usages": [_usage("StorageAccounts", 0, 250)],
            f"/providers/microsoft.netapp/locations/{region}/usages": netapp,
            f"/providers/microsoft.netapp/locations/{region}/regioninfo": {"availabilityZoneMappings": zones},
            f"/providers/microsoft.dbformysql/locations/{region}/capabilitysets/default": _mysql(),
            **_images(region),
        }
    return found


def _name(value: str) -> dict[str, str]:
    return {"value": value, "localizedValue": value}


def _usage(name: str, used: int, limit: int) -> dict[str, Any]:
    return {"name": _name(name), "currentValue": used, "limit": limit, "unit": "Count"}


def _usages() -> list[dict[str, Any]]:
    families = {catalog.vm_size(name).quota_family for name in catalog.vm_size_names()}
    names = ["cores", "lowPriorityCores", *sorted(family for family in families if family)]
    return [_usage(name, 0, PLENTY) for name in names]


def _size(name: str, region: str) -> dict[str, Any]:
    size = catalog.vm_size(name)
    capabilities = {
        "vCPUs": size.vcpus,
        "EncryptionAtHostSupported": size.encryption_at_host,
        "LowPriorityCapable": True,
        "HyperVGenerations": "V1,V2",
    }
    return {
        "resourceType": "virtualMachines", "name": name, "tier": "Standard", "family": size.quota_family or "unknown",
        "locations": [region],
        "locationInfo": [{"location": region, "zones": list(ZONES), "zoneDetails": None}],
        "capabilities": [
            {"name": key, "value": str(value)} for key, value in capabilities.items() if value is not None
        ],
        "restrictions": [],
    }  # fmt: skip


def _lustre(name: str, region: str) -> dict[str, Any]:
    return {
        "resourceType": "amlFilesystems", "name": name, "locations": [region],
        "locationInfo": [{"location": region, "zones": list(ZONES)}], "capabilities": [], "restrictions": [],
    }  # fmt: skip


def _mysql() -> dict[str, Any]:
    tiers: dict[str, list[str]] = {}
    for name, facts in catalog.mysql().compute_sizes.sizes.items():
        tiers.setdefault(facts.tier, []).append(name)
    editions = [
        {"name": tier, "supportedSkus": [{"name": name, "supportedZones": list(ZONES)} for name in names]}
        for tier, names in tiers.items()
    ]
    versions = [{"name": version} for version in ("5.7", "8.0.21", "8.4")]
    properties = {"supportedFlexibleServerEditions": editions, "supportedServerVersions": versions}
    return {"name": "default", "properties": properties}


def _images(region: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    images = f"/providers/microsoft.compute/locations/{region}"
    for urn, has_plan in IMAGES.items():
        publisher, offer, sku = urn.split(":")
        if publisher == "azurecyclecloud":
            versions = sorted({row.image_version for row in catalog.releases() if row.image_version})
        else:
            versions = ["22.04.2025010101", NODE_IMAGE]
        listed = f"{images}/publishers/{publisher}/artifacttypes/vmimage/offers/{offer}/skus/{sku}/versions"
        found[listed] = [{"name": version, "location": region} for version in versions]
        plan = {"publisher": publisher, "product": offer, "name": sku} if has_plan else None
        for version in versions:
            properties = {
                "plan": plan,
                "hyperVGeneration": "V2",
                "architecture": "x64",
                "imageDeprecationStatus": {"imageState": "Active"},
            }
            found[f"{listed}/{version}"] = {"name": version, "location": region, "properties": properties}
        if has_plan:
            found[terms_path(publisher, offer, sku)] = {
                "type": "Microsoft.MarketplaceOrdering/offertypes",
                "properties": {
                    "publisher": publisher, "product": offer, "plan": sku, "signature": "S", "accepted": True,
                    "licenseTextLink": "https://example.org/terms", "retrieveDatetime": "2026-01-01T00:00:00Z",
                },
            }  # fmt: skip
    return found


def terms_path(publisher: str, offer: str, plan: str) -> str:
    """Where the terms of a plan are among the documents."""
    start = "/providers/microsoft.marketplaceordering/offertypes/virtualmachine"
    return f"{start}/publishers/{publisher}/offers/{offer}/plans/{plan}/agreements/current".lower()


@answer("sizes")
def sizes(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    """The filter knows the location only: https://learn.microsoft.com/rest/api/compute/resource-skus/list"""
    found = re.fullmatch(r"location eq '([^']+)'", asked.query.get("$filter", ""))
    if found is None and "$filter" in asked.query:
        raise RefusedError(400, "InvalidFilterInQueryString", "The filter is not known.")
    listed: Any = state.documents[SKUS]
    return [each for each in listed if found is None or found[1].lower() in map(str.lower, each["locations"])]


@answer("bare list")
def bare_list(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    """The versions of an image are an array without `value`, and those of an image that is not there an error.

    Source: examples/virtualMachineImageExamples/VirtualMachineImages_List_MaximumSet_Gen.json beside the row's source
    """
    key = re.sub(r"^/subscriptions/[^/]+", "", asked.path.lower())
    if key not in state.documents:
        raise RefusedError(404, "NotFound", "Artifact: VMImage was not found.")
    return Answer(200, state.documents[key])


@answer("accept terms")
def accept_terms(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    """Only the document that was read before, with `accepted`, is taken: the signature is that of the text."""
    path = terms_path(parts["publisher"], parts["offer"], parts["plan"])
    known: Any = state.documents.get(path)
    if known is None or asked.body["properties"]["signature"] != known["properties"]["signature"]:
        raise RefusedError(400, "BadRequest", "The signature is not that of the current terms.")
    state.documents[path] = asked.body
    return asked.body


def _availability(state: State, asked: Asked, kind: str) -> dict[str, Any]:
    name = asked.body["name"].lower()
    taken = any(each["name"].lower() == name for each in state.of_type(kind))
    others: Any = state.documents.get(f"names of {kind}", ())
    if taken or name in others:
        message = f"The name {asked.body['name']} is already taken."
        return {"nameAvailable": False, "reason": "AlreadyExists", "message": message}
    return {"nameAvailable": True}


@answer("name of an account")
def account_name(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    """Names of others are in `documents["names of Microsoft.Storage/storageAccounts"]`."""
    return _availability(state, asked, "Microsoft.Storage/storageAccounts")


@answer("name of a database server")
def server_name(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    """Names of others are in `documents["names of Microsoft.DBforMySQL/flexibleServers"]`."""
    return _availability(state, asked, "Microsoft.DBforMySQL/flexibleServers")


@answer("lustre size")
def lustre_size(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    """24 in the example; the table of the documentation gives a /26 to about this size."""
    return {"filesystemSubnetSize": state.documents.get("size of lustre", 24)}


@answer("lustre subnet")
def lustre_subnet(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    """200 without a body, or the refusal of the example, which has no `error`."""
    refused = state.documents.get("subnet of lustre")
    if refused is None:
        return Answer(200)
    return Answer(400, {"filesystemSubnet": {"status": "Invalid", "message": refused}})


@answer("netapp path")
def netapp_path(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    """Names of others are in `documents["exports"]`."""
    others: Any = state.documents.get("exports", ())
    if asked.body["name"] in others:
        return {"isAvailable": False, "reason": "AlreadyExists", "message": "The file path is in use."}
    return {"isAvailable": True}
