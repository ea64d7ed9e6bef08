"""The types that a definition is said to create are those that Azure receives, no more and no fewer."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import reduce

import pytest
from msgspec.structs import replace

from generator.azure.actions import assigned_roles, needs
from generator.definition.model.definition import Definition
from generator.definition.read import read_model
from generator.definition.text.source import load
from generator.plan.created_types import TITLES, created_types
from generator.plan.resources import providers
from generator.rules.landing_zone import PublicAddress, PublicAddressOnVm, RoleAssignment
from tests.bed.bicep.deployment import PLAUSIBLE, resources_of
from tests.bed.plans import SMALL, merged, plan_from
from tests.bed.yaml_data import yaml_data
from tests.bicep import variants
from tests.bicep.variants import rendered_files
from tests.rules.annotations import site_of

IN_A_NETWORK = f"""
network:
  access: public
  allowed_sources: [203.0.113.0/24]
  address_space: null
  existing: {{vnet_id: {variants.VNET_ID}, subnets: {{server: servers, compute: nodes}}}}
"""


WITH_CONTAINERS = f"""
{variants.EXISTING_SERVER.replace("{compute: compute}", "{compute: compute, endpoints: endpoints}")}
  blob_dns_zone: {variants.ZONE_ID}
storage: {{mounts: [{{path: /sets, type: blob, storage_account: labdata0001, container: c4-sets, create: true}}]}}
"""


def text_of(*changes: str) -> str:
    return json.dumps(reduce(merged, map(yaml_data, (SMALL, *changes))))


TEXTS = {
    "small": "{}",
    "public": variants.PUBLIC,
    "public in an existing network": IN_A_NETWORK,
    "central zones": variants.CENTRAL_ZONES,
    "existing network": variants.EXISTING_NETWORK,
    "existing group": variants.EXISTING_GROUP,
    "everything": variants.EVERYTHING,
    "hardened": variants.HARDENED,
    "existing server": variants.EXISTING_SERVER,
    "existing server and new containers": WITH_CONTAINERS,
    "existing server behind a hub": variants.EXISTING_SERVER_BEHIND_A_HUB,
    "firewall": "{network: {next_hop: 10.0.1.4}}",
    "registered by a policy": "{network: {blob_dns_zone: none}}",
}


def definition_of(change: str) -> Definition:
    definition = read_model(load(text_of(change).encode(), "x.yaml", {}).data).definition
    assert definition is not None
    return definition


@pytest.mark.parametrize("name", TEXTS)
def test_every_type_is_named(name: str) -> None:
    resources = resources_of(rendered_files(plan_from(TEXTS[name])))
    created = {each.type for each in resources if not each.is_deployment}
    assert {each.type for each in created_types(definition_of(TEXTS[name]))} == created


DENIED = "landing_zone: {no_public_ip: true, no_public_ip_on_vms: true, no_role_assignments: true}"
REWORDED: dict[str, Callable[[str], str]] = {
    "backwards": lambda text: text[::-1],
    "all the same": lambda _: "the public server",
}


def decisions(change: str) -> object:
    """Of what is created: rights, roles, resource providers, and what a landing zone denies of it."""
    created, plan = created_types(definition_of(change)), plan_from(change)
    wanted = needs(replace(plan, created_types=created), {"HUB_VNET_ID": PLAUSIBLE["hubVnetId"]})
    site = site_of(load(text_of(change, DENIED).encode(), "x.yaml", {}), {})
    assert site is not None
    rules = (PublicAddress(), PublicAddressOnVm(), RoleAssignment())
    return (
        [(need.scope, need.actions, need.path) for need in wanted],
        assigned_roles(replace(plan, created_types=created)),
        providers(created, plan.monitoring, plan.image_terms),
        [(each.rule_id, each.path) for rule in rules for each in rule.check(site)],
    )


@pytest.mark.parametrize("change", REWORDED)
@pytest.mark.parametrize("name", TEXTS)
def test_no_decision_hangs_on_words_for_people(name: str, change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = decisions(TEXTS[name])
    monkeypatch.setattr(
        "generator.plan.created_types.TITLES", {each: REWORDED[change](title) for each, title in TITLES.items()}
    )
    assert decisions(TEXTS[name]) == usual
    titles = {each.title for each in created_types(definition_of(TEXTS[name])) if each.purpose in TITLES}
    assert titles <= {REWORDED[change](title) for title in TITLES.values()}
