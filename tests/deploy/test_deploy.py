"""`cycleforge deploy` against the stand-in, which takes a real compiled template apart."""

from __future__ import annotations

import io
import json
import os
from typing import Any

import pytest

from generator.azure import bicep, deployment, operation_tree
from generator.azure.deployment import CONTENT_TAG
from generator.azure.first_boot import SHOW
from generator.pipeline import check
from tests.bed.arm import failures
from tests.bed.arm.exchange import RefusedError
from tests.bed.arm.state import READER
from tests.what_if.place import PASSWORD, Place

DEPLOY = ("deploy", "minimal.yaml", "--no-preflight", "--yes")
RECORD = "/providers/Microsoft.Resources/deployments/minimal-southcentralus"
FORBIDDEN = RefusedError(403, "AuthorizationFailed", "The client does not have authorization to perform action 'x'.")
BOOT = "first boot: 11 of 11 steps done"


def puts(place: Place) -> list[dict[str, Any]]:
    """What was sent to deploy."""
    return [each.body for each in place.arm.requests if each.method == "PUT" and each.path.endswith(RECORD)]


def answers(place: Place, text: str) -> None:
    """What is typed on a terminal."""
    terminal = io.StringIO(text)
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    place.patch.setattr("sys.stdin", terminal)


def test_it_deploys_and_shows_each_part(deployable: Place) -> None:
    deployable.arm.state.shell = lambda machine, script: (BOOT if script.endswith(SHOW) else "?", "")
    code, out, err = deployable(*DEPLOY)
    assert (code, deployable.arm.refused) == (0, []), err
    assert "to create:" in out
    assert "minimal-southcentralus is deployed" in out
    assert "clusterName" in out
    assert "cycleforge-bootstrap: running" in err
    assert "cycleforge-server: done after" in err
    assert BOOT in err
    assert deployable.arm.state.resources[f"{deployable.arm.state.scope}/resourcegroups/minimal-rg".lower()]
    (sent,) = puts(deployable)
    assert sent["properties"]["parameters"]["adminPassword"] == {"value": PASSWORD}
    assert sent["tags"]["cycleforge"] == "minimal"
    kept = [
        each
        for each in deployable.folder.rglob("*")
        if each.is_file() and PASSWORD in each.read_text("utf-8", "ignore")
    ]
    assert kept == []


def test_a_question_comes_first(deployable: Place) -> None:
    answers(deployable, "n\n")
    code, out, err = deployable("deploy", "minimal.yaml", "--no-preflight")
    assert (code, deployable.arm.changes) == (1, [])
    assert "deploy minimal-southcentralus to minimal-rg in southcentralus" in err
    assert "to create:" in out
    answers(deployable, "y\n")
    assert deployable("deploy", "minimal.yaml", "--no-preflight")[0] == 0


def test_without_a_terminal_nothing_is_begun(deployable: Place) -> None:
    code, _, err = deployable("deploy", "minimal.yaml", "--no-preflight")
    assert (code, "--yes" in err, deployable.arm.changes) == (2, True, [])
    deployable.patch.delenv("CYCLECLOUD_ADMIN_PASSWORD")
    code, _, err = deployable(*DEPLOY)
    assert (code, "CYCLECLOUD_ADMIN_PASSWORD is not set" in err, deployable.arm.changes) == (2, True, [])


@pytest.mark.parametrize(
    ("password", "rule"),
    [
        ("secretsecret", "lower case, upper case, digits and symbols"),
        ("Go0d-enough", None),
        ("my-Ccadmin-1", "no three characters in a row"),
        ("Sh0rt-!", "8 to 123 characters"),
        ("/subscriptions/s/no-vault", "not the id of a secret in a Key Vault"),
    ],
)
def test_a_password_that_breaks_a_rule_is_refused_before_azure_is_asked(
    deployable: Place, password: str, rule: str | None
) -> None:
    deployable.patch.setenv("CYCLECLOUD_ADMIN_PASSWORD", password)
    code, out, err = deployable(*DEPLOY)
    if rule is None:
        assert code == 0, err
        return
    assert (code, deployable.arm.requests) == (2, [])
    assert rule in err
    assert "CYCLECLOUD_ADMIN_PASSWORD" in err
    assert password not in out + err


def test_a_secret_is_typed_without_echo(deployable: Place) -> None:
    deployable.patch.delenv("CYCLECLOUD_ADMIN_PASSWORD")
    answers(deployable, "y\n")
    deployable.patch.setattr("generator.cli.azure._TRIES", 4)
    typed = iter(["short", "secretsecret", PASSWORD, "another-Passw0rd", PASSWORD, PASSWORD])
    deployable.patch.setattr("getpass.getpass", lambda prompt: next(typed))
    code, _, err = deployable("deploy", "minimal.yaml", "--no-preflight")
    assert code == 0
    assert "  it must have 8 to 123 characters" in err
    assert "  it must have lower case, upper case, digits and symbols (these count: @#$" in err
    assert "two different ones" in err
    assert puts(deployable)[0]["properties"]["parameters"]["adminPassword"] == {"value": PASSWORD}


