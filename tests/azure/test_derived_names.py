"""The list of names that CycleForge makes up is complete: it is compared with what Azure receives."""

from __future__ import annotations

import re

import pytest

from generator import catalog
from generator.plan.deployment import Plan
from generator.plan.derived_names import UNIQUE, derived_names
from tests.azure.demands import name_limits
from tests.azure.test_demands import MORE, variant
from tests.bed.bicep.values import Resource
from tests.bicep.variants import VARIANTS

FIXED = {
    "Microsoft.Network/privateDnsZones": r"privatelink\.blob\..*",
    "Microsoft.Network/networkSecurityGroups/securityRules": "AllowUsers",
    "Microsoft.Network/virtualNetworks/virtualNetworkPeerings": "to-hub",
    "Microsoft.Resources/deployments": r"cycleforge-.*",
}
"""Of types that have other names, too, those that the definition does not decide."""
NESTED = "-read-fingerprints"
"""The longest ending of a nested deployment that the template has itself."""


def given_names(plan: Plan) -> set[str]:
    """What the definition names, under rules of its own."""
    accounting = plan.slurm.accounting if plan.slurm else None
    database = accounting.server_name if accounting else None
    mounts = {getattr(mount, key) for mount in plan.mounts for key in mount.azure_names}
    return {str(name) for name in (plan.locker.account_name, database, *mounts) if name}


def parts(resource: Resource) -> list[tuple[str, str]]:
    """(type, name) of a resource and of what its properties list by names."""
    network = "Microsoft.Network"
    lists = {
        "subnets": f"{network}/virtualNetworks/subnets",
        "securityRules": f"{network}/networkSecurityGroups/securityRules",
    }
    listed = [(kind, item["name"]) for key, kind in lists.items() for item in resource.properties.get(key) or []]
    return [(resource.type, resource.name), *listed]


@pytest.mark.parametrize("name", [*VARIANTS, *MORE])
def test_every_name_that_azure_receives_is_in_the_list(name: str) -> None:
    plan = (VARIANTS | MORE)[name]()
    listed = {(each.type, each.name) for each in derived_names(plan)}
    given = given_names(plan)
    missing = [
        (kind, own)
        for resource in variant(name)
        for kind, own in parts(resource)
        if kind in catalog.resource_names().names
        and not re.fullmatch(FIXED.get(kind, "(?!)"), own)
        and own not in given
        and (kind, own) not in listed
        and (kind, f"{own[:-13]}{UNIQUE}") not in listed
        and not (kind == "Microsoft.Resources/deployments" and own.startswith(f"{plan.nested_stem}-"))
    ]
    assert missing == []


def test_a_type_of_the_list_has_limits_and_every_row_is_of_a_type_that_azure_receives() -> None:
    received = {kind for name in [*VARIANTS, *MORE] for resource in variant(name) for kind, _ in parts(resource)}
    assert set(name_limits()) == received


def test_the_longest_name_of_a_nested_deployment_fits() -> None:
    plan = MORE["long names"]()
    assert len(plan.name) == 40
    longest = max(len(each.name) for each in variant("long names") if each.type == "Microsoft.Resources/deployments")
    assert (
        max(longest, len(plan.name) + len(NESTED))
        <= catalog.resource_names().names["Microsoft.Resources/deployments"].max
    )


def test_every_type_has_words_for_messages() -> None:
    for kind, row in catalog.resource_names().names.items():
        assert re.fullmatch(r"(a|an|the) [A-Za-z ]+", row.words), kind
