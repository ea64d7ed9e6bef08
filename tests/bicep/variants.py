"""Definitions whose deployments together use every module, and the folder that each becomes."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path, PurePosixPath

from msgspec.structs import replace

from generator.files.file import File, Files
from generator.plan.deployment import Plan
from generator.plan.file_systems.netapp import NetAppVolume
from generator.plan.file_systems.registry import modules
from generator.render import bicep, cluster_template
from tests.bed.plans import plan_from
from tests.plan.definitions import with_every_kind

PAYLOAD = ("bootstrap/payload/payload-00.bin", "bootstrap/payload/payload-01.bin")
HASH = "0123456789abcdef" * 4
DIGEST = "fedcba9876543210" * 4
SUBSCRIPTION = "/subscriptions/11111111-2222-3333-4444-555555555555"
NETWORK_GROUP = f"{SUBSCRIPTION}/resourceGroups/network-rg/providers/Microsoft.Network"
HUB_ID = f"{NETWORK_GROUP}/virtualNetworks/hub"
VNET_ID = f"{NETWORK_GROUP}/virtualNetworks/shared-vnet"
ZONE_ID = f"{NETWORK_GROUP}/privateDnsZones/privatelink.blob.core.windows.net"
FIRST_GROUP = f"{SUBSCRIPTION}/resourceGroups/first-rg/providers"
METRICS_GROUP = f"{SUBSCRIPTION}/resourceGroups/metrics-rg/providers"
RULE_ID = f"{METRICS_GROUP}/Microsoft.Insights/dataCollectionRules/cluster"
INGESTION = (
    "https://metrics-abcd.southcentralus-1.metrics.ingest.monitor.azure.com"
    f"/dataCollectionRules/dcr-{'0' * 32}/streams/Microsoft-PrometheusMetrics/api/v1/write?api-version=2023-04-24"
)
IMAGE_ID = f"{SUBSCRIPTION}/resourceGroups/images/providers/Microsoft.Compute/galleries/g/images/cc/versions/1.0.0"
ASKED_HUB = """
admin: {ssh_public_key: "${CYCLECLOUD_SSH_PUBLIC_KEY}"}
network:
  access: hub
  hub: {vnet_id: "${HUB_VNET_ID}", use_remote_gateway: true, address_spaces: [10.0.0.0/16, 172.16.0.0/24]}
"""
KNOWN_HUB = f"""
network:
  access: hub
  hub: {{vnet_id: {HUB_ID}, use_remote_gateway: false}}
  blob_dns_zone: {ZONE_ID}
"""
PUBLIC = """
network: {access: public, allowed_sources: [198.51.100.7/32, 203.0.113.0/24], nat_gateway: false}
"""
EXISTING_NETWORK = f"""
network:
  address_space: null
  existing: {{vnet_id: {VNET_ID}, subnets: {{server: servers, compute: nodes}}}}
  blob_dns_zone: {ZONE_ID}
"""
EVERYTHING = f"""
network: {{address_space: 10.50.0.0/20}}
server: {{jumpbox: {{vm_size: Standard_D2as_v5}}}}
storage:
  home: {{type: anf, size_tib: 4}}
  mounts:
    - {{path: /data, type: amlfs, tier: 125, size_tib: 16}}
    - {{path: /2024, type: anf, size_tib: 2, service_level: Flexible, throughput_mibps: 256, zone: "2"}}
slurm: {{accounting: {{type: new}}}}
monitoring:
  workspace_id: {METRICS_GROUP}/Microsoft.Monitor/accounts/metrics
  ingestion_endpoint: {INGESTION}
  data_collection_rule_id: {RULE_ID}
"""
OWN_IMAGE = f"""
server: {{image_id: {IMAGE_ID}, os_disk_gb: 128, data_disk_gb: 256}}
storage: {{locker: {{account_name: minimallocker, redundancy: Standard_ZRS}}}}
"""
EXISTING_GROUP = "azure: {resource_group: {existing: research-rg}}"
INFRASTRUCTURE = """
slurm: null
jobs: null
storage: {home: {type: anf, size_tib: 4}, mounts: [{path: /data, type: amlfs, tier: 250, size_tib: 128}]}
network: {address_space: 10.50.0.0/20}
"""
EXISTING_SERVER = f"""
admin: null
server:
  existing:
    vm_id: {FIRST_GROUP}/Microsoft.Compute/virtualMachines/first-server
    release: 8.9.1
    locker_account_id: {FIRST_GROUP}/Microsoft.Storage/storageAccounts/firstlocker0001
network:
  address_space: null
  existing:
    vnet_id: {FIRST_GROUP}/Microsoft.Network/virtualNetworks/first-vnet
    subnets: {{compute: compute}}
