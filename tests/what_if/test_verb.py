"""`cycleforge what-if` against the stand-in of Azure Resource Manager."""

from __future__ import annotations

import json
from typing import Any

import pytest

from generator.azure import bicep
from tests.answers import data_of
from tests.bed.arm.exchange import RefusedError
from tests.bed.arm.state import READER
from tests.bed.bicep.program import placed
from tests.bed.plans import KEY
from tests.what_if.place import PASSWORD, Place

VNET = "/subscriptions/{}/resourceGroups/minimal-rg/providers/Microsoft.Network/virtualNetworks/minimal-vnet"
LATER = KEY.replace("IG5v", "IG5w")
SERVER = "/subscriptions/{}/resourceGroups/minimal-rg/providers/Microsoft.Compute/virtualMachines/minimal-server"


def sent(place: Place) -> dict[str, Any]:
    """The body of what was asked."""
    body: dict[str, Any] = next(each for each in place.arm.requests if each.path.endswith("/whatIf")).body
    return body


def with_server(place: Place, **os_profile: Any) -> None:
    scope = place.arm.state.scope
    place.arm.state.put(f"{scope}/resourceGroups/minimal-rg", location="southcentralus", type="x")
    profile = {"linuxConfiguration": {"ssh": {"publicKeys": [{"keyData": "ssh-ed25519 AAAAold"}]}}} | os_profile
    image = {"imageReference": {"version": "8.9.0"}}
    place.arm.state.put(
        SERVER.format(place.arm.state.subscription), properties={"osProfile": profile, "storageProfile": image}
    )


def test_it_shows_what_would_change_and_changes_nothing(place: Place) -> None:
    vnet = VNET.format(place.arm.state.subscription)
    place.arm.state.what_if = {"changes": [{"resourceId": vnet, "changeType": "Create"}]}
    place.patch.setenv("CYCLECLOUD_ADMIN_PASSWORD", PASSWORD)
    code, out, err = place.built()("what-if", "minimal.yaml")
    assert (code, err) == (0, "")
    assert out == "1 to create\n\nto create:\n  +  Microsoft.Network/virtualNetworks  minimal-vnet\n"
    assert place.arm.changes == []
    assert place.arm.refused == []
    assert [line.rpartition("/")[2] for line in place.arm.posts] == ["whatIf"]
    assert PASSWORD not in json.dumps(sent(place)) + json.dumps(place.compiler)
    assert sent(place)["location"] == "southcentralus"


def test_json(place: Place) -> None:
    place.arm.state.what_if = {"changes": []}
    code, out, _ = place.built()("what-if", "minimal.yaml", "--json")
    answer = data_of(out)
    assert (code, answer["ok"], answer["changes"], answer["is_complete"]) == (0, True, False, True)


def test_a_server_that_exists_keeps_its_key_and_image(place: Place) -> None:
    with_server(place)
    assert place.built()("what-if", "minimal.yaml")[0] == 0
    assert sent(place)["properties"]["parameters"]["serverKey"] == {"value": "ssh-ed25519 AAAAold"}
    assert place.compiler["CYCLEFORGE_SERVER_IMAGE"] == "8.9.0"


def test_a_server_that_cannot_be_asked_is_not_taken_for_none(place: Place) -> None:
    place.built().arm.fail("GET", "*/minimal-server", RefusedError(403, "AuthorizationFailed", "may not read"))
    code, _, err = place("what-if", "minimal.yaml")
    assert code == 4
    assert "your account may not do this" in err
    with_server(place, linuxConfiguration={})
    code, _, err = place("what-if", "minimal.yaml")
    assert code == 4
    assert "which SSH key" in err
    assert not place.arm.posts


def test_a_refusal_is_its_innermost_cause(place: Place) -> None:
    inner = {"code": "RequestDisallowedByPolicy", "message": "Resource 'x' was disallowed by policy."}
    place.arm.state.what_if = {"error": {"code": "InvalidTemplateDeployment", "message": "…", "details": [inner]}}
    code, out, err = place.built()("what-if", "minimal.yaml")
    assert (code, out) == (4, "")
    assert "a policy of your organisation forbids it\n  Azure: RequestDisallowedByPolicy: Resource 'x' was" in err


