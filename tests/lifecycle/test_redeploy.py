"""Deploying again, played with the README's own lines against a server that exists."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from generator.files import assets
from generator.plan.deployment import Plan
from generator.plan.server import ServerPlan
from generator.render.bootstrap import CLOUD_INIT
from tests.bed.plans import plan_from
from tests.bicep.variants import EXISTING_GROUP
from tests.lifecycle.azure import Azure, identifier_of
from tests.lifecycle.readme import paste, section
from tests.lifecycle.world import IMAGE, KEY, OURS, SERVER_PRINCIPAL, build, custom_data

COLLEAGUE = "ssh-ed25519 AAAASECOND second@example"


def server_of(plan: Plan) -> ServerPlan:
    """The server that the deployment creates."""
    assert plan.server is not None
    return plan.server


def sends(plan: Plan, **changes: str | int) -> dict[str, Any]:
    """What main.bicep and the parameter file of a colleague say of the server's VM."""
    vm = identifier_of("Microsoft.Compute/virtualMachines", plan.resource_group, server_of(plan).vm_name)
    return {"vm": vm, "key": KEY, "image": IMAGE, "custom_data": custom_data()} | changes


def deployed_again(azure: Azure, plan: Plan, folder: Path, **changes: str | int) -> str:
    """Paste the section Update, without the lines of cycleforge; what `az` refuses."""
    azure.sent = sends(plan, **changes)
    blocks = [block for block in section(plan, "Update") if block.startswith(("CYCLEFORGE_", "az deployment"))]
    assert len(blocks) == (3 if plan.creates_database else 2)
    return paste(azure, folder, blocks).stderr


@pytest.mark.parametrize("group", ["{}", EXISTING_GROUP])
@pytest.mark.parametrize(
    "changes", [{}, {"key": COLLEAGUE}, {"image": "8.10.120270101"}, {"key": COLLEAGUE, "image": "8.10.120270101"}]
)
def test_another_key_and_another_release_are_no_obstacle(changes: dict[str, str], group: str, tmp_path: Path) -> None:
    plan = plan_from(group)
    azure = build(plan)
    groups = {name: dict(values) for name, values in azure.groups.items()}
    assert deployed_again(azure, plan, tmp_path, **changes) == ""
    assert azure.groups == groups


@pytest.mark.parametrize("grown", [32, 64])
def test_a_database_that_has_grown_is_no_obstacle(grown: int, tmp_path: Path) -> None:
    plan = plan_from("{network: {address_space: 10.50.0.0/20}, slurm: {accounting: {type: new}}}")
    azure = build(plan)
    (database,) = azure.of_kind("Microsoft.DBforMySQL/flexibleServers", plan.resource_group)
    database["storage"]["storageSizeGb"] = grown
    assert deployed_again(azure, plan, tmp_path, storage=32) == ""
    azure.sent = sends(plan, storage=32)
    deploy = next(block for block in section(plan, "Update") if block.startswith("az deployment sub what-if"))
    assert ("InvalidStorageSize" in paste(azure, tmp_path, [deploy]).stderr) is (grown > 32)


def test_the_stand_in_refuses_what_azure_refuses(tmp_path: Path) -> None:
    plan = plan_from()
    azure = build(plan)
    azure.sent = sends(plan, key=COLLEAGUE)
    deploy = next(block for block in section(plan, "Update") if block.startswith("az deployment sub what-if"))
    assert "linuxConfiguration.ssh.publicKeys" in paste(azure, tmp_path, [deploy]).stderr
    assert "customData" in deployed_again(azure, plan, tmp_path, custom_data="edited")


def test_a_new_server_beside_the_kept_data_disk(tmp_path: Path) -> None:
    """Procedure and deployment: with another key, image and first-boot text, and without a role of the old identity."""
    plan = plan_from()
    azure = build(plan)
    data = [each for each in azure.resources if "_disk2_" in each]
    before = {each for each, found in azure.resources.items() if found["by"] == OURS}
    terminate, _, make_room, *_ = section(plan, "A new server", "operations.md")
    assert paste(azure, tmp_path, [terminate, make_room]).stderr == ""
    assert [each for each in azure.resources if "_disk2_" in each] == data
    assert azure.resources[data[0]]["tags"]["cycleforge"] == plan.name
    assert not [found for found in azure.assignments.values() if found["principalId"] == SERVER_PRINCIPAL]
    name = server_of(plan).vm_name
    gone = {each.rsplit("/", 1)[1] for each in before if each not in azure.resources}
    assert gone == {name, f"{name}-nic", "cycleforge-bootstrap"}
    changes = {"key": COLLEAGUE, "image": "8.10.120270101", "custom_data": "edited"}
    assert deployed_again(azure, plan, tmp_path, **changes) == ""
    vm = azure.resources[azure.sent["vm"]]
    assert vm["osProfile"]["linuxConfiguration"]["ssh"]["publicKeys"][0]["keyData"] == COLLEAGUE


def test_deploying_again_after_the_data_was_kept(tmp_path: Path) -> None:
    """The group is still this deployment's, and a new server with another key takes the place of the old one."""
    plan = plan_from()
    azure = build(plan)
    assert paste(azure, tmp_path, section(plan, "Delete, and keep the data", "operations.md")).returncode == 0
    guard = next(block for block in section(plan, "Deploy") if "echo stop" in block)
    assert paste(azure, tmp_path, [guard]).stdout == ""
    assert deployed_again(azure, plan, tmp_path, key=COLLEAGUE, custom_data="edited") == ""
    assert azure.sent["vm"] in azure.resources
    assert len([each for each in azure.resources if "_disk2_" in each]) == 1


def test_the_custom_data_of_servers_that_exist_is_locked() -> None:
    """Azure refuses other custom data for a VM that exists, so a changed text stops every redeploy."""
    recorded = (Path(__file__).parents[1] / "bootstrap/cloud-init.sha256").read_text().split()[0]
    digest = hashlib.sha256((assets.root() / CLOUD_INIT).read_bytes()).hexdigest()
    assert digest == recorded, (
        f"{CLOUD_INIT} has changed, and Azure refuses to deploy it to a server that exists. Put what is new into "
        "bootstrap/start.sh or the program beside it, which run again in every deployment. If it must be here, every "
        "existing server has to be made anew (operations.md, 'A new server'); record the text with "
        "`sha256sum bootstrap/cloud-init.yaml >tests/bootstrap/cloud-init.sha256`"
    )
