"""Existing networks, hubs and DNS zones, asked of the stand-in: provoked once, mended once."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from generator.plan.deployment import Plan
from tests.bed.arm import Arm
from tests.bed.arm.state import OWNER, State
from tests.bed.bicep.place import SUBSCRIPTION
from tests.bed.plans import plan_from
from tests.preflight.asked import found_by, report_of

Change = Callable[[State], object]
NETWORK = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/net/providers/Microsoft.Network"
VNET, HUB, SPOKE = (f"{NETWORK}/virtualNetworks/{name}" for name in ("corp", "hub", "spoke"))
BLOB = "privatelink.blob.core.windows.net"
ZONE, OTHER_ZONE = (f"{NETWORK.replace('/net/', f'/{name}/')}/privateDnsZones/{BLOB}" for name in ("dns", "more"))
OURS = (
    f"/subscriptions/{SUBSCRIPTION}/resourceGroups/minimal-rg/providers/Microsoft.Network/virtualNetworks/minimal-vnet"
)
MYSQL_ZONE = f"{NETWORK.replace('/net/', '/dns/')}/privateDnsZones/central.private.mysql.database.azure.com"
SUBNETS = {
    "server": [],
    "compute": [],
    "lustre": [],
    "files": ["Microsoft.NetApp/volumes"],
    "mysql": ["Microsoft.DBforMySQL/flexibleServers"],
    "gpu": [],
}


EXISTING_TEXT = f"""
network:
  address_space: null
  blob_dns_zone: {ZONE}
  existing:
    vnet_id: {VNET}
    subnets: {{server: server, compute: compute, netapp: files, lustre: lustre}}
    compute_subnets: [{{name: gpu, prefix: 10.20.8.0/24}}]
storage:
  home: {{type: anf, size_tib: 4}}
  mounts: [{{path: /data, type: amlfs, tier: 500, size_tib: 4}}]
slurm: {{partitions: [{{name: htc, vm_size: Standard_D64ds_v5, max_nodes: 20, subnet: gpu}}]}}
"""
EXISTING = plan_from(EXISTING_TEXT)
WITH_DATABASE = plan_from(
    EXISTING_TEXT,
    f"network: {{mysql_dns_zone: {MYSQL_ZONE}, existing: {{subnets: {{database: mysql}}}}}}",
    "slurm: {accounting: {type: new}}",
)
PEERED = plan_from(f"""
network:
  access: hub
  hub: {{vnet_id: {HUB}, use_remote_gateway: true, address_spaces: [10.0.0.0/16]}}
  blob_dns_zone: {ZONE}
