"""Deleting, played with the README's own lines against what exists and who made it."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from generator import catalog
from generator.plan.deployment import Plan
from tests.bed.plans import plan_from
from tests.bicep.compilers import MODULES
from tests.bicep.variants import (
    EVERYTHING,
    EXISTING_GROUP,
    EXISTING_NETWORK,
    EXISTING_SERVER,
    EXISTING_SERVER_BEHIND_A_HUB,
    INFRASTRUCTURE,
)
from tests.lifecycle.azure import SUBSCRIPTION, Azure
from tests.lifecycle.readme import paste, section, words
from tests.lifecycle.world import IMPLICIT, OTHERS, OURS, STAGES, build

NETWORK = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/network-rg/providers/Microsoft.Network"
HUB = f"network: {{access: hub, hub: {{vnet_id: {NETWORK}/virtualNetworks/hub, use_remote_gateway: false}}}}"
ZONE = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/dns-rg/providers/Microsoft.Network/privateDnsZones"
SHARED_ZONE = f"network: {{blob_dns_zone: {ZONE}/privatelink.blob.core.windows.net}}"
MYSQL_ZONE = f"network: {{mysql_dns_zone: {ZONE}/slurm.mysql.database.azure.com}}"
PUBLIC = "network: {access: public, allowed_sources: [203.0.113.0/24], nat_gateway: false}"

KEEPING = "Delete, and keep the data"
"""The heading in operations.md."""

PLANS: dict[str, Callable[[], Plan]] = {
    "new group": plan_from,
    "new group, hub, zone of others": partial(plan_from, HUB, SHARED_ZONE),
    "existing group, firewall": partial(plan_from, EXISTING_GROUP, HUB, "network: {next_hop: 10.0.1.4}"),
    "new group, everything": partial(plan_from, EVERYTHING),
    "new group, public": partial(plan_from, PUBLIC),
    "existing group": partial(plan_from, EXISTING_GROUP),
    "existing group, everything, zones of others": partial(
        plan_from, EXISTING_GROUP, EVERYTHING, SHARED_ZONE, MYSQL_ZONE
    ),
    "existing group and server": partial(plan_from, EXISTING_GROUP, EXISTING_SERVER),
    "existing group, server and hub": partial(plan_from, EXISTING_GROUP, EXISTING_SERVER_BEHIND_A_HUB),
    "new group, existing server": partial(plan_from, EXISTING_SERVER),
    "new group, no cluster": partial(plan_from, INFRASTRUCTURE),
    "existing group and network": partial(plan_from, EXISTING_GROUP, EXISTING_NETWORK),
}
WITHOUT_DATA = ("existing group and server", "new group, existing server")
"""Their home folders are on the scheduler's disk, and the locker is the existing server's."""


def by(azure: Azure, *makers: str) -> dict[str, Any]:
    """Resources, roles and records of some makers."""
    every: Mapping[str, Any] = azure.resources | azure.assignments | azure.deployments
    return {each: found for each, found in every.items() if found["by"] in makers}


def delete(azure: Azure, plan: Plan, folder: Path, *, keep_data: bool = False) -> str:
    """Paste the section; what `az` and `ssh` said of errors."""
    where = (KEEPING, "operations.md") if keep_data else ("Delete", "README.md")
    done = paste(azure, folder, section(plan, *where))
    assert "NotPlayed" not in done.stderr, done.stderr
    assert "UnrecognizedArguments" not in done.stderr, done.stderr
    return done.stderr


THOROUGH = (
    "new group, hub, zone of others",
    "existing group, everything, zones of others",
    "existing group, server and hub",
)
"""Every kind of resource, both kinds of group, both kinds of server."""


@pytest.mark.parametrize(
    ("name", "stage"), [(name, stage) for name in PLANS for stage in STAGES if name in THOROUGH or stage == "all"]
)
def test_nothing_of_ours_is_left_and_nothing_of_others_is_gone(name: str, stage: str, tmp_path: Path) -> None:
    plan = PLANS[name]()
    azure = build(plan, stage)
    others, groups = copy.deepcopy(by(azure, OTHERS)), copy.deepcopy(azure.groups)
    assert by(azure, OURS)
    delete(azure, plan, tmp_path)
    assert by(azure, OURS, IMPLICIT, "cyclecloud") == {}
    assert by(azure, OTHERS) == others
    if plan.creates_resource_group:
        del groups[plan.resource_group]
    assert azure.groups == groups


def test_no_line_asks_for_an_output_of_the_deployment() -> None:
    for make in PLANS.values():
        for file, title in (("README.md", "Delete"), ("operations.md", KEEPING)):
            assert "outputs" not in words(make(), title, file)


@pytest.mark.parametrize("name", WITHOUT_DATA)
def test_where_nothing_keeps_data_there_is_only_deleting(name: str) -> None:
    text = words(PLANS[name](), KEEPING, "operations.md")
    assert "az " not in text
    assert text.endswith("Then follow [Delete](README.md#delete).\n\n")


@pytest.mark.parametrize(
    ("name", "disks_have_tags"),
    [*((name, False) for name in PLANS if name not in WITHOUT_DATA), *((name, True) for name in THOROUGH)],
)
def test_keeping_data_keeps_what_the_data_needs(name: str, disks_have_tags: bool, tmp_path: Path) -> None:
    plan = PLANS[name]()
    azure = build(plan, disks_have_tags=disks_have_tags)
    before, groups = copy.deepcopy(azure.resources), copy.deepcopy(azure.groups)
    done = paste(azure, tmp_path, section(plan, KEEPING, "operations.md"))
    gone = sorted(each.split("/providers/", 1)[1] for each in before if each not in azure.resources)
    server = plan.server.vm_name if plan.server else "none"
    kinds = {each.rsplit("/", 1)[0] for each in gone}
    assert kinds <= {
        "Microsoft.Compute/disks",
        "Microsoft.Compute/virtualMachineScaleSets",
        "Microsoft.Compute/virtualMachines",
        f"Microsoft.Compute/virtualMachines/{server}/extensions",
        "Microsoft.ManagedIdentity/userAssignedIdentities",
        "Microsoft.Network/bastionHosts",
        "Microsoft.Network/networkInterfaces",
        "Microsoft.Network/networkSecurityGroups",
        "Microsoft.Network/publicIPAddresses",
    }
    assert plan.server is None or f"Microsoft.Compute/virtualMachines/{server}" in gone
    kept = {each: found for each, found in azure.resources.items() if found["by"] == OURS}
    for found in kept.values():
        assert all(used in azure.resources for used in found["uses"]), "what is kept has what it needs"
    names = {each.rsplit("/", 1)[1] for each in kept}
    assert not names & {f"{server}-ip", f"{server}-nsg", plan.names.bastion}
    disks = [each for each in azure.resources if "_disk2_" in each]
    assert len(disks) == (plan.server is not None)
    listed = done.stdout.split("\n")
    for each in (*disks, *(each for each, found in kept.items() if not found.get("is_part"))):
        assert any(line.endswith(f"\t{each.rsplit('/', 1)[1]}") for line in listed), f"{each} is not listed"
    assert azure.groups == groups
    assert [each for each in azure.assignments.values() if each["by"] == OURS] == []


@pytest.mark.parametrize("name", THOROUGH)
def test_the_rest_goes_later(name: str, tmp_path: Path) -> None:
    plan = PLANS[name]()
    azure = build(plan)
    others = copy.deepcopy(by(azure, OTHERS))
    delete(azure, plan, tmp_path, keep_data=True)
    assert by(azure, OURS)
    delete(azure, plan, tmp_path)
    assert by(azure, OURS, IMPLICIT) == {}
    assert by(azure, OTHERS) == others


def test_a_group_without_our_tag_is_not_deleted(tmp_path: Path) -> None:
    """It existed before, and someone has put back the tags that our deployment replaced."""
    plan = plan_from()
    azure = build(plan)
    azure.groups[plan.resource_group]["tags"] = {"cost": "4711"}
    foreign = azure.add(f"{plan.resource_group}/x", "Microsoft.Compute/disks", OTHERS)
    delete(azure, plan, tmp_path)
    assert plan.resource_group in azure.groups
    assert foreign in azure.resources
    assert by(azure, OURS) == {}


def test_a_group_of_another_deployment_is_named_before_the_first_one(tmp_path: Path) -> None:
    plan = plan_from()
    guard = next(block for block in section(plan, "Deploy") if "echo stop" in block)
    azure = Azure()
    assert paste(azure, tmp_path, [guard]).stdout == ""
    azure.groups[plan.resource_group] = {"location": plan.location, "tags": {"cost": "4711"}}
    assert paste(azure, tmp_path, [guard]).stdout == "stop\n"
    azure.groups[plan.resource_group] = {"location": plan.location, "tags": dict(plan.tags)}
    assert paste(azure, tmp_path, [guard]).stdout == ""


def test_a_lock_stops_it_and_is_named(tmp_path: Path) -> None:
    plan = plan_from()
    azure = build(plan)
    group = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{plan.resource_group}"
    azure.locks = [group]
    assert "ScopeLocked" in delete(azure, plan, tmp_path)
    assert plan.resource_group in azure.groups
    azure.locks = []
    delete(azure, plan, tmp_path)
    assert by(azure, OURS, IMPLICIT) == {}


def test_the_order_holds_every_type_that_a_module_makes() -> None:
    made = {
        kind
        for module in MODULES
        for kind, body in re.findall(r"^resource \w+ '([^@']+)@[^']+' = (.*?^[}\]])", module.read_text(), re.M | re.S)
        if "  tags: tags" in body
    }
    order = {each.name for each in catalog.resource_types().values() if each.removal == "in order"}
    # An extension goes with its VM.
    assert made - {"Microsoft.Compute/virtualMachines/extensions"} <= order
    assert order - made == {"Microsoft.Compute/virtualMachineScaleSets", "Microsoft.Compute/disks"}


@pytest.mark.parametrize("name", ["new group, everything", *THOROUGH])
def test_one_by_one_each_goes_at_the_first_attempt(name: str, tmp_path: Path) -> None:
    """Not by the passes of `az resource delete`, and not because the group is gone: the order is right."""
    plan = PLANS[name]()
    azure = build(plan)
    paste(azure, tmp_path, section(plan, "Delete")[:1])  # the cluster
    wanted = ("vnet=", "for type in")  # what leads to the network from elsewhere, and then what is in the group
    blocks = [block for block in section(plan, "Delete") if any(word in block for word in wanted)]
    done = paste(azure, tmp_path, blocks)
    assert done.stderr == ""
    assert [each for each, found in azure.resources.items() if found["by"] == OURS] == []
