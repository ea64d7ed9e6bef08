"""From flows to rules: what Azure accepts, what stays open, and what the definition adds."""

from __future__ import annotations

import re
from functools import cache, partial
from ipaddress import IPv4Address, IPv4Network
from itertools import combinations
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from generator.definition.pages.schema import cost_of
from generator.files.file import Files
from generator.output.diff import compare
from generator.plan.effective import effective
from generator.plan.flow import Flow
from generator.plan.subnets import without_overlaps
from tests.bed.bicep.deployment import resources_of
from tests.bed.plans import plan_from
from tests.bed.security_groups import Host
from tests.bed.yaml_data import yaml_data
from tests.bicep.variants import rendered_files
from tests.flows.worlds import BASE, DEFINITIONS, PUBLIC, WITH_NETWORK, World, world

NEW_NETWORKS = [
    *WITH_NETWORK,
    "infrastructure",
    "services-elsewhere",
    "subnets",
    "proxy",
    "dns-servers",
    "server-exists",
]


def printed(here: World) -> dict[str, list[dict[str, Any]]]:
    """The rules of each security group of the network by the role of its subnet, as Azure receives them."""
    groups = (each for each in here.resources if each.type.endswith("/networkSecurityGroups"))
    found = {each.name.removeprefix(f"{here.plan.network.vnet_name}-").removesuffix("-nsg"): each for each in groups}
    return {
        role: [{"name": rule["name"], **rule["properties"]} for rule in group.properties["securityRules"]]
        for role, group in found.items()
        if here.plan.network.subnet(role) is not None
    }


@pytest.mark.parametrize("name", NEW_NETWORKS)
def test_the_module_prints_the_rules_of_the_plan(name: str) -> None:
    here = world(name)
    found = printed(here)
    assert set(found) == {subnet.role for subnet in here.plan.network.subnets}
    for subnet in here.plan.network.subnets:
        assert [
            (rule["name"], rule["priority"], rule["direction"], rule["access"], rule["protocol"], rule["description"])
            for rule in found[subnet.role]
        ] == [
            (rule.name, rule.priority, rule.direction, rule.access, rule.protocol, rule.description)
            for rule in subnet.rules
        ]


@pytest.mark.parametrize("name", NEW_NETWORKS)
def test_azure_accepts_every_rule(name: str) -> None:
    """https://learn.microsoft.com/azure/templates/microsoft.network/networksecuritygroups, and what refusals say.

    Singular and plural: SecurityRuleInvalidPortRange (Azure/terraform-azurerm-network-security-group#21, #44).
    Overlaps: OverlappingSubnetsNotPermittedInSecurityRule (kubernetes-sigs/cloud-provider-azure#6775).
    """
    for role, rules in printed(world(name)).items():
        assert len({rule["name"] for rule in rules}) == len(rules), role
        assert all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,78}[A-Za-z0-9_]", rule["name"]) for rule in rules), role
        for rule in rules:
            assert 0 < len(str(rule["description"])) <= 140
            assert 100 <= int(str(rule["priority"])) <= 4096
            for singular, plural in (
                ("sourceAddressPrefix", "sourceAddressPrefixes"),
                ("destinationAddressPrefix", "destinationAddressPrefixes"),
                ("destinationPortRange", "destinationPortRanges"),
            ):
                one, several = rule[singular], rule[plural]
                assert (one is None) != (several is None), rule
                if isinstance(several, list):
                    assert len(several) > 1
                    assert all(text[0].isdigit() for text in several), rule
                    if singular != "destinationPortRange":
                        networks = [IPv4Network(text) for text in several]
                        assert not any(a.overlaps(b) for a, b in combinations(networks, 2)), rule


@pytest.mark.parametrize("name", NEW_NETWORKS)
def test_names_of_flows_are_unique(name: str) -> None:
    flows = world(name).plan.network.flows
    assert len({flow.name for flow in flows}) == len(flows)


