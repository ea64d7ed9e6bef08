"""Quota, cost, addresses, preflight, the plan for people and the README speak of the same VMs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from itertools import takewhile
from pathlib import PurePosixPath

from generator import pipeline
from generator.azure.checks.quota import needs
from generator.definition.read import read_model
from generator.plan.addresses import needed_addresses
from generator.plan.billed import billed
from generator.plan.deployment import Plan
from generator.plan.quota import ALL, SPOT
from generator.render import readme
from generator.render.plan_page import plan_page
from generator.render.plan_sections import sections
from tests.bed.plans import plan_from
from tests.definitions.build import NAMES, checked
from tests.rules.annotations import CASES, without_annotations

Counts = Mapping[tuple[str, str], int]
"""(who they are, VM size) → VMs."""
SEVERAL = """
network: {address_space: 10.50.0.0/20, compute_subnets: [{name: gpu, prefix: 10.50.15.0/27}]}
server: {vm_size: Standard_D4as_v5, jumpbox: {vm_size: Standard_D2as_v5}}
storage:
  sched: {type: existing, address: 10.0.0.4, export_path: /sched}
  home: {type: existing, address: 10.0.0.4, export_path: /home}
slurm:
  scheduler: {high_availability: true, vm_size: Standard_D4as_v5}
  login: {count: 1, max_count: 3, vm_size: Standard_D8as_v5}
  partitions:
    - {name: htc, vm_size: Standard_D64ds_v5, max_nodes: 10, default: true, spot: true}
    - {name: mixed, vm_sizes: [Standard_D32ds_v5, Standard_NC24ads_A100_v4], max_nodes: 5, subnet: gpu}
"""


@cache
def plans() -> Mapping[str, Plan]:
    found = {name: checked(name).plan for name in NAMES}
    for path in sorted(CASES.glob("*.yaml")):
        text = without_annotations(path.read_text(encoding="utf-8"))
        found[path.stem] = pipeline.check(text.encode(), path.name, {}, path.parent).plan
    found["several"] = plan_from(SEVERAL)
    return {name: plan for name, plan in found.items() if plan is not None}


def of_quota(plan: Plan) -> Counts:
    return {(use.name, use.vm_size): use.vms for use in plan.quota.uses}


def of_cost(plan: Plan) -> Counts:
    found = Counter[tuple[str, str]]()
    for each in billed(plan):
        if each.meter in ("vm", "vm_spot", "vm_windows"):
            name = each.title.removeprefix("more ")
            found["login" if name == "login nodes" else name, each.what] += each.quantity
    return found


def rows_of_readme(plan: Plan) -> list[list[str]]:
    text = readme.render(plan)[PurePosixPath("README.md")].content.decode()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]


def of_readme(plan: Plan) -> Counts:
    rows = rows_of_readme(plan)
    start = next((place for place, row in enumerate(rows) if row[0] == "used by"), len(rows))
    table = takewhile(lambda row: len(row) == 4, rows[start + 2 :])
    return {(name, size): int(vms) for name, size, vms, _ in table}


def of_overview(plan: Plan) -> Counts:
    """Of its first table, which names the login nodes that always run and not those that may come."""
    found: dict[tuple[str, str], int] = {}
    for name, text in (row for row in rows_of_readme(plan) if len(row) == 2):
        if name == "Scheduler":
            found["scheduler", text.split(", ")[1]] = 2 if "a second one" in text else 1
        elif name.startswith("Partition"):
            for count, size in re.findall(r"up to (\d+) × (\w+)", text):
                found[f"partition {name.split('`')[1]}", size] = int(count)
    return found


def of_plan_text(plan: Plan) -> Counts:
    found = {}
    for section in sections(plan):
        for name, size, count, *_ in section.rows[1:] if section.key == "nodes" else ():
            who = name if name in ("scheduler", "login") else f"partition {name}"
            found[str(who), str(size)] = int(str(count).removeprefix("≤ ").split("–")[-1])
    return found


def of_picture(plan: Plan) -> Counts:
    """Of the plan's page, with the short names of sizes that it has."""
    found = {}
    for name, count, size in re.findall(r'data-tip="([^"\n]+)\n(?:≤ )?(?:(\d+) × )?([A-Z]\w+)[",]', plan_page(plan)):
        who = name if name in ("scheduler", "login") else f"partition {name}"
        found[who, f"Standard_{size}"] = int(count or 1)
    return found


