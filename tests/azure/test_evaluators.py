"""Two evaluators read one network, as text and as the compiler's output, and agree on all that Azure would receive."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from generator.files.file import Files, text
from generator.render.bicep import bicep_literal
from tests.azure.compiled import NAMES, compiled_resources
from tests.bed.bicep.deployment import resources_of
from tests.bed.bicep.values import Resource

MODULE = Path(__file__).with_name("network-f798d83.bicep").read_text()
"""`network.bicep` of the commit from which the compiled copies are."""


def network_of(name: str) -> tuple[dict[str, Any], list[Resource]]:
    """Parameters of the network's deployment, and what it leads to."""
    resources = compiled_resources(name)
    (call,) = (each for each in resources if each.is_deployment and each.name == "cycleforge-network")
    given = {key: one["value"] for key, one in call.properties["parameters"].items()}
    return given, [each for each in resources if each.symbol.startswith(f"{call.symbol}/")]


@pytest.mark.parametrize("name", NAMES)
def test_both_evaluators_agree(name: str) -> None:
    given, compiled = network_of(name)
    group = compiled[0].scope.rpartition("/")[2]
    main = f"""targetScope = 'subscription'
resource group 'Microsoft.Resources/resourceGroups@2025-04-01' existing = {{
  name: '{group}'
}}
module network 'network.bicep' = {{
  name: 'cycleforge-network'
  scope: group
  params: {bicep_literal(given, 2)}
}}
"""
    files: Files = {PurePosixPath("main.bicep"): text(main), PurePosixPath("network.bicep"): text(MODULE)}
    read = [each for each in resources_of(files) if not each.is_deployment]
    assert len(read) >= 4
    assert [plain(each) for each in read] == [plain(each) for each in compiled]


def plain(resource: Resource) -> object:
    """All that Azure receives."""
    return (resource.type, resource.api_version, resource.name, resource.id, resource.scope, resource.body)
