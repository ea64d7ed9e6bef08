"""What the README of a deployment promises to be reachable is reachable, and it follows from the table of flows."""

from __future__ import annotations

import dataclasses
import re

import pytest
from msgspec.structs import replace

from generator.render import readme
from tests.flows.worlds import DEFINITIONS, IN_EXISTING, WITH_NETWORK, World, world

CONNECTIONS = {
    "ssh to the server": (r"(?m)^ssh \w+@\"\$\{server\}\"$", "users", "server", 22),
    "the portal": (r"echo \"portal: https://\$\{server\}\"", "users", "server", 443),
    "a tunnel for ssh": (r"bastion tunnel .*--resource-port 22 ", "bastion", "server", 22),
    "a tunnel for the portal": (r"bastion tunnel .*--resource-port 443 ", "bastion", "server", 443),
    "a tunnel for Remote Desktop": (r"bastion tunnel .*--resource-port 3389 ", "bastion", "jumpbox", 3389),
    "Remote Desktop by address": (r"jumpbox `[\w-]+` has .*; its address for Remote Desktop", "users", "jumpbox", 3389),
    "Remote Desktop through the server": (r"(?m)^ssh -N -L \"53389:.*:3389\"", "server", "jumpbox", 3389),
    "the jumpbox's browser": (r"(?i)\bbrowser (?:of|inside) the (?:Windows jumpbox|network)", "jumpbox", "server", 443),
    "nodes through the server": (r"-o ProxyJump=", "server", "compute", 22),
    "upload over the VPN": (r"\*\*With CycleForge\*\*.*behind the VPN", "users", "endpoints", 443),
    "upload on the server": (r"\*\*With CycleForge\*\*.*the server itself", "server", "endpoints", 443),
    "upload from the server's copy": (r"cyclecloud project upload azure-storage", "server", "endpoints", 443),
    "home on NetApp": (r"\| `/shared` \| Azure NetApp", "compute", "netapp", 2049),
    "mount of Lustre": (r"\| `/data` \| Azure Managed Lustre", "compute", "lustre", 988),
    "accounting": (r"\| Accounting \| new MySQL", "compute", "database", 3306),
    "nodes that report": (r"\| Scheduler \|", "compute", "server", 9443),
    "projects of the nodes": (r"cluster-init projects of the nodes", "compute", "endpoints", 443),
    "Slurm": (r"\| Slurm cluster \| `", "compute", "compute", 6817),
    "home on the scheduler's disk": (r"\| `/sched` \| NFS disk of the scheduler", "compute", "compute", 2049),
}
"""Name → what the README says, and the connection that it takes; the jumpbox is in the subnet of the server."""
LABELS = {
    "users": "users",
    "server": "the server",
    "jumpbox": "the jumpbox",
    "bastion": "Azure Bastion",
    "compute": "nodes",
    "endpoints": "the locker",
    "netapp": "NetApp Files",
    "lustre": "Managed Lustre",
    "database": "the database",
}
"""How the table of an existing network calls each side."""
ROW = re.compile(r"(?m)^\| ([^|]+) \| ([^|]+) \| ((?:TCP|UDP|any)[^|]*) \| ([^|]+) \|$")


def promised(here: World) -> dict[str, tuple[str, str, int]]:
    said = (name for name, (says, *_) in CONNECTIONS.items() if re.search(says, here.page))
    return {name: CONNECTIONS[name][1:] for name in said}


@pytest.mark.parametrize("name", WITH_NETWORK)
def test_every_promise_is_kept(name: str) -> None:
    here = world(name)
    groups, server = here.groups(), here.hosts["server"]
    hosts = here.hosts | {"jumpbox": dataclasses.replace(server, address=server.address + 1, card=None)}
    second = dataclasses.replace(hosts["compute"], address=hosts["compute"].address + 1)
    found = promised(here)
    assert len(found) >= 12
    for what, (source, destination, port) in found.items():
        target = second if source == destination else hosts[destination]
        assert groups.allow(hosts[source], target, "Tcp", port), what


def test_every_kind_of_promise_is_made_somewhere() -> None:
    assert set(CONNECTIONS) == {what for name in WITH_NETWORK for what in promised(world(name))}


