"""`cycleforge deploy --stack`, and what `diff --deployed` and `delete` make of a deployment stack."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.bed.arm import failures
from tests.bed.arm.state import OWNER, READER
from tests.deploy.test_deploy import answers, running
from tests.what_if.place import PASSWORD, Place

STACK = "/providers/Microsoft.Resources/deploymentStacks/minimal-southcentralus"
DEPLOY = ("deploy", "minimal.yaml", "--no-preflight", "--yes", "--stack")


def puts(place: Place) -> list[dict[str, Any]]:
    return [each.body for each in place.arm.requests if each.method == "PUT" and each.path.endswith(STACK)]


def stack(place: Place) -> dict[str, Any]:
    found: dict[str, Any] = place.arm.state.resources[f"{place.arm.state.scope}{STACK}".lower()]
    return found


def test_it_deploys_as_a_stack_that_detaches_and_denies_nothing(deployable: Place) -> None:
    code, out, err = deployable(*DEPLOY)
    assert (code, deployable.arm.refused) == (0, []), err
    assert "to create:" in out
    assert "clusterName" in out
    assert "cycleforge-bootstrap: running" in err
    assert "cycleforge-server: done after" in err
    (sent,) = puts(deployable)
    detach = dict.fromkeys(("resources", "resourceGroups", "managementGroups"), "detach")
    assert (sent["properties"]["actionOnUnmanage"], sent["properties"]["denySettings"]) == (detach, {"mode": "none"})
    assert sent["properties"]["parameters"]["adminPassword"] == {"value": PASSWORD}
    assert sent["tags"]["cycleforge"] == "minimal"
    assert [each.path for each in deployable.arm.requests if each.method == "PUT"] == [
        f"{deployable.arm.state.scope}{STACK}"
    ]
    assert deployable(*DEPLOY)[0] == 0, "once more"
    assert "was deployed" in deployable("diff", "minimal.yaml", "--deployed")[1]


def test_a_stack_does_not_become_a_plain_deployment_by_leaving_the_flag_out(deployable: Place) -> None:
    assert deployable(*DEPLOY)[0] == 0
    deployable.arm.requests.clear()
    code, _, err = deployable(*DEPLOY[:-1])
    assert (code, "give --stack" in err, deployable.arm.changes) == (1, True, [])


def test_a_plain_deployment_that_runs_is_not_taken_for_a_stack(deployable: Place) -> None:
    running(deployable)
    code, _, err = deployable(*DEPLOY)
    assert (code, "but not as a stack" in err, deployable.arm.changes) == (1, True, [])


def test_who_may_not_read_stacks_can_deploy_without(deployable: Place) -> None:
    no_stacks = OWNER | {"notActions": ["Microsoft.Resources/deploymentStacks/*"]}
    deployable.arm.state.caller.roles = [(deployable.arm.state.scope, no_stacks)]
    assert deployable(*DEPLOY[:-1])[0] == 0
    code, _, err = deployable(*DEPLOY)
    assert (code, "your account may not do this" in err) == (4, True)


def test_the_same_command_attaches(deployable: Place) -> None:
    deployable.arm.lose("PUT", f"*{STACK}", after_effect=True, times=1)
    deployable.arm.state.pace = 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("generator.cli.live.news", interrupted)
        assert deployable(*DEPLOY)[0] == 130
    code, out, err = deployable("deploy", "minimal.yaml", "--stack")
    assert (code, "is being deployed since" in err, "is deployed" in out) == (0, True, True)
    sent = [each.status for each in deployable.arm.requests if each.method == "PUT"]
    assert sent == [0, 409], "the transport tries once more, and Azure refuses"


def interrupted(*_: Any) -> list[str]:
    raise KeyboardInterrupt


def test_a_failure_is_its_innermost_cause(deployable: Place) -> None:
    deployable.arm.state.breakages.append(("*/virtualMachines/*", failures.allocation_failed()))
    code, _, err = deployable(*DEPLOY)
    assert code == 4
    assert "virtualMachines minimal-server: Azure has no free machine of this size there now\n" in err
    assert "DeploymentStackDeploymentFailed" not in err


@pytest.mark.parametrize("mode", ["none", "denyDelete"])
def test_delete_ends_the_stack_and_everything_else(deployable: Place, mode: str) -> None:
    assert deployable(*DEPLOY)[0] == 0
    if mode != "none":
        stack(deployable)["properties"]["denySettings"] = {"mode": mode, "applyToChildScopes": True}
        assert deployable(*DEPLOY)[0] == 0
        assert puts(deployable)[-1]["properties"]["denySettings"] == {"mode": mode, "applyToChildScopes": True}
        assert deployable.arm.state.deny_assignments
    deployable.arm.requests.clear()
    answers(deployable, "minimal\n")
    code, _, err = deployable("delete", "minimal.yaml")
    assert (code, deployable.arm.refused) == (0, []), err
    gone = [each.path for each in deployable.arm.requests if each.method == "DELETE"]
    assert (gone[0].endswith(STACK), any(each.endswith(STACK) for each in gone)) == (mode != "none", True)
    assert (deployable.arm.state.deny_assignments, list(deployable.arm.state.runs)) == ([], [])
    left = {each["type"] for each in deployable.arm.state.resources.values()}
    assert "Microsoft.Resources/deploymentStacks" not in left
    assert "Microsoft.Compute/virtualMachines" not in left


def test_who_may_only_read_begins_nothing(deployable: Place) -> None:
    deployable.arm.state.caller.roles = [(deployable.arm.state.scope, READER)]
    code, _, _ = deployable("deploy", "minimal.yaml", "--yes", "--stack")
    assert (code, deployable.arm.changes) == (1, [])


def found(place: Place, *words: str) -> list[tuple[str, str, str]]:
    """Rule, message and hint of what preflight finds."""
    result = json.loads(place("preflight", "minimal.yaml", "--json", *words)[1])
    assert place.arm.changes == []
    return [(row["rule"], row["message"], row["hint"] or "") for row in result["problems"] + result["not_known"]]


def test_preflight_looks_at_the_rights_of_the_stack_where_one_is_wanted(deployable: Place) -> None:
    state = deployable.arm.state
    no_stacks = OWNER | {"notActions": ["Microsoft.Resources/deploymentStacks/*"]}
    state.caller.roles = [(state.scope, no_stacks)]
    assert found(deployable) == []
    (rule, message, hint), *others = found(deployable, "--stack")
    assert [rule for rule, _, _ in others] == ["E4803", "E4804"], "and Azure does not judge it"
    words = ("read", "write", "validate/action")
    lacking = f"{', '.join(f'Microsoft.Resources/deploymentStacks/{word}' for word in words)} at"
    assert (rule, lacking in message, '--role "Azure Deployment Stack Owner"' in hint) == ("E4101", True, True)
    code, _, err = deployable("deploy", "minimal.yaml", "--yes")
    assert code == 0, err
    deployable.arm.renewed().state.caller.roles = [(state.scope, OWNER)]
    assert found(deployable, "--stack") == []


def test_deny_settings_need_a_right_of_their_own(deployable: Place) -> None:
    """What they deny does not bind the stack itself, but whoever deploys without it."""
    assert deployable(*DEPLOY)[0] == 0
    stack(deployable)["properties"]["denySettings"] = {"mode": "denyDelete"}
    state = deployable.arm.state
    assert deployable("diff", "minimal.yaml", "--deployed")[0] == 0, "the stand-in denies when the stack is looked at"
    group = f"{state.scope}/resourceGroups/minimal-rg"
    (denial,) = [each for each in state.deny_assignments if each["properties"]["scope"].lower() == group.lower()]
    denial["properties"]["permissions"] = [{"actions": ["Microsoft.Network/virtualNetworks/write"], "notActions": []}]
    deployable.arm.requests.clear()
    assert "E4102" in {rule for rule, _, _ in found(deployable)}
    assert found(deployable, "--stack") == []
    no_denials = OWNER | {"notActions": ["Microsoft.Resources/deploymentStacks/manageDenySetting/action"]}
    state.caller.roles = [(state.scope, no_denials)]
    ((rule, message, _),) = found(deployable, "--stack")
    assert (rule, "Microsoft.Resources/deploymentStacks/manageDenySetting/action at" in message) == ("E4101", True)


def test_what_if_says_what_a_stack_does_beyond_the_template(deployable: Place) -> None:
    words = ("what-if", "minimal.yaml", "--stack")
    assert "as a deployment stack" not in deployable(*words[:-1])[1]
    out = deployable(*words)[1]
    assert "stays in Azure\n  nothing is denied to anybody\n" in out
    assert deployable(*DEPLOY)[0] == 0
    stack(deployable)["properties"]["denySettings"] = {"mode": "denyDelete"}
    assert "would leave it" not in deployable(*words)[1]
    kept = [each["id"] for each in stack(deployable)["properties"]["resources"]]
    gone = next(each for each in kept if each.endswith("/virtualMachines/minimal-server"))
    changes = [{"resourceId": each, "changeType": "Ignore" if each == gone else "NoChange"} for each in kept]
    deployable.arm.state.what_if = {"changes": changes}
    deployable.arm.requests.clear()
    code, out, _ = deployable(*words)
    assert (code, deployable.arm.changes) == (0, [])
    assert "its deny settings stay (denyDelete)" in out
    assert "1 resource of the stack would leave it:\n    Microsoft.Compute/virtualMachines minimal-server\n" in out
    said = json.loads(deployable(*words, "--json")[1])["stack"]
    assert said == {"denies": "denyDelete", "leaving": [gone], "is_certain": True}
    deployable.arm.state.what_if = {"changes": [], "diagnostics": [{"code": "X", "message": "not taken apart"}]}
    assert "would leave it perhaps" in deployable(*words)[1]


def test_the_az_lines_are_those_of_the_pages(deployable: Place) -> None:
    code, out, _ = deployable("deploy", "minimal.yaml", "--stack", "--print")
    out += deployable("what-if", "minimal.yaml", "--stack", "--print")[1]
    built = deployable.folder / "output" / "minimal"
    pages = "".join((built / name).read_text() for name in ("README.md", "operations.md")).splitlines()
    assert (code, [line for line in out.splitlines() if line not in pages]) == (0, [])
    assert any(line.startswith("az stack sub create") for line in out.splitlines())
