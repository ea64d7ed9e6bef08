"""A definition that says that its server was upgraded, before there is a server."""

from __future__ import annotations

import pytest

from tests.bed.arm import Arm
from tests.bed.bicep.place import SUBSCRIPTION
from tests.bed.plans import plan_from
from tests.preflight.asked import found_by

UPGRADED = plan_from("{server: {image_version: 8.9.120260630, release: 8.9.3}, slurm: {project_version: 4.0.9}}")
GROUP = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/minimal-rg"


def test_an_upgraded_server_that_does_not_exist_is_found(arm: Arm) -> None:
    assert found_by(arm, UPGRADED) == ["E4405"]


def test_one_that_exists_is_fine(arm: Arm) -> None:
    arm.state.put(GROUP, location="southcentralus", tags={"cycleforge": "minimal"})
    arm.state.put(f"{GROUP}/providers/Microsoft.Compute/virtualMachines/minimal-server", location="southcentralus")
    assert "E4405" not in found_by(arm, UPGRADED)


@pytest.mark.parametrize("server", ["{}", "{release: 8.9.0}", "{image_version: 8.9.320260901}"])
def test_a_new_server_with_the_release_of_its_image_is_fine(server: str, arm: Arm) -> None:
    assert "E4405" not in found_by(arm, plan_from(f"server: {server}"))
