"""Deployments of every kind of access, and the hosts that meet in each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from ipaddress import IPv4Address, IPv4Network

from generator.plan.deployment import Plan
from generator.render import readme
from tests.bed.bicep.deployment import resources_of
from tests.bed.bicep.values import Resource
from tests.bed.plans import plan_from
from tests.bed.security_groups import PROBE, SERVICES, Host, SecurityGroups
from tests.bicep.variants import rendered_files

ID = "/subscriptions/11111111-2222-3333-4444-555555555555/resourceGroups"
HUB = f"{ID}/hub/providers/Microsoft.Network/virtualNetworks/hub"
ZONE = f"{ID}/dns/providers/Microsoft.Network/privateDnsZones/minimal.private.mysql.database.azure.com"
BASE = """
network: {address_space: 10.50.0.0/20}
storage:
  home: {type: anf, size_tib: 4}
  mounts: [{path: /data, type: amlfs, tier: 250, size_tib: 8}]
slurm: {accounting: {type: new}}
"""
JUMPBOX = "server: {jumpbox: {}}"
BASTION = "network: {access: bastion}"
ANY_HUB = f"network: {{access: hub, hub: {{vnet_id: {HUB}}}}}"
KNOWN_HUB = f"network: {{access: hub, hub: {{vnet_id: {HUB}, address_spaces: [10.0.0.0/16, 192.168.4.0/24]}}}}"
PUBLIC = "network: {access: public, allowed_sources: [203.0.113.0/24, 198.51.100.7/32]}"
EXISTING = f"""
network:
  address_space: null
  existing:
    vnet_id: {ID}/shared/providers/Microsoft.Network/virtualNetworks/shared
    subnets: {{server: servers, compute: nodes, netapp: volumes, lustre: lustre, database: mysql}}
"""
EXISTING_HUB = "network: {access: hub}"
EXISTING_PRIVATE = "network: {access: private}"
SERVER_EXISTS = f"""
admin: null
server:
  existing:
    vm_id: {ID}/first/providers/Microsoft.Compute/virtualMachines/first-server
    release: 8.9.1
    locker_account_id: {ID}/first/providers/Microsoft.Storage/storageAccounts/firstlocker0001
"""
EXISTING_OF_SERVER = EXISTING.replace("server: servers, ", "")
NO_CLUSTER = "{slurm: null, jobs: null}"
SERVICES_ELSEWHERE = """
network: {hub: {reachable: [10.0.8.0/24, 10.0.8.0/28]}}
storage:
  home: {type: existing, address: 10.0.4.5, export_path: /home}
  mounts:
    - {path: /named, type: existing, address: files.example.org, export_path: /named}
    - {path: /lustre, type: existing, protocol: lustre, address: 10.0.4.6, export_path: /lustre}
    - {path: /models, type: blob, storage_account: datasets0001, container: models}
slurm: {accounting: {type: existing, host: 10.0.4.7, user: slurm}}
"""
DNS_SERVERS = f"""
network: {{dns_servers: [10.0.2.4, 10.0.2.5], blob_dns_zone: none, mysql_dns_zone: {ZONE}}}
"""
SUBNETS = """
network: {subnets: {compute: 10.50.0.0/22}, compute_subnets: [{name: gpu, prefix: 10.50.4.0/24}]}
slurm:
  partitions:
    - {name: htc, vm_size: Standard_D64ds_v5, max_nodes: 2, default: true}
    - {name: big, vm_size: Standard_D64ds_v5, max_nodes: 9, subnet: gpu}
"""
NEW = {
    "bastion": (BASE, BASTION),
    "hub": (BASE, KNOWN_HUB),
    "any-hub": (BASE, ANY_HUB),
    "public": (BASE, PUBLIC),
}
WITH_NETWORK = {
    name + suffix: (*parts, *more)
    for name, parts in NEW.items()
    for suffix, more in (("", ()), ("-jumpbox", (JUMPBOX,)))
}
IN_EXISTING = {
    f"existing-{name}{suffix}": (BASE, access, EXISTING, *more)
    for name, access in {"bastion": BASTION, "hub": EXISTING_HUB, "private": EXISTING_PRIVATE, "public": PUBLIC}.items()
    for suffix, more in (("", ()), ("-jumpbox", (JUMPBOX,)))
}
DEFINITIONS: dict[str, tuple[str, ...]] = {
    **WITH_NETWORK,
    **IN_EXISTING,
    "infrastructure": (BASE, BASTION, NO_CLUSTER),
    "services-elsewhere": ("network: {address_space: 10.50.0.0/20}", KNOWN_HUB, SERVICES_ELSEWHERE),
    "proxy": (BASE, KNOWN_HUB, "network: {proxy: 'http://10.0.1.5:3128'}"),
    "named-proxy": (BASE, KNOWN_HUB, "network: {proxy: 'http://proxy.example.org:3128'}"),
    "existing-proxy": (BASE, BASTION, EXISTING, "network: {proxy: 'http://10.0.1.5:3128'}"),
    "subnets": (BASE, KNOWN_HUB, SUBNETS),
    "dns-servers": (BASE, KNOWN_HUB, DNS_SERVERS),
    "server-exists": (BASE, KNOWN_HUB, SERVER_EXISTS),
    "server-exists-in-network": (BASE, BASTION, EXISTING_OF_SERVER, SERVER_EXISTS),
    "server-exists-behind-hub": (BASE, EXISTING_HUB, EXISTING_OF_SERVER, SERVER_EXISTS),
}
CONNECTED = {"bastion": (), "hub": ("10.0.0.0/8", "192.168.4.0/24"), "public": ()}
"""What peerings and their gateways add to the network, by kind of access; more than the hub's definition says."""


@dataclass(frozen=True)
class World:
    plan: Plan

    @cached_property
    def resources(self) -> list[Resource]:
        return resources_of(rendered_files(self.plan))

    def groups(self, *connected: str) -> SecurityGroups:
        """Its security groups; `connected` is reached by peerings, routes and gateways."""
        return SecurityGroups(self.resources, connected or CONNECTED[self.plan.network.access])

    @cached_property
    def page(self) -> str:
        pages = readme.render(self.plan)
        return next(file.content.decode() for path, file in pages.items() if path.name == "README.md")

    @cached_property
    def hosts(self) -> dict[str, Host]:
        """One host of each subnet by its role, and those outside."""
        inside = {
            subnet.role: Host(IPv4Network(subnet.prefix)[9])
            for subnet in self.plan.network.subnets
            if subnet.prefix is not None
        }
        cards = self.groups().cards
        if cards:
            inside["server"] = Host(inside["server"].address, cards[0])
        outside = {
            "users": "10.0.5.5" if self.plan.access.peers_with_hub else "203.0.113.9",
            "stranger": "10.99.0.9",
            "internet": "192.0.2.99",
            "probe": str(PROBE),
        } | {tag: str(address) for tag, address in SERVICES.items()}
        return inside | {name: Host(IPv4Address(text)) for name, text in outside.items()}


@cache
def world(name: str) -> World:
    """The deployment of this name; built and evaluated once."""
    return World(plan_from(*DEFINITIONS[name]))