def test_a_secret_of_a_vault_stays_there(deployable: Place) -> None:
    vault = f"{deployable.arm.state.scope}/resourceGroups/v/providers/Microsoft.KeyVault/vaults/v"
    deployable.arm.state.secrets[(vault.lower(), "admin")] = PASSWORD
    deployable.patch.setenv("CYCLECLOUD_ADMIN_PASSWORD", f"{vault}/secrets/admin")
    assert deployable(*DEPLOY)[0] == 0
    assert PASSWORD not in json.dumps(puts(deployable))


def test_ctrl_c_leaves_azure_working_and_the_same_command_attaches(deployable: Place) -> None:
    really, looks = operation_tree.news, iter(range(3))

    def interrupted(*given: Any) -> list[str]:
        if next(looks, None) is None:
            raise KeyboardInterrupt
        return really(*given)

    deployable.arm.state.pace = 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("generator.cli.live.news", interrupted)
        code, _, err = deployable(*DEPLOY)
    assert (code, "`cycleforge deploy minimal.yaml` reattaches" in err) == (130, True)
    code, out, err = deployable("deploy", "minimal.yaml")
    assert (code, "has been deploying since" in err, "is deployed" in out) == (0, True, True)
    assert len(puts(deployable)) == 1


def running(place: Place, **tags: str) -> None:
    """Somebody else has begun a deployment of this name."""
    from tests.bed.arm.client import Client

    client = Client(place.arm)
    plan = check((place.folder / "minimal.yaml").read_bytes(), "minimal.yaml", os.environ, place.folder).plan
    assert plan is not None
    made = bicep.compiled(place.folder / "output" / "minimal", plan, os.environ)
    given = bicep.with_secrets(made, plan, bicep.stand_ins(plan))
    fields = {"mode": "Incremental", "template": made.template, "parameters": given}
    body = {"location": "southcentralus", "tags": tags, "properties": fields}
    with client.session:
        assert client("PUT", f"{place.arm.state.scope}{RECORD}", "2025-04-01", body).status_code == 201
    place.arm.requests.clear()


def test_a_second_person_is_told_and_attaches_or_stops(deployable: Place) -> None:
    running(deployable, **{CONTENT_TAG: "of-another-folder"})
    deployable.arm.state.pace = 1
    code, _, err = deployable("deploy", "minimal.yaml")
    assert (code, "its content differs from this folder" in err, deployable.arm.changes) == (2, True, [])
    answers(deployable, "n\n")
    assert deployable("deploy", "minimal.yaml")[0] == 1
    answers(deployable, "y\n")
    code, out, _ = deployable("deploy", "minimal.yaml")
    assert (code, "is deployed" in out, deployable.arm.changes) == (0, True, [])


def test_one_who_comes_a_moment_later_is_told_too(deployable: Place) -> None:
    answers(deployable, "y\nn\n")
    really = deployment.begin

    def late(*given: Any) -> None:
        running(deployable, **{CONTENT_TAG: "of-another-folder"})
        really(*given)

    deployable.patch.setattr("generator.azure.deployment.begin", late)
    code, _, err = deployable("deploy", "minimal.yaml", "--no-preflight")
    assert (code, "its content differs from this folder" in err) == (1, True)


@pytest.mark.parametrize("after_effect", [True, False])
def test_a_lost_answer_does_not_deploy_twice(deployable: Place, after_effect: bool) -> None:
    deployable.arm.lose("PUT", f"*{RECORD}", after_effect=after_effect, times=1)
    code, out, err = deployable(*DEPLOY)
    assert (code, "is deployed" in out) == (0, True), err
    (record,) = [run for key, run in deployable.arm.state.runs.items() if key.endswith(RECORD.lower())]
    sent = [each.status for each in deployable.arm.requests if each.method == "PUT"]
    assert (sent, record.state) == ([0, 409 if after_effect else 201], "Succeeded")


def test_nothing_is_begun_when_azure_never_hears_of_it(deployable: Place) -> None:
    deployable.arm.lose("PUT", f"*{RECORD}", after_effect=False, times=99)
    code, _, err = deployable(*DEPLOY)
    assert (code, "Azure has not started the deployment" in err) == (4, True)
    deployable.arm.faults.due.clear()
    assert deployable(*DEPLOY)[0] == 0


def test_a_connection_that_is_lost_while_watching_comes_back(deployable: Place) -> None:
    really, seen = deployment.look, []

    def flaky(*given: Any) -> Any:
        seen.append(1)
        if len(seen) in (5, 6):
            deployable.arm.lose("GET", f"*{RECORD}", after_effect=False, times=3)
        return really(*given)

    deployable.patch.setattr("generator.azure.deployment.look", flaky)
    code, _, err = deployable(*DEPLOY)
    assert code == 0
    assert err.count("Azure continues, and is asked again") == 1


