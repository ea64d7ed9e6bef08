"""What every kind of access declares, and that nobody but its class knows its name."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

from generator.files import assets
from generator.plan import access
from generator.plan.access import KINDS, Access
from tests.bed.plans import plan_from

PACKAGE = assets.root() / "generator"
NAMES = {kind.default("kind") for kind in KINDS}
NAMED = re.compile(rf"['\"]({'|'.join(NAMES)})['\"]")
"""A module without any of these compares with none; most need not be parsed."""
TEMPLATES = (assets.root() / "bicep_templates" / "main.bicep.j2", *(PACKAGE / "render").rglob("*.j2"))
EACH = {
    "bastion": "network: {access: bastion}",
    "hub": "network: {access: hub, hub: {vnet_id: /subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/"
    "hub/providers/Microsoft.Network/virtualNetworks/hub, address_spaces: [10.9.0.0/16]}}",
    "private": "network: {address_space: null, access: private, existing: {vnet_id: /subscriptions/00000000-0000-0000-"
    "0000-000000000000/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/corp, subnets: {server: server, "
    "compute: compute}}}",
    "public": "network: {access: public, allowed_sources: [203.0.113.0/24]}",
}


def test_every_class_is_a_kind_and_a_definition_can_ask_for_it() -> None:
    classes = {each for each in vars(access).values() if isinstance(each, type) and issubclass(each, Access)}
    assert classes - {Access} == set(KINDS)
    assert len(KINDS) == len(NAMES)
    schema = json.loads((assets.root() / "cluster_defs" / "definition.schema.json").read_text(encoding="utf-8"))
    allowed = schema["$defs"]["Network"]["properties"]["access"]["enum"]
    assert set(allowed) == NAMES == set(EACH)
    assert all(type(plan_from(EACH[kind.default("kind")]).access) is kind for kind in KINDS)


def test_what_each_kind_creates() -> None:
    plans = {name: plan_from(text) for name, text in EACH.items()}
    created = {
        name: (plan.access.creates_bastion, plan.network.hub is not None, plan.access.is_public)
        for name, plan in plans.items()
    }
    assert created == {
        "bastion": (True, False, False),
        "hub": (False, True, False),
        "private": (False, False, False),
        "public": (False, False, True),
    }
    assert {name for name, plan in plans.items() if plan.network.subnet("bastion") is not None} == {"bastion"}
    assert {name: plan.network.user_sources for name, plan in plans.items()} == {
        "bastion": (),
        "hub": ("10.9.0.0/16",),
        "private": ("VirtualNetwork",),
        "public": (),
    }
    assert "Azure Bastion" in plans["bastion"].slow_resources
    assert "Azure Bastion" not in plans["hub"].slow_resources


def names_compared(source: str) -> list[str]:
    """Comparisons of some `access`, its `kind` or `name` with the name of a kind."""
    if not NAMED.search(source):
        return []
    return [
        ast.unparse(node)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Compare)
        for sides in [[node.left, *node.comparators]]
        if {each.value for side in sides for each in ast.walk(side) if isinstance(each, ast.Constant)} & NAMES
        and any(re.search(r"\baccess\b", ast.unparse(side)) for side in sides)
    ]


def test_consumers_ask_the_kind_instead_of_comparing_names() -> None:
    modules = [path for path in PACKAGE.rglob("*.py") if path != Path(access.__file__)]
    assert len(modules) > 200
    found = {path.name: names_compared(path.read_text(encoding="utf-8")) for path in modules}
    assert {name: places for name, places in found.items() if places} == {}


@pytest.mark.parametrize(
    "source",
    [
        'network.access == "hub"',
        'plan.access.kind != "public"',
        'access in ("bastion", "hub")',
    ],
)
def test_a_comparison_is_found(source: str) -> None:
    assert names_compared(source)


def test_templates_print_and_compare_no_names() -> None:
    compared = re.compile(rf"access[a-z_.]*\s*(?:[!=]=|in)\s*\W*(?:{'|'.join(NAMES)})\b")
    assert compared.search('{% if plan.network.access == "public" %}')
    texts = {path.name: compared.findall(path.read_text(encoding="utf-8")) for path in TEMPLATES}
    assert len(texts) > 5
    assert {name: found for name, found in texts.items() if found} == {}