"""
EXISTING_SERVER_BEHIND_A_HUB = f"""
admin: null
server:
  existing:
    vm_id: {FIRST_GROUP}/Microsoft.Compute/virtualMachines/first-server
    release: 8.9.1
    locker_account_id: {FIRST_GROUP}/Microsoft.Storage/storageAccounts/firstlocker0001
    principal_id: 11111111-1111-1111-1111-111111111111
    assign_locker_role: false
network:
  address_space: 10.50.0.0/20
  access: hub
  hub: {{vnet_id: {FIRST_GROUP}/Microsoft.Network/virtualNetworks/first-vnet, use_remote_gateway: false}}
storage:
  home: {{type: anf, size_tib: 4}}
  mounts: [{{path: /data, type: amlfs, tier: 250, size_tib: 128}}]
slurm: {{accounting: {{type: new}}}}
"""
MYSQL_ZONE_ID = f"{NETWORK_GROUP}/privateDnsZones/slurm.mysql.database.azure.com"
CENTRAL_ZONES = f"""
network:
  address_space: 10.50.0.0/20
  access: hub
  hub: {{vnet_id: {HUB_ID}}}
  blob_dns_zone: {ZONE_ID}
  mysql_dns_zone: {MYSQL_ZONE_ID}
server: {{jumpbox: {{vm_size: Standard_D2as_v5}}}}
storage:
  home: {{type: anf, size_tib: 4}}
  mounts: [{{path: /data, type: amlfs, tier: 125, size_tib: 16}}]
slurm: {{accounting: {{type: new}}}}
"""
BEHIND_A_FIREWALL = f"""
network:
  address_space: 10.50.0.0/20
  access: hub
  hub: {{vnet_id: {HUB_ID}}}
  blob_dns_zone: {ZONE_ID}
  mysql_dns_zone: {MYSQL_ZONE_ID}
  link_dns_zones: false
  dns_servers: [10.0.2.4, 10.0.2.5]
  next_hop: 10.0.1.4
  proxy: {{url: "http://10.0.1.5:3128", no_proxy: [.example.com]}}
silence: [{{rule: E0370, reason: the owner of the zone has linked it}}]
storage:
  home: {{type: anf, size_tib: 4}}
  mounts: [{{path: /data, type: amlfs, tier: 125, size_tib: 16}}]
slurm: {{accounting: {{type: new}}}}
"""
ROUTE_TABLE_ID = f"{NETWORK_GROUP}/routeTables/spokes"
SET_ID = f"{SUBSCRIPTION}/resourceGroups/security/providers/Microsoft.Compute/diskEncryptionSets/disks"
LOGS_ID = f"{SUBSCRIPTION}/resourceGroups/security/providers/Microsoft.OperationalInsights/workspaces/logs"
HARDENED = f"""
network: {{address_space: 10.50.0.0/20}}
server: {{jumpbox: {{vm_size: Standard_D2as_v5}}}}
slurm: {{accounting: {{type: new}}}}
security:
  encryption_at_host: true
  disk_encryption_set_id: {SET_ID}
  infrastructure_encryption: true
  trusted_launch: true
  diagnostics_workspace_id: {LOGS_ID}
"""
MORE_SUBNETS = """
network:
  subnets: {compute: 10.50.0.0/24}
  compute_subnets: [{name: gpu, prefix: 10.50.1.0/26}]
slurm: {partitions: [{name: htc, vm_size: Standard_D64ds_v5, max_nodes: 2, subnet: gpu}]}
"""
MORE_EXISTING_SUBNETS = """
network: {existing: {compute_subnets: [{name: gpu, prefix: 10.20.8.0/24}]}}
slurm: {partitions: [{name: htc, vm_size: Standard_D64ds_v5, max_nodes: 2, subnet: gpu}]}
"""
CONTAINERS = f"""
network: {{address_space: 10.50.0.0/20}}
storage:
  mounts:
    - {{path: /sets, type: blob, storage_account: labdata0001, container: c4-sets, create: true}}
    - {{path: /checkpoints, type: blob, storage_account: labdata0001, container: checkpoints, create: true}}
    - {{path: /open, type: blob, storage_account: labopen0001, container: open, create: true, private_endpoint: false}}