def of_nodes(counts: Counts) -> Counts:
    return {(name, size): vms for (name, size), vms in counts.items() if name not in ("CycleCloud server", "jumpbox")}


def test_there_are_definitions_enough() -> None:
    assert len(plans()) > 100
    assert sum(len(plan.fleet) > 4 for plan in plans().values()) > 10


def test_the_same_vms_everywhere() -> None:
    for name, plan in plans().items():
        quota, nodes = of_quota(plan), of_nodes(of_quota(plan))
        assert of_cost(plan) == quota, name
        assert of_readme(plan) == quota, name
        assert of_plan_text(plan) == nodes, name
        assert {who: vms for who, vms in nodes.items() if who[0] != "login"} == of_overview(plan), name
        if plan.network.is_new:
            assert of_picture(plan).items() >= nodes.items(), name
        definition = read_model(plan.resolved).definition
        assert definition is not None
        subnets = needed_addresses(definition)
        assert sum(count for role, count in subnets.items() if role.startswith("compute")) == sum(nodes.values()), name
        assert subnets["server"] == sum(quota.values()) - sum(nodes.values()), name


def test_preflight_needs_what_the_plan_says() -> None:
    """Where Azure says nothing of a size, the plan's figures count."""
    for name, plan in plans().items():
        limits = {limit.usage: limit.vcpus for limit in plan.quota.limits}
        if None not in limits and None not in limits.values():
            needed = {need.name.replace(" ", ""): need.most for need in needs(plan, {})}
            assert needed == {usage: vcpus for usage, vcpus in limits.items() if vcpus}, name


def test_by_hand() -> None:
    plan = plans()["several"]
    assert of_quota(plan) == {
        ("CycleCloud server", "Standard_D4as_v5"): 1,
        ("scheduler", "Standard_D4as_v5"): 2,
        ("login", "Standard_D8as_v5"): 3,
        ("partition htc", "Standard_D64ds_v5"): 10,
        ("partition mixed", "Standard_D32ds_v5"): 5,
        ("partition mixed", "Standard_NC24ads_A100_v4"): 5,
        ("jumpbox", "Standard_D2as_v5"): 1,
    }
    needed = {need.name: (need.least, need.most) for need in needs(plan, {})}
    assert needed[SPOT] == (64, 640)
    assert needed[ALL][1] == 4 + 2 * 4 + 3 * 8 + 5 * 32 + 5 * 24 + 2
    assert [(each.label, each.path, each.count, each.most, each.since) for each in plan.fleet] == [
        ("the CycleCloud server", ("server", "vm_size"), 1, 1, "deployed"),
        ("the jumpbox", ("server", "jumpbox", "vm_size"), 1, 1, "deployed"),
        ("the scheduler", ("slurm", "scheduler", "vm_size"), 2, 2, "started"),
        ("the login nodes", ("slurm", "login", "vm_size"), 1, 3, "started"),
        ("partition htc", ("slurm", "partitions", 0, "vm_size"), 0, 10, "full"),
        ("partition mixed", ("slurm", "partitions", 1, "vm_sizes", 0), 0, 5, "full"),
        ("partition mixed", ("slurm", "partitions", 1, "vm_sizes", 1), 0, 5, "full"),
    ]


def test_a_scheduler_more_is_seen_by_all_of_them() -> None:
    """What one of them counted by itself would stay."""
    one = plan_from(SEVERAL, "slurm: {scheduler: {high_availability: false}}")
    for count in (of_quota, of_cost, of_readme, of_overview, of_plan_text, of_picture):
        both = count(plans()["several"]), count(one)
        assert [each["scheduler", "Standard_D4as_v5"] for each in both] == [2, 1], count
