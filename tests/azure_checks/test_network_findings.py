"""Existing networks, hubs, DNS zones: each finding once provoked and once gone."""

from __future__ import annotations

from typing import Any

import pytest

from generator.azure.checks import dns_zones as dns
from generator.azure.checks.hub import HubOverlap, NoHubGateway, PeeringDisconnected, SpokeOverlap, _OfHub
from generator.azure.checks.networks import (
    NetworkMisplaced,
    NoWayOut,
    SubnetDelegated,
    SubnetMissing,
    TooFewAddresses,
)
from generator.azure.resource_ids import network_id
from generator.plan.deployment import Plan
from generator.rules.base import quoted
from tests.azure_checks.answers import Answer, usage
from tests.bed.plans import plan_from

ME = "00000000-0000-0000-0000-000000000001"
VNET = f"/subscriptions/{ME}/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/corp"
HUB = VNET.replace("corp", "hub")
PLAN = f"""
network:
  address_space: null
  existing:
    vnet_id: {VNET}
    subnets: {{server: server, compute: compute, netapp: files}}
    compute_subnets: [{{name: gpu, prefix: 10.20.0.0/24}}]
storage: {{home: {{type: anf, size_tib: 4}}}}
slurm: {{partitions: [{{name: htc, vm_size: Standard_D64ds_v5, max_nodes: 20, subnet: gpu}}]}}
"""


def subnet(name: str, *services: str, used_by: tuple[str, ...] = (), **properties: Any) -> Answer:
    """Source: network/resource-manager/Microsoft.Network/stable/2024-05-01/virtualNetwork.json (Subnet)"""
    group = (
        f"/subscriptions/{ME}/resourceGroups/{{}}/providers/Microsoft.Network/networkInterfaces/n/ipConfigurations/i"
    )
    return {
        "id": f"{VNET}/subnets/{name}",
        "name": name,
        "properties": {
            "delegations": [{"properties": {"serviceName": each}} for each in services] or None,
            "ipConfigurations": [{"id": group.format(each)} for each in used_by],
            **properties,
        },
    }


def vnet(*subnets: Answer, **more: Any) -> Answer:
    healthy = (subnet("Server"), subnet("compute"), subnet("gpu"), subnet("files", "Microsoft.NetApp/Volumes"))
    changed = {each["name"].casefold(): each for each in subnets}
    listed = [changed.get(each["name"].casefold(), each) for each in healthy]
    return {"id": VNET, "name": "corp", "location": "South Central US", "properties": {"subnets": listed}} | more


def space(name: str, used: int, limit: int) -> Answer:
    """Source: .../stable/2024-05-01/examples/VirtualNetworkListUsage.json"""
    return usage("SubnetSpace", used, limit) | {"id": f"{VNET.upper()}/subnets/{name}"}


def test_a_healthy_network_gives_no_finding() -> None:
    plan, network = plan_from(PLAN), vnet()
    assert [subnet.role for subnet in plan.network.subnets] == [
        "server",
        "endpoints",
        "netapp",
        "compute",
        "compute-gpu",
    ]
    assert list(NetworkMisplaced().misplaced(plan, ME.upper(), network)) == []
    for check in (SubnetMissing(), SubnetDelegated(), NoWayOut()):
        assert list(check.judged(plan, network)) == []


def test_a_network_elsewhere() -> None:
    plan = plan_from(PLAN)
    (one,) = NetworkMisplaced().misplaced(plan, "another", vnet())
    assert one.path == ("network", "existing", "vnet_id")
    assert ME in str(one.hint)
    (one,) = NetworkMisplaced().misplaced(plan, ME, vnet(location="eastus"))
    assert "is in eastus" in one.message
    (one,) = NetworkMisplaced().misplaced(plan, ME, None)
    assert "there is no network" in one.message


def test_a_subnet_that_is_not_there() -> None:
    without = vnet()
    without["properties"]["subnets"].pop(2)
    (one,) = SubnetMissing().judged(plan_from(PLAN), without)
    assert one.path == ("network", "existing", "compute_subnets", 0)
    assert "it has Server, compute, files" in one.message