def test_one_source_given_at_deployment_is_in_the_singular_property() -> None:
    """The plan cannot know how many there are: the parameter decides."""
    plan = plan_from(BASE, PUBLIC)
    for given_sources in (["198.51.100.9/32"], ["198.51.100.9/32", "203.0.113.0/24"]):
        groups = resources_of(rendered_files(plan), {"allowedSources": given_sources})
        rules = [
            rule["properties"]
            for group in groups
            if group.type.endswith("/networkSecurityGroups")
            for rule in group.properties["securityRules"]
            if rule["name"].startswith("AllowUsers")
        ]
        assert len(rules) == 3
        for rule in rules:
            if len(given_sources) == 1:
                assert (rule["sourceAddressPrefix"], rule["sourceAddressPrefixes"]) == (given_sources[0], None)
            else:
                assert (rule["sourceAddressPrefix"], rule["sourceAddressPrefixes"]) == (None, given_sources)


SOURCE = st.builds(
    lambda start, length: str(IPv4Network((start, length), strict=False)),
    st.sampled_from([0xC6336400, 0xC6336407, 0xC6336480, 0xCB007100, 0xFFFFFFFF]),
    st.integers(1, 32),
)


@cache
def public_files() -> Files:
    return rendered_files(plan_from(BASE, PUBLIC))


def sources_in_azure(given_sources: list[str]) -> list[list[str]]:
    return [
        rule["properties"]["sourceAddressPrefixes"] or [rule["properties"]["sourceAddressPrefix"]]
        for group in resources_of(public_files(), {"allowedSources": given_sources})
        if group.type.endswith("/networkSecurityGroups")
        for rule in group.properties["securityRules"]
        if rule["name"].startswith("AllowUsers")
    ]


@given(st.lists(SOURCE, min_size=1, max_size=6))
@example(["198.51.100.7", "198.51.100.7/32"])
@settings(max_examples=15, deadline=None)
def test_sources_given_at_deployment_lose_those_within_another(given_sources: list[str]) -> None:
    """As the plan does it with those of the definition; an address without a prefix length is one address."""
    blocks = [IPv4Network(text) for text in given_sources]
    first = dict(reversed(list(zip(blocks, given_sources, strict=True))))
    expected = [first[IPv4Network(text)] for text in without_overlaps(str(block) for block in blocks)]
    assert sources_in_azure(given_sources) == [expected] * 3


def test_sources_that_overlap_are_one() -> None:
    given_sources = "[198.51.100.7/32, 203.0.113.0/24, 203.0.113.7/32, 198.51.100.7/32, 203.0.113.128/25]"
    plan = plan_from(BASE, f"network: {{access: public, allowed_sources: {given_sources}}}")
    assert plan.network.allowed_sources == ("198.51.100.7/32", "203.0.113.0/24")


@given(st.lists(st.tuples(st.integers(0, 2**8 - 1), st.integers(24, 32)), max_size=8))
@settings(max_examples=50, deadline=None)
def test_without_overlaps_covers_the_same_addresses(parts: list[tuple[int, int]]) -> None:
    texts = [str(IPv4Network((f"10.0.0.{last}", length), strict=False)) for last, length in parts]
    kept = without_overlaps(texts)
    before, after = ([IPv4Network(text) for text in each] for each in (texts, kept))
    assert not any(one.overlaps(other) for one, other in combinations(after, 2))
    assert all(any(one.subnet_of(other) for other in after) for one in before)
    assert set(kept) <= set(texts)


@pytest.mark.parametrize("name", WITH_NETWORK)
def test_health_probes_pass_although_the_tag_of_the_network_contains_their_address(name: str) -> None:
    here = world(name)
    hosts = here.hosts
    for role in (subnet.role for subnet in here.plan.network.subnets):
        assert here.groups().allow(hosts["probe"], hosts[role], "Tcp", 17171), role
        names = [rule["name"] for rule in printed(here)[role]]
        assert names.index("AllowAzureLoadBalancerInbound") < names.index("DenyVirtualNetworkInbound"), role


