"""`cycleforge diff --deployed` against the stand-in."""

from __future__ import annotations

from tests.answers import data_of
from tests.bed.arm.exchange import RefusedError
from tests.deploy.test_deploy import DEPLOY
from tests.what_if.place import Place

DIFF = ("diff", "minimal.yaml", "--deployed")


def test_what_is_not_there_is_missing(deployable: Place) -> None:
    code, out, _ = deployable(*DIFF)
    assert (code, deployable.arm.changes, deployable.arm.refused) == (0, [], [])
    assert "was never deployed" in out
    assert "missing in Azure:" in out
    assert "minimal-vnet" in out


def test_what_somebody_changed_is_shown(deployable: Place) -> None:
    assert deployable(*DEPLOY)[0] == 0
    group = f"{deployable.arm.state.scope}/resourceGroups/minimal-rg/providers"
    server = deployable.arm.state.resources[f"{group}/Microsoft.Compute/virtualMachines/minimal-server".lower()]
    server["properties"]["hardwareProfile"]["vmSize"] = "Standard_D64as_v5"
    old = f"{group}/Microsoft.Network/bastionHosts/old-bastion"
    deployable.arm.state.put(old, location="southcentralus", tags={"cycleforge": "minimal"})
    deployable.arm.state.put(f"{group}/Microsoft.Network/natGateways/theirs", location="southcentralus")
    deployable.arm.requests.clear()
    code, out, _ = deployable(*DIFF)
    assert (code, deployable.arm.changes) == (0, [])
    assert "was deployed" in out
    assert "with this folder" in out
    assert "properties.hardwareProfile.vmSize: Standard_D64as_v5 → Standard_D4as_v5" in out
    assert "no longer in the definition" in out
    assert "old-bastion" in out
    assert "theirs" not in out
    answer = data_of(deployable(*DIFF, "--json")[1])
    assert (answer["drift"], [each["name"] for each in answer["gone"]]) == (True, ["old-bastion"])
    assert "unless it is of what is named below as not known" in out


def test_what_cannot_be_compared_is_no_equality(deployable: Place) -> None:
    role = {"resourceId": "/subscriptions/s/providers/A.B/roles/r", "changeType": "Unsupported"}
    deployable.arm.state.what_if = {"changes": [role]}
    out = deployable(*DIFF)[1]
    assert "not known, because Azure cannot compare it" in out
    assert "no difference that Azure can tell" in out
    deployable.arm.state.what_if = {"changes": [{**role, "changeType": "NoChange"}]}
    assert "\nno difference\n" in deployable(*DIFF)[1]


def test_its_lines_ask_nothing_themselves(deployable: Place) -> None:
    deployable.arm.requests.clear()
    code, out, _ = deployable(*DIFF, "--print")
    *_, recorded, compared = out.splitlines()
    assert (code, deployable.arm.requests) == (0, [])
    assert recorded.startswith("az deployment sub show --name minimal-southcentralus")
    assert compared.startswith("az deployment sub what-if --name minimal-southcentralus")
    code, out, err = deployable("diff", "minimal.yaml", "--print")
    assert (code, out, "--print needs --deployed" in err) == (2, "", True)


def test_no_answer_is_no_equality(deployable: Place) -> None:
    deployable.arm.fail("POST", "*/whatIf", RefusedError(403, "AuthorizationFailed", "no"))
    code, out, err = deployable(*DIFF)
    assert (code, out, "your account may not do this" in err) == (4, "", True)
