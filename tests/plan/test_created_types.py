"""The types that a definition is said to create are those that Azure receives, no more and no fewer."""

from __future__ import annotations

import json

import pytest

from generator.definition.model.definition import Definition
from generator.definition.read import read_model
from generator.definition.text.source import load
from generator.plan.created_types import created_types
from tests.bed.bicep.deployment import resources_of
from tests.bed.plans import SMALL, merged, plan_from
from tests.bed.yaml_data import yaml_data
from tests.bicep import variants
from tests.bicep.variants import rendered_files

IN_A_NETWORK = f"""
network:
  access: public
  allowed_sources: [203.0.113.0/24]
  address_space: null
  existing: {{vnet_id: {variants.VNET_ID}, subnets: {{server: servers, compute: nodes}}}}
"""
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
    "existing server behind a hub": variants.EXISTING_SERVER_BEHIND_A_HUB,
    "firewall": "{network: {next_hop: 10.0.1.4}}",
    "registered by a policy": "{network: {blob_dns_zone: none}}",
}


def definition_of(change: str) -> Definition:
    text = json.dumps(merged(yaml_data(SMALL), yaml_data(change)))
    definition = read_model(load(text.encode(), "x.yaml", {}).data).definition
    assert definition is not None
    return definition


@pytest.mark.parametrize("name", TEXTS)
def test_every_type_is_named(name: str) -> None:
    resources = resources_of(rendered_files(plan_from(TEXTS[name])))
    created = {each.type for each in resources if not each.is_deployment}
    assert {each.type for each in created_types(definition_of(TEXTS[name]))} == created