""")
NEW_ZONE = plan_from("network: {access: public, allowed_sources: [203.0.113.0/24]}")


def group(state: State, name: str) -> None:
    state.put(
        f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{name}",
        location="southcentralus",
        tags={"cycleforge": "minimal"},
    )


def link(state: State, zone: str, vnet: str, name: str = "someone") -> None:
    state.put(f"{zone}/virtualNetworkLinks/{name}", properties={"virtualNetwork": {"id": vnet}})


def subnet(name: str, services: list[str]) -> dict[str, Any]:
    delegations = [{"name": "d", "properties": {"serviceName": service}} for service in services]
    return {
        "id": f"{VNET}/subnets/{name}",
        "name": name,
        "properties": {"delegations": delegations, "ipConfigurations": []},
    }


def bastion(state: State, sku: str, vnet: str = VNET, **properties: Any) -> None:
    """One Bastion, whose resource group is not that of the network."""
    group(state, "access")
    at = {"ipConfigurations": [{"properties": {"subnet": {"id": f"{vnet}/subnets/AzureBastionSubnet"}}}]}
    if sku == "Developer":
        at = {"virtualNetwork": {"id": vnet}}  # type: ignore[dict-item]
    path = f"{NETWORK.replace('/net/', '/access/')}/bastionHosts/jump"
    state.put(path, location="southcentralus", sku={"name": sku}, properties=at | properties)


def healthy(state: State) -> None:
    """A network, a hub with a gateway, and a zone that the network is linked to."""
    for name in ("net", "dns", "more"):
        group(state, name)
    subnets = [subnet(name, services) for name, services in SUBNETS.items()]
    state.put(VNET, location="southcentralus", properties={"subnets": subnets})
    spaces = [
        {"id": each["id"], "name": {"value": "SubnetSpace"}, "currentValue": 0, "limit": 251, "unit": "Count"}
        for each in subnets
    ]
    state.documents[f"{VNET.lower().partition(SUBSCRIPTION)[2]}/usages"] = spaces
    bastion(state, "Standard", enableTunneling=True)
    gateway = {
        "id": f"{HUB}/subnets/GatewaySubnet",
        "name": "GatewaySubnet",
        "properties": {"ipConfigurations": [{"id": "x"}]},
    }
    hub = {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}, "subnets": [gateway], "virtualNetworkPeerings": []}
    state.put(HUB, location="southcentralus", properties=hub)
    state.put(ZONE, location="global")
    link(state, ZONE, VNET)
    state.put(MYSQL_ZONE, location="global")
    link(state, MYSQL_ZONE, VNET)


def properties(state: State, resource_id: str) -> dict[str, Any]:
    found: dict[str, Any] = state.resources[resource_id.lower()]["properties"]
    return found


def delegated(state: State, index: int, *services: str) -> None:
    name = list(SUBNETS)[index]
    properties(state, VNET)["subnets"][index] = subnet(name, list(services))


def peered(state: State, remote: str, prefix: str, peering_state: str = "Connected") -> None:
    fields = {
        "remoteVirtualNetwork": {"id": remote},
        "remoteAddressSpace": {"addressPrefixes": [prefix]},
        "peeringState": peering_state,
    }
    properties(state, HUB)["virtualNetworkPeerings"].append({"name": "p", "properties": fields})


def full(state: State) -> None:
    spaces: Any = state.documents[f"{VNET.lower().partition(SUBSCRIPTION)[2]}/usages"]
    spaces[-1]["currentValue"] = 240


def other_zone(state: State, vnet: str) -> None:
    state.put(OTHER_ZONE, location="global")
    link(state, OTHER_ZONE, vnet)


def hub_overlaps(state: State) -> None:
    properties(state, HUB)["addressSpace"] = {"addressPrefixes": ["10.48.0.0/13"]}


def unlinked(state: State, zone: str, *dns_servers: str) -> None:
    state.resources.pop(f"{zone}/virtualNetworkLinks/someone".lower())
    properties(state, VNET)["dhcpOptions"] = {"dnsServers": list(dns_servers)}


def private(state: State) -> None:
    properties(state, VNET)["subnets"][1]["properties"]["defaultOutboundAccess"] = False


PROVOKED: dict[str, tuple[Plan, str, Change]] = {
    "network elsewhere": (EXISTING, "E4601", lambda state: state.resources[VNET.lower()].update(location="eastus")),
    "no network": (EXISTING, "E4601", lambda state: state.resources.pop(VNET.lower())),
    "no subnet": (EXISTING, "E4602", lambda state: properties(state, VNET)["subnets"].pop()),
    "not delegated": (EXISTING, "E4603", lambda state: delegated(state, 3)),
    "delegated": (EXISTING, "E4603", lambda state: delegated(state, 1, "Microsoft.Web/serverFarms")),
    "no addresses": (EXISTING, "E4604", full),
    "no way out": (EXISTING, "W4605", private),
    "lustre's subnet": (EXISTING, "E4703", lambda state: state.documents.update({"subnet of lustre": "too small"})),
    "export of others": (EXISTING, "E4706", lambda state: state.documents.update(exports=["minimal-home"])),
    "not linked": (EXISTING, "W4612", lambda state: state.resources.pop(f"{ZONE}/virtualNetworkLinks/someone".lower())),
    "not linked, database": (WITH_DATABASE, "E4613", lambda state: unlinked(state, MYSQL_ZONE)),
    "own DNS servers": (WITH_DATABASE, "E4613", lambda state: unlinked(state, MYSQL_ZONE, "10.9.0.4")),
    "no zone": (EXISTING, "E4611", lambda state: state.resources.pop(ZONE.lower())),
    "no hub": (PEERED, "E4606", lambda state: state.resources.pop(HUB.lower())),
    "no gateway": (PEERED, "E4606", lambda state: properties(state, HUB)["subnets"].clear()),
    "hub overlaps": (PEERED, "E4607", hub_overlaps),
    "spoke overlaps": (PEERED, "W4608", lambda state: peered(state, SPOKE, "10.50.2.0/24")),
    "disconnected": (PEERED, "E4609", lambda state: peered(state, OURS, "10.50.0.0/22", "Disconnected")),
    "linked by another name": (PEERED, "E4611", lambda state: link(state, ZONE, OURS)),
    "linked elsewhere": (PEERED, "E4610", lambda state: other_zone(state, OURS)),
    "new zone, linked elsewhere": (NEW_ZONE, "E4610", lambda state: other_zone(state, OURS.upper())),
}  # fmt: skip


@pytest.mark.parametrize(
    "definition", [EXISTING, WITH_DATABASE, PEERED, NEW_ZONE], ids=["existing", "database", "hub", "new zone"]
)
def test_nothing_is_found_where_all_is_well(arm: Arm, definition: Plan) -> None:
    healthy(arm.state)
    assert found_by(arm, definition) == []


def test_own_dns_servers_may_resolve_the_lockers_zone(arm: Arm) -> None:
    """Of the database's zone Azure wants the link all the same."""
    healthy(arm.state)
    unlinked(arm.state, ZONE, "10.9.0.4")
    assert found_by(arm, EXISTING) == []
    unlinked(arm.state, MYSQL_ZONE, "10.9.0.4")
    assert found_by(arm, WITH_DATABASE) == ["E4613"]


