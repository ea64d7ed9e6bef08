"""What networks, zones, routes and ways in put into main.bicep."""

from __future__ import annotations

import re

from msgspec.structs import replace

from generator.plan.network import HubPlan
from tests.bicep import variants
from tests.bicep.test_modules import module_text
from tests.bicep.variants import (
    VARIANTS,
    WITH_DEFAULTS,
    block,
    main_bicep,
    parameters,
    parameters_block,
)


def test_bastion_prints_the_tunnel() -> None:
    text = main_bicep(variants.minimal())
    assert "--resource-port 443 --port 8443'" in text
    assert "output portalUrl string = 'https://localhost:8443'" in text
    assert "--username ccadmin --ssh-key ~/.ssh/" in text


def test_an_asked_hub_is_split_at_deployment_and_comes_first() -> None:
    text = main_bicep(variants.asked_hub())
    assert parameters(text) == {"adminPassword": "", "sshPublicKey": "", "hubVnetId": "", **WITH_DEFAULTS}
    hub, spoke = block(text, "module hubPeering "), block(text, "module peering ")
    assert "scope: resourceGroup(split(hubVnetId, '/')[2], split(hubVnetId, '/')[4])" in hub
    assert "localVnetName: split(hubVnetId, '/')[8]" in hub
    assert "allowGatewayTransit: true" in hub
    assert "useRemoteGateways: false" in hub
    assert "remoteVnetId: hubVnetId" in spoke
    assert "useRemoteGateways: true" in spoke
    assert "dependsOn: [hubPeering]" in spoke
    assert "sshPublicKey: empty(serverKey) ? sshPublicKey : serverKey" in text
    assert "var sshPublicKey" not in text


def test_declared_prefixes_of_the_hub_reach_server_and_nodes() -> None:
    network = block(main_bicep(variants.asked_hub()), "module network ")
    rules = re.findall(r"name: 'Allow(\w+)', .*sources: \['10\.0\.0\.0/16', '172\.16\.0\.0/24'\]", network)
    assert rules == ["UsersSshInbound", "UsersPortalInbound", "UsersLockerInbound", "UsersNodesInbound"]


def test_a_hub_without_prefixes_or_gateway() -> None:
    text = main_bicep(variants.known_hub())
    rules = re.findall(r"name: 'Allow(\w+)', .*sources: \['VirtualNetwork'\]", block(text, "module network "))
    assert rules == ["UsersSshInbound", "UsersPortalInbound", "UsersLockerInbound", "UsersNodesInbound"]
    assert "resourceGroup('11111111-2222-3333-4444-555555555555', 'network-rg')" in block(text, "module hubPeering ")
    assert "useRemoteGateways: true" not in text
    assert "allowGatewayTransit: true" not in text


def test_an_existing_zone_is_linked_to_a_new_network_only() -> None:
    linked, left_alone = main_bicep(variants.known_hub()), main_bicep(variants.existing_network())
    assert "modules/private-dns-link.bicep" in linked
    assert "blobZoneLink" in block(linked, "module bootstrap ")
    assert "modules/private-dns-link.bicep" not in left_alone
    for text in (linked, left_alone):
        assert "dnsZoneId: resourceId('11111111-2222-3333-4444-555555555555', 'network-rg', " in text


def test_only_zones_of_endpoints_let_other_names_through() -> None:
    """Azure takes it for privatelink zones alone: https://learn.microsoft.com/azure/dns/private-dns-fallback."""
    for module in ("private-dns-zone", "private-dns-link"):
        text = module_text(module)
        assert "resolutionPolicy: fallsBack ? 'NxDomainRedirect' : null" in text
        assert "virtualNetworkLinks@2024-06-01'" in text
    found: dict[str, str] = {}
    for name in ("minimal", "central_zones", "everything"):
        text = main_bicep(VARIANTS[name]())
        found |= dict(re.findall(r"module (\w+Zone\w*) '(?:.|\n)*?fallsBack: (\w+)", text))
    assert found == {"blobZone": "true", "blobZoneLink": "true", "databaseZone": "false", "databaseZoneLink": "false"}