security: {{infrastructure_encryption: true, diagnostics_workspace_id: {LOGS_ID}}}
"""
EXISTING_SERVER_WITH_CONTAINERS = f"""
network: {{existing: {{subnets: {{endpoints: endpoints}}}}, blob_dns_zone: {ZONE_ID}}}
storage: {{mounts: [{{path: /sets, type: blob, storage_account: labdata0001, container: c4-sets, create: true}}]}}
"""
minimal = plan_from
containers = partial(plan_from, CONTAINERS)
existing_server_with_containers = partial(plan_from, EXISTING_SERVER, EXISTING_SERVER_WITH_CONTAINERS)
infrastructure = partial(plan_from, INFRASTRUCTURE)
existing_server = partial(plan_from, EXISTING_SERVER)
existing_server_behind_a_hub = partial(plan_from, EXISTING_SERVER_BEHIND_A_HUB)
existing_server_alone = partial(plan_from, EXISTING_SERVER, "{slurm: null, jobs: null}")
existing_group = partial(plan_from, EXISTING_GROUP)
asked_hub = partial(plan_from, ASKED_HUB)
known_hub = partial(plan_from, KNOWN_HUB)
public = partial(plan_from, PUBLIC)
central_zones = partial(plan_from, CENTRAL_ZONES)
behind_a_firewall = partial(plan_from, BEHIND_A_FIREWALL)
shared_routes = partial(plan_from, f"network: {{route_table: {ROUTE_TABLE_ID}}}")
foreign_zones = partial(
    plan_from,
    CENTRAL_ZONES,
    "{network: {link_dns_zones: false}, silence: [{rule: E0370, reason: the owner of the zone has linked it}]}",
)
hardened = partial(plan_from, HARDENED)
existing_network = partial(plan_from, EXISTING_NETWORK)
more_subnets = partial(plan_from, MORE_SUBNETS)
more_existing_subnets = partial(plan_from, EXISTING_NETWORK, MORE_EXISTING_SUBNETS)


def everything() -> Plan:
    """With a NetApp volume that is smaller than its pool, which a definition cannot say."""
    plan = plan_from(EVERYTHING)
    lustre, volume = plan.mounts
    assert isinstance(volume, NetAppVolume)
    changed = replace(plan, mounts=(lustre, replace(volume, size_gib=1500)))
    return replace(changed, modules=modules(changed.all_mounts))


def own_image() -> Plan:
    """With awkward tags: YAML would read a variable."""
    return replace(plan_from(OWN_IMAGE), tags=(("cost center", "it's ${not} code\\"), ("owner", "ops")))


VARIANTS: dict[str, Callable[[], Plan]] = {
    "minimal": minimal,
    "asked_hub": asked_hub,
    "known_hub": known_hub,
    "public": public,
    "central_zones": central_zones,
    "foreign_zones": foreign_zones,
    "behind_a_firewall": behind_a_firewall,
    "shared_routes": shared_routes,
    "existing_network": existing_network,
    "more_subnets": more_subnets,
    "more_existing_subnets": more_existing_subnets,
    "existing_group": existing_group,
    "everything": everything,
    "own_image": own_image,
    "hardened": hardened,
    "with_every_kind": with_every_kind,
    "containers": containers,
    "infrastructure": infrastructure,
    "existing_server": existing_server,
    "existing_server_behind_a_hub": existing_server_behind_a_hub,
    "existing_server_alone": existing_server_alone,
    "existing_server_with_containers": existing_server_with_containers,
}


def _rendered(plan: Plan, payload: tuple[str, ...]) -> Files:
    return bicep.render(plan, payload, HASH, DIGEST, cluster_template.late_parameters(plan))


def main_bicep(plan: Plan) -> str:
    files = _rendered(plan, PAYLOAD)
    return next(file.content.decode() for path, file in files.items() if path.name == "main.bicep")


def rendered_files(plan: Plan, payload: tuple[str, ...] = PAYLOAD) -> Files:
    """The rendered files, and stand-ins for what other renderers put beside them."""
    files = _rendered(plan, payload) | cluster_template.render(plan)
    if plan.server is None:
        return files
    boot = {"bootstrap/cloud-init.yaml": b"#cloud-config\n", "bootstrap/start.sh": b"#!/bin/sh\nexit 0\n"}
    stand_ins = dict.fromkeys(payload, b"\x1f\x8b" * 32) | boot
    return files | {PurePosixPath(path): File(content) for path, content in stand_ins.items()}


def write_folder(plan: Plan, folder: Path, payload: tuple[str, ...] = PAYLOAD) -> Path:
    """The same in a folder; returns main.bicep."""
    for path, file in rendered_files(plan, payload).items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content)
    return folder / "main.bicep"


def block(text: str, start: str) -> str:
    """A top-level declaration, from the line that begins with `start` to its closing brace."""
    found = re.search(rf"^{re.escape(start)}.*?^\}}$", text, re.MULTILINE | re.DOTALL)
    assert found, f"no {start!r}"
    return found[0]


WITH_DEFAULTS = {"bootstrapRun": " = '1'", "serverKey": " = ''", "serverImageVersion": " = ''"}
"""The parameters with a default that every deployment from a marketplace image has."""


def parameters(text: str) -> dict[str, str]:
    """Name → what stands behind the type, empty where the deployment must ask."""
    return dict(re.findall(r"^param (\w+) [\w\[\]]+(.*)$", text, re.MULTILINE))


def parameters_block(text: str) -> str:
    """Everything before the first variable."""
    return text[: text.index("\nvar ")]
