"""Every line that `--print` prints, and the blocks of the README, typed with the real `az`."""

from __future__ import annotations

import json
import re
from itertools import takewhile

import pytest

from tests.az.user import User
from tests.bed.arm.state import State
from tests.bed.bicep.place import SUBSCRIPTION
from tests.preflight.test_networks import HUB, VNET, ZONE, healthy

NETWORK = f"""
name: existing
location: southcentralus
admin: {{ssh_public_key: "${{CYCLECLOUD_SSH_PUBLIC_KEY}}"}}
network:
  blob_dns_zone: {ZONE}
  existing: {{vnet_id: {VNET}, subnets: {{server: server, compute: compute, netapp: files, lustre: lustre}}}}
storage:
  home: {{type: anf, size_tib: 4}}
  mounts: [{{path: /data, type: amlfs, tier: 500, size_tib: 4}}]
slurm: {{partitions: [{{name: htc, vm_size: Standard_D64ds_v5, max_nodes: 20}}]}}
"""
PEERED = f"""
name: peered
location: southcentralus
admin: {{ssh_public_key: "${{CYCLECLOUD_SSH_PUBLIC_KEY}}"}}
network:
  address_space: 10.50.0.0/22
  access: hub
  hub: {{vnet_id: {HUB}, use_remote_gateway: true, address_spaces: [10.0.0.0/16]}}
  blob_dns_zone: {ZONE}
slurm: {{partitions: [{{name: htc, vm_size: Standard_D64ds_v5, max_nodes: 20}}]}}
"""
DEFINITIONS = {"gpt3-h100": "", "existing": NETWORK, "peered": PEERED}
OTHERWISE = {
    "az login": "a browser; the user of these tests is signed in",
    "az bicep": "downloads the compiler",
    "az extension": "downloads an extension",
    "az network bastion tunnel": "of that extension",
    "ssh ": "goes to the server",
    "--template-file main.bicep\n": "asks for passwords at the terminal",
}
"""Blocks of the README that are not typed, by what is in them, and why."""


def ready(user: User, name: str) -> None:
    """What the definition says is there."""
    if name == "gpt3-h100":
        return
    state = user.arm.state
    healthy(state)
    for number, subnet in enumerate(state.resources[VNET.lower()]["properties"]["subnets"]):
        subnet["properties"]["addressPrefix"] = f"10.20.{number}.0/24"


@pytest.mark.parametrize("name", DEFINITIONS)
def test_preflight_asks_what_its_lines_ask(user: User, name: str) -> None:
    """All there is to see, after a deployment."""
    ready(user, name)
    given = user.deployed(name, DEFINITIONS[name])
    user.arm.requests.clear()
    lines = user.cycleforge("preflight", given, "--print").splitlines()
    ours = {each.line.lower() for each in user.arm.requests}
    theirs = {each.lower() for line in lines for each in user.types(line).asked}
    scope = f"get /subscriptions/{SUBSCRIPTION}"
    # `az account show` reads what `az login` has kept; `az resource list` takes its group for a filter.
    others = {scope, f"{scope}/resourcegroups/{name}-rg/resources"}
    assert ours - theirs == others & ours
    assert f"{scope}/resources" in theirs or others - ours


def test_what_fix_would_do_is_done_by_its_lines(user: User) -> None:
    given = user.built("gpt3-h100")
    user.arm.state.providers["Microsoft.NetApp"]["registrationState"] = "NotRegistered"
    for document in user.arm.state.documents.values():
        if isinstance(document, dict) and "accepted" in document.get("properties", {}):
            document["properties"]["accepted"] = False
    lines = user.cycleforge("preflight", given, "--print", "--fix", code=1).splitlines()
    assert len(lines) == 2
    for line in lines:
        user.types(line)
    user.cycleforge("preflight", given)


@pytest.mark.parametrize("name", DEFINITIONS)
def test_what_the_lines_deploy_the_lines_delete(user: User, name: str) -> None:
    ready(user, name)
    before = set(user.arm.state.resources)
    given = user.built(name, DEFINITIONS[name])
    asked = user.types(user.cycleforge("what-if", given, "--print")).asked
    assert any(each.endswith("/whatIf") for each in asked)
    assert set(user.arm.state.resources) == before
    shown = user.types(user.cycleforge("deploy", given, "--print"))
    assert "Succeeded" in shown.out
    assert "nothing changes" in user.cycleforge("what-if", given)
    for line in user.cycleforge("diff", given, "--deployed", "--print").splitlines():
        last = user.types(line)
    assert any(each.endswith("/whatIf") for each in last.asked)
    node = with_node(user.arm.state, given.removesuffix(".yaml"))
    for line in user.cycleforge("delete", given, "--print").splitlines():
        last = user.types(line)
        user.arm.state.resources.pop(node, None)  # The cluster ends while its line runs.
    assert json.loads(last.out) == []
    assert set(user.arm.state.resources) == before
    assert "nothing of it exists" in user.cycleforge("delete", given, "--yes", given.removesuffix(".yaml"))


def test_a_stack_is_made_looked_at_and_deleted_by_the_lines_of_its_page(user: User) -> None:
    before = set(user.arm.state.resources)
    given = user.built("gpt3-h100")
    lines = user.cycleforge("deploy", given, "--print").splitlines()
    beginning = takewhile(lambda line: not line.startswith("az deployment "), lines)
    create, show, end = user.blocks("Deployment stack", page="operations.md")
    user.types("\n".join([*beginning, create]))
    user.cycleforge("deploy", given, "--yes", "--no-preflight", code=1)
    assert "succeeded" in user.types(show).out
    assert any(line.endswith("/virtualMachines/gpt3-h100-server") for line in user.types(end).out.splitlines())
    assert set(user.arm.state.resources) == before


def with_node(state: State, name: str) -> str:
    """A machine of the cluster; its key in the state."""
    machine = f"{state.scope}/resourceGroups/{name}-rg/providers/Microsoft.Compute/virtualMachines/htc-1"
    state.put(machine, location="southcentralus", tags={"cycleforge": name})
    state.shell = lambda machine, script: ("Terminating cluster\ncycleforge-exit=0\n", "")
    return machine.lower()


@pytest.mark.parametrize("name", DEFINITIONS)
def test_the_readme_takes_a_deployment_from_its_beginning_to_its_end(user: User, name: str) -> None:
    ready(user, name)
    before = set(user.arm.state.resources)
    user.built(name, DEFINITIONS[name])
    for block in user.blocks("Prerequisites", "Deploy", "Watch"):
        if not any(word in block for word in OTHERWISE):
            assert "stop" not in user.types(block.replace('"${EDITOR:-vi}" .envrc', ":")).out
    assert any(key.endswith(f"{name}-server") for key in user.arm.state.resources)
    for block in user.blocks("Update", "Delete"):
        if not any(word in block for word in OTHERWISE):
            last = user.types(block)
    assert last.out == ""
    assert set(user.arm.state.resources) == before


@pytest.mark.parametrize("name", ["gpt3-h100"])
def test_a_table_has_all_columns_that_are_asked_for(user: User, name: str) -> None:
    """`az` leaves `id` and some other names out of a table."""
    user.built(name)
    tables = [
        line
        for block in user.blocks("Prerequisites", "Watch")
        for line in block.splitlines()
        if re.search(r"--query '\{.*--output table", line)
    ]
    assert tables
    for line in tables:
        head = user.types(line).out.splitlines()[0].split()
        assert len(head) == line.split("--query '{")[1].partition("}")[0].count(": ")