def test_the_database_registers_in_a_zone_that_exists() -> None:
    linked, foreign = (main_bicep(VARIANTS[name]()) for name in ("central_zones", "foreign_zones"))
    zone = block(linked, "module databaseZoneLink ")
    assert "scope: resourceGroup('11111111-2222-3333-4444-555555555555', 'network-rg')" in zone
    assert "zoneName: 'slurm.mysql.database.azure.com'" in zone
    # Azure refuses the server while its zone is not linked to its network.
    assert "dnsZoneId: databaseZoneLink.outputs.id" in block(linked, "module database ")
    assert f"dnsZoneId: '{variants.MYSQL_ZONE_ID}'" in block(foreign, "module database ")
    assert "modules/private-dns-zone.bicep" not in linked
    assert "modules/private-dns" not in foreign


def test_all_traffic_leaves_through_the_firewall() -> None:
    """Every subnet but the Bastion's is routed, no NAT gateway is made, and both peerings pass what is forwarded."""
    text = main_bicep(VARIANTS["behind_a_firewall"]())
    network = block(text, "module network ")
    assert "nextHop: '10.0.1.4'" in network
    assert "natGateway: false" in network
    assert "usesNat: true" not in network
    assert network.count("isRouted: true") == network.count("role: ") == 6
    assert re.search(r"dnsServers: \[\s+'10\.0\.2\.4'\s+'10\.0\.2\.5'\s+\]", network)
    for name in ("hubPeering", "peering"):
        assert "allowForwardedTraffic: true" in block(text, f"module {name} ")


def test_someone_elses_route_table_is_attached_but_not_to_the_bastion() -> None:
    network = block(main_bicep(VARIANTS["shared_routes"]()), "module network ")
    assert f"routeTableId: '{variants.ROUTE_TABLE_ID}'" in network
    assert "nextHop" not in network
    routed = dict(re.findall(r"role: '(\w+)'\n(?:.*\n)*?\s+usesNat: \w+(\n\s+isRouted: true)?", network))
    assert {role: bool(found) for role, found in routed.items()} == {
        "server": True, "endpoints": True, "compute": True, "bastion": False
    }  # fmt: skip


def test_networks_without_a_firewall_are_as_they_were() -> None:
    for name in ("minimal", "asked_hub", "known_hub", "public"):
        text = main_bicep(VARIANTS[name]())
        assert not re.search("nextHop|routeTableId|isRouted|dnsServers", text)
        assert "allowForwardedTraffic: true" not in text


def test_routes_of_a_gateway_do_not_lead_around_the_firewall() -> None:
    module = module_text("network")
    assert "disableBgpRoutePropagation: true" in module
    assert "routeTable: subnet.?isRouted == true ? { id: routeTableId ?? routes.id } : null" in module
    assert "dhcpOptions: empty(dnsServers) ? null : { dnsServers: dnsServers }" in module
    assert "allowForwardedTraffic: allowForwardedTraffic" in module_text("peering")


def test_without_a_zone_the_endpoint_gets_none() -> None:
    plan = variants.minimal()
    text = main_bicep(replace(plan, network=replace(plan.network, blob_dns_zone="none")))
    assert "dnsZoneId" not in text
    assert "private-dns" not in text


def test_public_access_names_its_sources_once() -> None:
    text = main_bicep(variants.public())
    assert "'203.0.113.0/24'" in parameters_block(text)
    assert text.count("203.0.113.0/24") == 1
    assert text.count("sources: userSources") == 2
    assert "userPorts: [\n      '22'\n      '443'\n    ]" in text
    assert "publicAccess: true" in text
    assert "natGateway: false" in text
    assert "usesNat: true" not in text
    assert "ssh ccadmin@${server.outputs.publicIp}" in text


def test_an_existing_network_gets_nothing_but_roles_for_the_server() -> None:
    text = main_bicep(variants.existing_network())
    assert "modules/network.bicep" not in text
    assert "modules/bastion.bicep" not in text
    roles = block(text, "module networkRoles ")
    assert "scope: resourceGroup('11111111-2222-3333-4444-555555555555', 'network-rg')" in roles
    assert "computeSubnetName: 'nodes'" in roles
    assert "networkRoles" in block(text, "module bootstrap ")
    assert "subnetId: 'network-rg/shared-vnet/nodes'" in text


def test_an_existing_network_is_never_peered() -> None:
    plan = variants.existing_network()
    hub = HubPlan(variants.HUB_ID, use_remote_gateway=True, address_spaces=(), reachable=())
    text = main_bicep(replace(plan, network=replace(plan.network, access="hub", hub=hub)))
    assert "peering" not in text
    assert "https://${server.outputs.privateIp}" in text