def test_delegations() -> None:
    plan = plan_from(PLAN)
    (one,) = SubnetDelegated().judged(plan, vnet(subnet("files")))
    assert "must be delegated to Microsoft.Netapp/volumes" in one.message
    assert "--delegations" in str(one.hint)
    (one,) = SubnetDelegated().judged(plan, vnet(subnet("gpu", "Microsoft.Web/serverFarms")))
    assert "must not be delegated" in one.message


def test_free_addresses_beside_what_is_ours() -> None:
    plan = plan_from(PLAN)
    # The endpoint is in the server's subnet.
    spaces = [space("server", 0, 2), space("compute", 9, 11), space("gpu", 5, 25)]
    assert list(TooFewAddresses().counted(plan, vnet(), spaces)) == []
    spaces = [space("server", 1, 2), space("compute", 10, 11), space("gpu", 6, 25)]
    found = list(TooFewAddresses().counted(plan, vnet(), spaces))
    assert [each.path[-1] for each in found] == ["server", "compute", 0]
    assert found[2].message == "the subnet 'gpu' has 19 free addresses; the deployment may need 20 more"
    ours = vnet(subnet("gpu", used_by=("MINIMAL-RG", "other")), subnet("server", used_by=("minimal-rg",)))
    assert [each.path[-1] for each in TooFewAddresses().counted(plan, ours, spaces)] == ["compute"]
    unknown = [each.message for each in TooFewAddresses().counted(plan, vnet(), spaces[:2]) if not each.is_known]
    assert [text.rpartition(" ")[2] for text in unknown] == ["gpu"]


def test_a_private_subnet_needs_a_way_out() -> None:
    plan = plan_from(PLAN)
    private: Answer = {"defaultOutboundAccess": False}
    (one,) = NoWayOut().judged(plan, vnet(subnet("gpu", **private)))
    assert "no way out" in one.message
    for way in ("natGateway", "routeTable"):
        mended = vnet(subnet("gpu", **private | {way: {"id": "x"}}))
        assert list(NoWayOut().judged(plan, mended)) == []


# ------------------------------------------------------------ the hub

HUB_PLAN = f"""
network: {{access: hub, hub: {{vnet_id: {HUB}, use_remote_gateway: true, address_spaces: [10.0.0.0/16]}}}}
"""
OURS = f"/subscriptions/{ME}/resourceGroups/minimal-rg/providers/Microsoft.Network/virtualNetworks/minimal-vnet"


def hub_vnet(
    spaces: tuple[str, ...] = ("10.0.0.0/16",), peerings: tuple[Answer, ...] = (), gateway: bool = True
) -> Answer:
    gateways = subnet("GatewaySubnet", used_by=("net",) if gateway else ())
    properties = {
        "addressSpace": {"addressPrefixes": list(spaces)},
        "subnets": [gateways],
        "virtualNetworkPeerings": list(peerings),
    }
    return {"id": HUB, "name": "hub", "properties": properties}


def peering(remote: str, prefix: str, state: str = "Connected") -> Answer:
    properties = {
        "remoteVirtualNetwork": {"id": remote},
        "remoteAddressSpace": {"addressPrefixes": [prefix]},
        "peeringState": state,
    }
    return {"id": f"{HUB}/virtualNetworkPeerings/p", "name": "p", "properties": properties}


def judged(check: _OfHub, network: Answer, plan: Plan | None = None) -> list[str]:
    return [each.message for each in check.judged(plan or plan_from(HUB_PLAN), network)]


def test_a_healthy_hub_gives_no_finding() -> None:
    network = hub_vnet(peerings=(peering(OURS.upper(), "10.50.0.0/22"), peering(VNET, "10.60.0.0/22")))
    for check in (NoHubGateway(), HubOverlap(), SpokeOverlap(), PeeringDisconnected()):
        assert judged(check, network) == []