def test_a_connection_that_stays_lost_is_said(deployable: Place) -> None:
    deployable.patch.setattr("generator.azure.deployment.LOST_S", -1.0)
    deployable.arm.state.pace = 1
    deployable.arm.lose("GET", f"*{RECORD}/operations", after_effect=False, times=99)
    code, _, err = deployable(*DEPLOY)
    assert (code, "run the same command to reattach" in err) == (4, True)
    deployable.arm.faults.due.clear()
    assert deployable(*DEPLOY)[0] == 0
    assert len(puts(deployable)) == 1


def test_a_failure_is_its_innermost_cause_with_a_hint(deployable: Place) -> None:
    deployable.arm.state.breakages.append(("*/virtualMachines/*", failures.allocation_failed()))
    code, out, err = deployable(*DEPLOY)
    assert (code, "is deployed" in out) == (4, False)
    assert "virtualMachines minimal-server: Azure has no free machine of this size there now\n" in err
    assert "  Azure: AllocationFailed: " in err
    assert "hint: deploy again later" in err
    assert "DeploymentFailed" not in err
    deployable.arm.state.breakages.clear()
    assert deployable(*DEPLOY)[0] == 0


def test_a_refusal_before_it_begins(deployable: Place) -> None:
    deployable.arm.fail("PUT", f"*{RECORD}", RefusedError(403, "RequestDisallowedByPolicy", "not here"))
    code, _, err = deployable(*DEPLOY)
    assert (code, "a policy of your organisation forbids it" in err) == (4, True)


def test_a_group_of_somebody_else_is_left_alone(deployable: Place) -> None:
    deployable.arm.state.put(f"{deployable.arm.state.scope}/resourceGroups/minimal-rg", location="southcentralus")
    code, _, err = deployable(*DEPLOY)
    assert (code, "belongs to something else" in err, deployable.arm.changes) == (1, True, [])


def test_what_would_fail_is_not_begun(deployable: Place) -> None:
    deployable.arm.state.caller.roles = [(deployable.arm.state.scope, READER)]
    code, _, err = deployable("deploy", "minimal.yaml", "--yes")
    assert (code, "--no-preflight skips the check" in err, deployable.arm.changes) == (1, True, [])


def test_what_is_not_known_is_asked_about(deployable: Place) -> None:
    """An answer that Azure refuses to give is not taken for a good one by --yes either."""
    deployable.arm.fail("GET", "*/usages", FORBIDDEN, times=1000)
    words = ("deploy", "minimal.yaml")
    code, _, err = deployable(*words, "--yes")
    assert (code, deployable.arm.changes) == (1, [])
    assert "not known whether" in err
    assert "nothing was deployed, because 4 things could not be checked; --accept-unknown continues" in err
    code, _, err = deployable(*words)
    assert (code, "--accept-unknown" in err, deployable.arm.changes) == (2, True, [])
    answers(deployable, "n\n")
    code, out, err = deployable(*words)
    assert (code, out, "continue anyway? [y/N]" in err, deployable.arm.changes) == (1, "", True, [])
    answers(deployable, "y\nn\n")
    code, out, _ = deployable(*words)
    assert (code, "to create:" in out, deployable.arm.changes) == (1, True, []), "the deployment is asked about as ever"
    assert deployable(*words, "--yes", "--accept-unknown")[0] == 0


def test_the_templates_are_compiled_once(deployable: Place) -> None:
    really, made = bicep.compiled, []

    def counted(*given: Any) -> Any:
        made.append(really(*given))
        return made[-1]

    deployable.patch.setattr("generator.azure.bicep.compiled", counted)
    code, _, err = deployable("deploy", "minimal.yaml", "--yes")
    assert "checks: " in err
    assert (len(made), code) == (1, 0), err


def test_data_is_deleted_only_after_a_question(deployable: Place) -> None:
    disk = f"{deployable.arm.state.scope}/resourceGroups/minimal-rg/providers/Microsoft.Compute/disks/d"
    deployable.arm.state.what_if = {"changes": [{"resourceId": disk, "changeType": "Delete"}]}
    code, out, err = deployable(*DEPLOY)
    assert (code, "HOLDS DATA" in out, "data would be deleted" in err, deployable.arm.changes) == (2, True, True, [])


def test_the_first_boot_is_repeated_on_request(deployable: Place) -> None:
    assert deployable(*DEPLOY, "--rerun-first-boot")[0] == 0
    assert len(puts(deployable)[0]["properties"]["parameters"]["bootstrapRun"]["value"]) == 8


def test_the_az_lines_are_those_of_the_readme(deployable: Place) -> None:
    code, out, _ = deployable("deploy", "minimal.yaml", "--print")
    readme = (deployable.folder / "output" / "minimal" / "README.md").read_text().splitlines()
    assert (code, deployable.arm.requests) == (0, [])
    assert [line for line in out.splitlines() if line not in readme] == []
    assert any("sub create" in line for line in out.splitlines())
