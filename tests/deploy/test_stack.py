"""A deployment stack that was made by hand: `deploy` leaves it alone, others read it, `delete` ends it."""

from __future__ import annotations

import pytest

from tests.bed.arm.client import Client
from tests.bed.arm.state import OWNER
from tests.deploy.test_deploy import DEPLOY, answers, puts
from tests.what_if.place import Place

STACK = "/providers/Microsoft.Resources/deploymentStacks/minimal-southcentralus"
DETACH = dict.fromkeys(("resources", "resourceGroups", "managementGroups"), "detach")


def stacked(place: Place, mode: str = "none") -> Place:
    """What `az stack sub create` sends, with what `deploy` would send, in an empty subscription."""
    assert place(*DEPLOY)[0] == 0
    (body,) = puts(place)
    state = place.arm.renewed().state
    own = {"actionOnUnmanage": DETACH, "denySettings": {"mode": mode, "applyToChildScopes": True}}
    client, path = Client(place.arm), f"{state.scope}{STACK}"
    client("PUT", path, "2024-03-01", body | {"properties": body["properties"] | own})
    while client("GET", path, "2024-03-01").json()["properties"]["provisioningState"] != "succeeded":
        pass
    place.arm.requests.clear()
    return place


def test_deploy_leaves_a_stack_alone_and_says_what_to_do(deployable: Place) -> None:
    stacked(deployable)
    code, out, err = deployable(*DEPLOY)
    assert (code, out, deployable.arm.changes) == (1, "", [])
    assert "minimal-southcentralus is a deployment stack" in err
    assert (
        "az stack sub delete --name minimal-southcentralus --action-on-unmanage detachAll --yes ends the stack" in err
    )
    page = (deployable.folder / "output" / "minimal" / "operations.md").read_text()
    assert "\naz stack sub create --name minimal-southcentralus " in page


def test_who_may_not_read_stacks_can_deploy(deployable: Place) -> None:
    no_stacks = OWNER | {"notActions": ["Microsoft.Resources/deploymentStacks/*"]}
    deployable.arm.state.caller.roles = [(deployable.arm.state.scope, no_stacks)]
    assert deployable(*DEPLOY)[0] == 0


def test_what_only_asks_reads_the_record_of_a_stack(deployable: Place) -> None:
    code, out, _ = stacked(deployable)("diff", "minimal.yaml", "--deployed")
    assert (code, "minimal-southcentralus was deployed (20" in out, "with this folder" in out) == (0, True, True), out


@pytest.mark.parametrize("mode", ["none", "denyDelete"])
def test_delete_ends_the_stack_and_everything_else(deployable: Place, mode: str) -> None:
    stacked(deployable, mode)
    assert bool(deployable.arm.state.deny_assignments) == (mode != "none")
    answers(deployable, "minimal\n")
    code, _, err = deployable("delete", "minimal.yaml")
    assert (code, deployable.arm.refused) == (0, []), err
    gone = [each.path for each in deployable.arm.requests if each.method == "DELETE"]
    assert (gone[0].endswith(STACK), any(each.endswith(STACK) for each in gone)) == (mode != "none", True)
    assert (deployable.arm.state.deny_assignments, list(deployable.arm.state.runs)) == ([], [])
    left = {each["type"] for each in deployable.arm.state.resources.values()}
    assert "Microsoft.Resources/deploymentStacks" not in left
    assert "Microsoft.Compute/virtualMachines" not in left
