"""The upgrade of CycleCloud as the deployment's own operations.md says it, from every release to every later one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from generator import catalog
from tests.answers import data_of
from tests.bed.plans import KEY, merged
from tests.bicep.variants import FIRST_GROUP
from tests.cli.running import Run

pytestmark = pytest.mark.usefixtures("own_place")
NEWER = "8.10.1"
"""A release that came after the table."""
MADE_OF = [row.cyclecloud for row in catalog.releases() if row.image_version and row.slurm.startswith("25.")]
"""Releases whose image a server may have been created from."""
WAYS = [
    (one, other)
    for one in MADE_OF
    for other in (NEWER, *(row.cyclecloud for row in catalog.releases()))
    if catalog.is_newer(other, one)
]
IMAGE = (
    "/subscriptions/11111111-2222-3333-4444-555555555555/resourceGroups/images/providers/Microsoft.Compute/images/cc"
)


def definition(server: dict[str, str]) -> dict[str, Any]:
    return {
        "name": "upgraded",
        "location": "southcentralus",
        "admin": {"ssh_public_key": KEY},
        "server": server,
        "slurm": {"partitions": [{"name": "htc", "vm_size": "Standard_D4ads_v5", "max_nodes": 2}]},
    }


def documented(folder: Path, release: str) -> Any:
    """The lines that the section of operations.md has for the definition, with the release filled in."""
    text = (folder / "operations.md").read_text(encoding="utf-8")
    section = text.partition("## Upgrade CycleCloud\n")[2].partition("\n## ")[0]
    (lines,) = re.findall(r"```yaml\n(.*?)```", section, re.DOTALL)
    assert lines.count("NEW_RELEASE") == 1
    return yaml.safe_load(lines.replace("NEW_RELEASE", release))


def built(run: Run, content: dict[str, Any]) -> None:
    Path("upgraded.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    code, _, err = run("build", "upgraded.yaml", "--out", "out")
    assert code == 0, err


def compared(run: Run, content: dict[str, Any]) -> dict[str, Any]:
    """What `diff` says of another definition than the built one."""
    Path("upgraded.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    said: dict[str, Any] = data_of(run("diff", "upgraded.yaml", "--out", "out", "--json")[1])
    assert said["ok"], said
    return said


def walked(run: Run, before: dict[str, Any], release: str) -> dict[str, Any]:
    """Build, upgrade as documented, validate, compare, build again; what `diff` says."""
    folder = Path("out/upgraded")
    built(run, before)
    after = merged(before, documented(folder, release))
    said = compared(run, after)
    code, _, err = run("validate", "upgraded.yaml")
    assert code == 0, err
    built(run, after)
    assert f"CycleCloud {release}" in (folder / "README.md").read_text(encoding="utf-8")
    return said


def costs(said: dict[str, Any]) -> Iterator[tuple[str, str]]:
    return ((each["where"], each["cost"]) for each in said["changes"])


@pytest.mark.parametrize(("one", "other"), WAYS)
def test_the_documented_upgrade_ends_in_a_folder_that_builds(one: str, other: str, run: Run) -> None:
    said = walked(run, definition({"release": one}), other)
    assert [each for each in costs(said) if each[1] == "recreate"] == []
    assert ("definition.server.release", "in place") in list(costs(said))
    assert [where for where, _ in costs(said) if where.startswith("derived.server.image")] == []


def test_a_server_of_the_default_release_is_upgraded_as_well(run: Run) -> None:
    assert walked(run, definition({}), NEWER)["worst"] == "in place"


def test_a_server_of_ones_own_image_needs_the_release_alone(run: Run) -> None:
    assert walked(run, definition({"image_id": IMAGE, "release": "8.9.1"}), NEWER)["worst"] == "in place"


@pytest.mark.parametrize(("one", "other"), WAYS)
def test_an_existing_server_is_upgraded_by_its_owner(one: str, other: str, run: Run) -> None:
    vm = f"{FIRST_GROUP}/Microsoft.Compute/virtualMachines/first-server"
    locker = f"{FIRST_GROUP}/Microsoft.Storage/storageAccounts/firstlocker0001"
    vnet = f"{FIRST_GROUP}/Microsoft.Network/virtualNetworks/first-vnet"
    before = definition({}) | {
        "admin": {},
        "server": {"existing": {"vm_id": vm, "release": one, "locker_account_id": locker}},
        "network": {"existing": {"vnet_id": vnet, "subnets": {"compute": "compute"}}},
    }
    said = walked(run, before, other)
    assert [each for each in costs(said) if each[1] == "recreate"] == []
    assert ("definition.server.existing.release", "in place") in list(costs(said))


def test_another_image_is_still_another_server(run: Run) -> None:
    """What is written down of an image that a VM has may only be what it was."""
    built(run, definition({}))
    assert compared(run, definition({"image_version": "8.9.320260901"}))["worst"] == "recreate"