@pytest.mark.parametrize("name", WITH_NETWORK)
def test_only_the_managing_subnets_open_ssh_and_remote_desktop(name: str) -> None:
    """PSRule's Azure.NSG.LateralTraversal looks for a rule of the group that denies both to VirtualNetwork."""
    for role, rules in printed(world(name)).items():
        denied = [
            rule["destinationPortRanges"]
            for rule in rules
            if (rule["direction"], rule["access"], rule["destinationAddressPrefix"])
            == ("Outbound", "Deny", "VirtualNetwork")
        ]
        assert denied == ([] if role in ("server", "bastion") else [["22", "3389"]]), role


@pytest.mark.parametrize("name", ["hub", "any-hub"])
def test_a_default_route_to_a_firewall_leaves_the_internet_reachable(name: str) -> None:
    """The tag VirtualNetwork contains the prefixes of routes, so nothing but management ports may be denied to it."""
    groups, hosts = world(name).groups("0.0.0.0/0"), world(name).hosts
    for role in ("server", "compute", "lustre"):
        assert groups.allow(hosts[role], hosts["internet"], "Tcp", 443), role
    assert not groups.allow(hosts["compute"], hosts["users"], "Tcp", 443)


def test_nodes_reach_what_the_definition_names_elsewhere_and_nothing_else() -> None:
    here = world("services-elsewhere")
    groups, node = here.groups(), here.hosts["compute"]

    def at(address: str) -> Host:
        return Host(IPv4Address(address))

    def reaches(address: str, *ports: int) -> bool:
        return all(groups.allow(node, at(address), "Tcp", port) for port in ports)

    assert here.plan.network.hub is not None
    assert here.plan.network.hub.reachable == ("10.0.8.0/24",)
    assert reaches("10.0.8.9", 22, 389, 17171)
    assert reaches("10.0.4.5", 111, 2049, 40000)
    assert groups.allow(at("10.0.4.5"), node, "Udp", 40000)
    assert reaches("10.0.4.6", 988, 1021)
    assert groups.allow(at("10.0.4.66"), node, "Tcp", 988)
    assert reaches("10.0.4.7", 3306)
    assert reaches("10.0.77.7", 443, 2049, 20048)
    for address in ("10.0.5.5", "192.168.4.9", "10.99.0.9"):
        for port in (22, 80, 445, 3306, 3389, 5985, 17171):
            assert not reaches(address, port), (address, port)
    assert not groups.allow(at("10.0.5.5"), node, "Tcp", 2049)


def test_every_subnet_asks_the_dns_servers_that_the_definition_names() -> None:
    here = world("dns-servers")
    groups = here.groups()
    for role in (subnet.role for subnet in here.plan.network.subnets):
        for protocol in ("Tcp", "Udp"):
            assert groups.allow(here.hosts[role], Host(IPv4Address("10.0.2.5")), protocol, 53), role
    assert not groups.allow(here.hosts["compute"], Host(IPv4Address("10.0.2.5")), "Tcp", 54)
    assert not groups.allow(here.hosts["compute"], Host(IPv4Address("10.0.2.6")), "Udp", 53)


@pytest.mark.parametrize(("name", "address"), [("proxy", "10.0.1.5"), ("named-proxy", "10.0.77.7")])
def test_the_proxy_is_reached_by_its_address_or_wherever_its_name_leads(name: str, address: str) -> None:
    here = world(name)
    groups, proxy = here.groups(), Host(IPv4Address(address))
    for role in ("compute", "server"):
        assert groups.allow(here.hosts[role], proxy, "Tcp", 3128), role
    assert not groups.allow(here.hosts["compute"], proxy, "Tcp", 3129)
    assert groups.allow(here.hosts["compute"], Host(IPv4Address("10.0.1.6")), "Tcp", 3128) is (name == "named-proxy")