def test_what_is_wrong_with_a_hub() -> None:
    assert [each.message for each in NoHubGateway().missing(HUB)] == [f"there is no network {quoted(HUB)}"]
    assert "no VPN or ExpressRoute gateway" in judged(NoHubGateway(), hub_vnet(gateway=False))[0]
    without = plan_from(HUB_PLAN.replace("use_remote_gateway: true", "use_remote_gateway: false"))
    assert judged(NoHubGateway(), hub_vnet(gateway=False), without) == []
    assert (
        "overlaps 10.48.0.0/14 of the hub 'hub'" in judged(HubOverlap(), hub_vnet(("10.0.0.0/16", "10.48.0.0/14")))[0]
    )
    assert "of 'corp'" in judged(SpokeOverlap(), hub_vnet(peerings=(peering(VNET, "10.50.2.0/24"),)))[0]
    stale = hub_vnet(peerings=(peering(OURS, "10.50.0.0/22", "Disconnected"),))
    assert "is disconnected" in judged(PeeringDisconnected(), stale)[0]


# ------------------------------------------------------------ DNS zones

NAME = "privatelink.blob.core.windows.net"
ZONE = f"/subscriptions/{ME}/resourceGroups/dns/providers/Microsoft.Network/privateDnsZones/{NAME}"


def link(network: str, name: str = "someone") -> Answer:
    """Source: privatedns/resource-manager/Microsoft.Network/stable/2024-06-01/examples/VirtualNetworkLinkList.json"""
    return {"name": name, "properties": {"virtualNetwork": {"id": network}}}


def zone(zone_id: str = ZONE) -> Answer:
    return {"id": zone_id, "name": zone_id.rsplit("/", 1)[-1]}


def test_a_new_zone_beside_another_one_that_the_network_is_linked_to() -> None:
    plan = plan_from(PLAN)
    (wanted,) = dns.zones(plan)
    assert (wanted.name, wanted.zone_id) == ("privatelink.blob.core.windows.net", None)
    own = zone(ZONE.replace("/dns/", "/minimal-rg/"))
    assert dns.rivals(plan, wanted, [zone(), own, zone(ZONE.replace("blob", "file"))]) == [zone()]
    network = network_id(plan, ME)
    assert list(dns.LinkedElsewhere().judged(wanted, network, zone(), [link(HUB)])) == []
    (one,) = dns.LinkedElsewhere().judged(wanted, network, zone(), [link(VNET.upper())])
    assert one.path == ("network", "blob_dns_zone")
    assert ZONE in str(one.hint)


def test_an_existing_zone() -> None:
    existing = plan_from(PLAN, f"network: {{blob_dns_zone: {ZONE}}}")
    (wanted,) = dns.zones(existing)
    assert (wanted.zone_id, wanted.links) == (ZONE, False)
    assert dns.rivals(existing, wanted, [zone()]) == []
    assert [each.path for each in dns.ZoneNotLinked().judged(existing, wanted, VNET, [link(HUB)])] == [
        ("network", "blob_dns_zone")
    ]
    assert list(dns.ZoneNotLinked().judged(existing, wanted, VNET, [link(VNET)])) == []
    assert not dns.has_own_servers(existing, vnet())
    assert dns.has_own_servers(existing, {"properties": {"dhcpOptions": {"dnsServers": ["10.0.0.4"]}}})
    new = plan_from(f"network: {{blob_dns_zone: {ZONE}}}")
    (wanted,) = dns.zones(new)
    assert wanted.links
    assert network_id(new, ME) == OURS
    assert list(dns.ZoneNotLinked().judged(new, wanted, OURS, [])) == []
    assert list(dns.ZoneUnusable().judged(new, wanted, OURS, [link(OURS, "minimal-abc"), link(VNET)])) == []
    assert len(list(dns.ZoneUnusable().judged(new, wanted, OURS, [link(OURS)]))) == 1


@pytest.mark.parametrize("choice", ["none"])
def test_no_zone_no_question(choice: str) -> None:
    assert dns.zones(plan_from(f"network: {{blob_dns_zone: {choice}}}")) == ()