def test_a_network_of_another_subscription(arm: Arm) -> None:
    """Provoked by an id there; where the deployment goes to that subscription, all is well, as the test above shows."""
    other = "00000000-0000-0000-0000-000000000000"
    healthy(arm.state)
    arm.state.others = (other,)
    arm.state.caller.roles.append((f"/subscriptions/{other}", OWNER))
    there = VNET.replace(SUBSCRIPTION, other)
    arm.state.put(there.partition("/providers/")[0], location="southcentralus")
    arm.state.put(there, location="southcentralus", properties=copy.deepcopy(properties(arm.state, VNET)))
    link(arm.state, ZONE, there, "other")
    plan = plan_from(EXISTING_TEXT.replace(VNET, there))
    (finding,) = [each for each in report_of(plan).findings if each.rule_id == "E4601"]
    assert finding.message == f"the network is in subscription {other}, the deployment goes to {SUBSCRIPTION}"
    assert f"deploy with --subscription {other}" in str(finding.hint)


def test_our_own_file_system_does_not_need_its_subnet_twice(arm: Arm) -> None:
    healthy(arm.state)
    group(arm.state, "minimal-rg")
    own = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/minimal-rg/providers/Microsoft.StorageCache/amlFilesystems"
    arm.state.documents["subnet of lustre"] = "too small"
    limits: Any = arm.state.documents["/providers/microsoft.storagecache/locations/southcentralus/usages"]
    limits[0]["currentValue"] = limits[0]["limit"]
    assert found_by(arm, EXISTING) == ["E4702", "E4703"]
    arm.state.put(f"{own}/minimal-data", location="southcentralus")
    assert found_by(arm, EXISTING) == []


def test_a_hub_that_is_asked_for_later_is_not_known(arm: Arm) -> None:
    healthy(arm.state)
    plan = plan_from("network: {access: hub, hub: {vnet_id: '${HUB_VNET_ID}'}}")
    assert found_by(arm, plan) == ["E4606?", "E4607?", "E4609?", "W4608?"]


@pytest.mark.parametrize("case", PROVOKED)
def test_each_finding_is_provoked_and_alone(arm: Arm, case: str) -> None:
    definition, expected, change = PROVOKED[case]
    healthy(arm.state)
    change(arm.state)
    assert found_by(arm, definition) == expected.split()


@pytest.mark.parametrize(
    ("sku", "vnet", "fields", "said"),
    [
        ("Standard", VNET, {"enableTunneling": True}, ""),
        ("Premium", VNET.upper(), {"enableTunneling": True}, ""),
        ("Standard", VNET, {"enableTunneling": False}, "its native client support is off"),
        ("Standard", VNET, {}, "its native client support is off"),
        ("Basic", VNET, {}, "has the SKU Basic, which opens no tunnels"),
        ("Developer", VNET, {}, "has the SKU Developer, which opens no tunnels"),
        ("Standard", HUB, {"enableTunneling": True}, "corp has no Azure Bastion"),
    ],
)
def test_the_way_into_an_existing_network(arm: Arm, sku: str, vnet: str, fields: dict[str, Any], said: str) -> None:
    """Nothing creates a Bastion there, so it is looked for."""
    healthy(arm.state)
    bastion(arm.state, sku, vnet, **fields)
    found = [each for each in report_of(EXISTING).findings if each.rule_id == "W4614"]
    assert [said in each.message for each in found] == ([True] if said else [])
    assert all("access: private" in str(each.hint) for each in found)


@pytest.mark.parametrize("access", ["hub", "private"])
def test_a_vpn_in_place_needs_no_bastion(arm: Arm, access: str) -> None:
    healthy(arm.state)
    bastion(arm.state, "Basic")
    plan = plan_from(EXISTING_TEXT, f"network: {{access: {access}}}")
    assert plan.access.tunnel is None
    assert found_by(arm, plan) == []


def test_the_plan_says_who_has_the_bastion() -> None:
    assert "the existing network's own Azure Bastion, which must exist" in EXISTING.access.description
    assert not EXISTING.access.creates_bastion
    assert "must exist" not in plan_from().access.description