def test_beside_an_existing_server_nodes_reach_it_through_the_hub() -> None:
    here = world("server-exists")
    groups, hosts = here.groups(), here.hosts
    server = Host(IPv4Address("10.0.9.4"))
    assert groups.allow(hosts["compute"], server, "Tcp", 9443)
    assert groups.allow(hosts["compute"], server, "Tcp", 443)
    assert groups.allow(server, hosts["compute"], "Tcp", 22)
    assert not groups.allow(server, hosts["compute"], "Tcp", 2049)
    assert not groups.allow(hosts["compute"], server, "Tcp", 22)


def test_existing_networks_have_flows_and_no_rules() -> None:
    network = world("existing-hub").plan.network
    assert network.flows
    assert not any(subnet.rules for subnet in network.subnets)


def test_flows_and_rules_are_in_the_effective_plan() -> None:
    plan = world("hub").plan
    network = effective(plan)["derived"]["network"]
    assert {"name": "users-locker", "source": "users", "destination": "endpoints"}.items() <= next(
        each for each in network["flows"] if each["name"] == "users-locker"
    ).items()
    server = next(each for each in network["subnets"] if each["role"] == "server")
    assert server["rules"]["AllowUsersPortalInbound"] == "Allow 10.0.0.0/16, 192.168.4.0/24 to 10.50.8.0/27, Tcp 443"
    assert list(server["rules"])[-1] == "DenyVirtualNetworkInbound"


def test_a_diff_names_the_rules_and_flows_that_change_and_calls_it_in_place() -> None:
    before, after = (yaml_data(yaml.safe_dump(effective(world(name).plan))) for name in ("hub", "hub-jumpbox"))
    changes = {
        each.where: each.cost for each in compare(before, after, partial(cost_of, effective=after, before=before))
    }
    network = {where.removeprefix("derived.network."): cost for where, cost in changes.items() if ".network." in where}
    assert network == {
        "subnets[server].rules.AllowJumpboxServerInbound": "in place",
        "subnets[server].rules.AllowUsersJumpboxInbound": "in place",
        "flows[jumpbox-server]": "in place",
        "flows[users-jumpbox]": "in place",
    }


def test_a_promise_without_a_flow_is_an_error() -> None:
    with pytest.raises(KeyError, match="'users-jumpbox'"):
        world("hub").plan.network.flow("users-jumpbox")
    assert isinstance(world("hub-jumpbox").plan.network.flow("users-jumpbox"), Flow)
    assert len(DEFINITIONS) > 15


def test_bastion_has_the_rules_that_azure_demands() -> None:
    """https://learn.microsoft.com/azure/bastion/bastion-nsg"""
    rules = printed(world("bastion"))["bastion"]

    def table(direction: str) -> set[tuple[object, ...]]:
        sides = ("sourceAddressPrefix", "destinationAddressPrefix", "protocol")
        return {
            (*(rule[side] for side in sides), rule["destinationPortRange"] or tuple(rule["destinationPortRanges"]))
            for rule in rules
            if rule["direction"] == direction and rule["access"] == "Allow"
        }

    assert table("Inbound") == {
        ("Internet", "*", "Tcp", "443"),
        ("GatewayManager", "*", "Tcp", "443"),
        ("AzureLoadBalancer", "*", "Tcp", "443"),
        ("VirtualNetwork", "VirtualNetwork", "*", ("8080", "5701")),
        ("AzureLoadBalancer", "*", "*", "*"),
    }
    assert table("Outbound") == {
        ("*", "VirtualNetwork", "*", ("22", "443", "3389")),
        ("*", "AzureCloud", "Tcp", "443"),
        ("VirtualNetwork", "VirtualNetwork", "*", ("8080", "5701")),
        ("*", "Internet", "*", "80"),
    }
