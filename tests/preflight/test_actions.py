"""The actions that are asked about are those that the deployment takes: no write is forgotten, none is invented."""

from __future__ import annotations

import pytest

from generator.azure.actions import assigned_roles, needs
from tests.bed.bicep.deployment import PLAUSIBLE, resources_of
from tests.bed.bicep.place import SUBSCRIPTION
from tests.bed.bicep.values import Resource
from tests.bed.plans import plan_from
from tests.bicep.variants import rendered_files
from tests.plan.test_created_types import TEXTS

HUB = {"HUB_VNET_ID": PLAUSIBLE["hubVnetId"]}
GROUP = "Microsoft.Resources/resourceGroups"


def written(resource: Resource) -> tuple[str, str]:
    """Where and what Azure checks when it creates a resource; groups have a name of their own there."""
    kind = "Microsoft.Resources/subscriptions/resourceGroups" if resource.type == GROUP else resource.type
    return str(resource.id).lower(), f"{kind}/write".lower()


@pytest.mark.parametrize("name", TEXTS)
def test_every_write_is_asked_about_where_it_happens(name: str) -> None:
    plan = plan_from(TEXTS[name])
    asked = {
        (need.scope.replace("{subscription}", SUBSCRIPTION).lower(), action.lower())
        for need in needs(plan, HUB)
        for action in need.actions
        if action.endswith("/write")
    }
    used: set[tuple[str, str]] = set()
    resources = resources_of(rendered_files(plan))
    for resource_id, action in map(written, resources):
        covering = {(scope, what) for scope, what in asked if what == action and resource_id.startswith(f"{scope}/")}
        assert covering, (resource_id, action)
        used |= covering
    assert asked == used
    roles = {
        str(each.body["properties"]["roleDefinitionId"]).rpartition("/")[2]
        for each in resources
        if each.type == "Microsoft.Authorization/roleAssignments"
    }
    assert set(assigned_roles(plan)) == roles


def test_each_need_is_at_a_key_of_the_definition() -> None:
    plan = plan_from(TEXTS["everything"])
    assert {need.path[0] for need in needs(plan, {})} <= {
        "azure",
        "network",
        "server",
        "storage",
        "slurm",
        "monitoring",
        "security",
    }