@pytest.mark.parametrize(
    ("path", "after_effect"),
    [("*/minimal-server", False), ("*/whatIf", False), ("*/whatIf", True), ("*/operationResults/*", False)],
)
def test_a_lost_connection_is_said_and_nothing_is_changed(place: Place, path: str, after_effect: bool) -> None:
    place.built().arm.lose("*", path, after_effect=after_effect, times=99)
    code, out, err = place("what-if", "minimal.yaml")
    assert (code, out) == (4, "")
    assert "nothing was changed" in err
    assert place.arm.changes == []
    place.arm.faults.due.clear()
    assert place("what-if", "minimal.yaml")[0] == 0


def test_no_rights_are_said(place: Place) -> None:
    place.arm.state.caller.roles = [(place.arm.state.scope, READER)]
    code, _, err = place.built()("what-if", "minimal.yaml")
    assert code == 4
    assert "deployments/whatIf/action" in err


def test_only_what_was_built_is_asked(place: Place) -> None:
    code, _, err = place("what-if", "minimal.yaml")
    assert (code, "is not built yet" in err, "cycleforge build minimal.yaml" in err) == (2, True, True)
    place.built()
    text = (place.folder / "minimal.yaml").read_text()
    (place.folder / "minimal.yaml").write_text(text.replace("max_nodes: 2", "max_nodes: 3"))
    code, _, err = place("what-if", "minimal.yaml")
    assert code == 1
    assert "is not what minimal.yaml says now" in err
    assert place.arm.requests == []


def test_what_envrc_sets_is_no_other_build(place: Place) -> None:
    place.patch.delenv("CYCLECLOUD_SSH_PUBLIC_KEY")
    place.built()
    code, _, err = place("what-if", "minimal.yaml")
    assert code == 2
    assert "CYCLECLOUD_SSH_PUBLIC_KEY is not set" in err
    place.patch.setenv("CYCLECLOUD_SSH_PUBLIC_KEY", LATER)
    assert place("what-if", "minimal.yaml")[0] == 0
    assert sent(place)["properties"]["parameters"]["sshPublicKey"] == {"value": LATER}


def test_the_compiler_says_what_it_does_not_like(place: Place) -> None:
    program = place.built().arm.bicep
    program.with_name("broken").write_text('main.bicep(1,1) : Error BCP018: Expected the "=" character here.')
    code, _, err = place("what-if", "minimal.yaml")
    assert (code, "Error BCP018" in err, "az bicep upgrade" in err) == (3, True, True)
    place.patch.setenv("PATH", "/nowhere")
    assert "bicep is not installed" in place("what-if", "minimal.yaml")[2]
    own = placed(place.folder / "home" / ".azure" / "bin")
    assert place("what-if", "minimal.yaml")[0] == 0, "the Azure command line has its own"
    own.write_text("#!/bin/sh\necho '[]'\n")
    assert place("what-if", "minimal.yaml")[0] == 3


def test_the_az_lines_are_those_of_the_readme(place: Place) -> None:
    code, out, _ = place.built()("what-if", "minimal.yaml", "--print")
    readme = (place.folder / "output" / "minimal" / "README.md").read_text().splitlines()
    assert code == 0
    assert place.arm.requests == []
    assert [line for line in out.splitlines() if line not in readme] == []
    assert any("sub what-if" in line for line in out.splitlines())


def test_a_secret_may_stay_in_its_vault() -> None:
    vault = "/subscriptions/s/resourceGroups/g/providers/Microsoft.KeyVault/vaults/v"
    reference = {"keyVault": {"id": vault}, "secretName": "admin"}
    assert bicep.parameter(f"{vault}/secrets/admin") == {"reference": reference}
    assert bicep.parameter(f"{vault}/secrets/admin/1") == {"reference": reference | {"secretVersion": "1"}}
    for value in (PASSWORD, vault, f"{vault}/secrets/", f"{vault}/secrets/a/b/c"):
        assert bicep.parameter(value) == {"value": value}