def rows(here: World) -> list[tuple[str, str, str]]:
    """The table that the README gives to the owner of an existing network: from, to, ports."""
    return [(one, other, ports) for one, other, ports, _ in ROW.findall(here.page)]


def covers(row: tuple[str, str, str], source: str, destination: str, port: int) -> bool:
    one, other, ports = row
    numbers = [int(text) for text in re.findall(r"\b\d+\b", ports)]
    return one.startswith(LABELS[source]) and other.startswith(LABELS[destination]) and (not numbers or port in numbers)


@pytest.mark.parametrize("name", IN_EXISTING)
def test_the_owner_of_an_existing_network_is_told_all_of_it(name: str) -> None:
    """Nothing is created there, so the same promises stand or fall with this table."""
    here = world(name)
    assert not [each for each in here.resources if each.type.endswith("/virtualNetworks")]
    table, found = rows(here), promised(here)
    assert len(found) >= 12
    for what, (source, destination, port) in found.items():
        assert any(covers(row, source, destination, port) for row in table), what


def test_the_table_names_the_subnets_of_an_existing_network() -> None:
    table = rows(world("existing-hub-jumpbox"))
    assert ("users", "the server (`servers`)", "TCP 22") in table
    assert ("users", "the jumpbox (`servers`)", "TCP 3389") in table
    assert ("nodes (`nodes`)", "NetApp Files (`volumes`)", "TCP and UDP 111, 635, 2049, 4045, 4046, 4049") in table
    assert ("nodes (`nodes`)", "nodes (`nodes`)", "any") in table


def test_the_owner_of_an_existing_network_is_told_of_the_proxy() -> None:
    table = rows(world("existing-proxy"))
    assert ("nodes (`nodes`)", "`10.0.1.5/32`", "TCP 3128") in table
    assert ("the server (`servers`)", "`10.0.1.5/32`", "TCP 3128") in table


@pytest.mark.parametrize("name", ["server-exists", "server-exists-in-network", "server-exists-behind-hub"])
def test_beside_an_existing_server_its_ports_are_named(name: str) -> None:
    text = world(name).page
    assert "nodes reach the server on ports 443 and 9443, and the locker on port 443" in text
    assert "the server reaches nodes on port 22" in text
    if name != "server-exists":
        assert ("nodes (`nodes`)", "the existing server", "TCP 443, 9443") in rows(world(name))


def test_a_public_server_in_an_existing_network_answers_its_users_only() -> None:
    (card,) = [each for each in world("existing-public").resources if each.type.endswith("/networkSecurityGroups")]
    (rule,) = card.properties["securityRules"]
    assert rule["properties"]["destinationPortRanges"] == ["22", "443"]
    assert rule["properties"]["sourceAddressPrefixes"] == ["203.0.113.0/24", "198.51.100.7/32"]


@pytest.mark.parametrize("name", sorted(DEFINITIONS))
def test_a_sentence_without_its_flow_stops_the_render(name: str) -> None:
    """Every flow on which a text relies is needed: without it the text would promise what the network refuses."""
    plan = world(name).plan
    lost = []
    for flow in plan.network.flows:
        left = replace(plan.network, flows=tuple(each for each in plan.network.flows if each != flow))
        try:
            readme.render(replace(plan, network=left))
        except KeyError:
            lost.append(flow.name)
    ways = {"users": {"users-ssh", "users-portal"}, "bastion": {"bastion-ssh", "bastion-portal"}}
    wanted = ways["bastion" if plan.access.tunnel else "users"] | ({"server-nodes"} if plan.slurm else set())
    if plan.existing_server:
        wanted |= {"nodes-server", "nodes-locker", "server-nodes"}
    if plan.projects and plan.server:
        wanted.add("server-locker")
    if name.endswith("-jumpbox"):
        wanted |= {"jumpbox-server", next(each.name for each in plan.network.flows if each.ports == ("3389",))}
    assert set(lost) >= wanted


def test_operations_shows_the_table_of_a_new_network() -> None:
    pages = readme.render(world("hub").plan)
    text = next(file.content.decode() for path, file in pages.items() if path.name == "operations.md")
    assert "| users | the locker (`endpoints`) | TCP 443 | users upload projects to the locker |" in text
    assert len(ROW.findall(text)) == len(world("hub").plan.network.flows)
