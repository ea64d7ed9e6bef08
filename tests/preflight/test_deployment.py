"""Bicep, the built folder, and the validation of the deployment."""

from __future__ import annotations

from pathlib import Path

import pytest

from generator.azure.checks.deployment import oldest_bicep
from tests.bed.arm.exchange import RefusedError
from tests.bed.arm.failures import disallowed_by_policy
from tests.bed.plans import SMALL
from tests.preflight.command import Run

GROUP = "/subscriptions/*/resourceGroups/minimal-rg"


def test_bicep_must_be_there(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert run.found() == ["E4801", "E4803?", "E4804?"]


@pytest.mark.parametrize(("version", "expected"), [("0.26.170", ["E4801"]), ("0.27.1", []), ("1.0.0", [])])
def test_bicep_must_know_the_language(run: Run, version: str, expected: list[str]) -> None:
    assert oldest_bicep() == "0.27.1"
    run.arm.bicep.with_name("version").write_text(f"Bicep CLI version {version} (abcdef0123)")
    assert run.found() == expected


def test_a_bicep_that_says_nothing(run: Run) -> None:
    version = run.arm.bicep.with_name("version")
    version.write_text("Bicep CLI version unheard of (abcdef0123)")
    assert run.found() == ["E4801?"]
    version.unlink()
    run.arm.bicep.with_name("broken").write_text("main.bicep(1,1) : Error BCP018")
    code, out, _ = run()
    assert code == 4
    assert "not known whether Azure would accept the deployment: bicep cannot compile" in out
    assert "E4804: not known whether a policy denies something, for the reason of E4803" in out


def test_what_is_not_built_is_not_known(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("--out", str(tmp_path / "other"))
    assert code == 4
    assert "hint: cycleforge build small" in out


def test_a_folder_of_yesterday(run: Run, tmp_path: Path) -> None:
    text = SMALL.replace("max_nodes: 2", "max_nodes: 3")
    code, out, _ = run("--out", str(run.built()), text=text)
    assert code == 0, "a warning"
    assert "warning W4802: " in out
    assert "is not what small.yaml says now" in out


def test_a_policy_denies_and_is_named(run: Run) -> None:
    refusal = disallowed_by_policy("minimal-rg", "No new groups", "Groups come from the platform team")
    run.arm.state.refusals = [(GROUP, refusal)]
    code, out, _ = run()
    assert code == 1
    assert "error E4804: the policy 'Groups come from the platform team', assigned as 'No new groups'" in out
    assert "/policyAssignments/No new groups) denies minimal-rg (Microsoft.Resources/resourceGroups)" in out
    run.arm.state.refusals = []
    assert run.found() == []


def test_anything_else_that_azure_would_refuse(run: Run) -> None:
    refusal = RefusedError(409, "StorageAccountAlreadyTaken", "The storage account named x is already taken.")
    odd = RefusedError(400, "UnheardOf", "Something else.")
    run.arm.state.refusals = [(GROUP, refusal), (GROUP, odd)]
    code, out, _ = run()
    assert code == 1
    assert "error E4803: Azure would refuse minimal-rg: the name of the storage account is taken" in out
    assert "error E4803: Azure would refuse minimal-rg: UnheardOf: Something else." in out


@pytest.mark.parametrize("status", [403, 429, 500])
def test_a_validation_that_azure_does_not_answer(run: Run, status: int) -> None:
    refusal = RefusedError(status, "AuthorizationFailed", "no", headers={"Retry-After": "999"})
    run.arm.fail("POST", "*/validate", refusal, times=9)
    assert run.found() == ["E4803?", "E4804?"]


def test_no_secret_is_sent_or_needed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CYCLECLOUD_ADMIN_PASSWORD", "s3cret-of-the-test-A1")
    out = run("--json")[1]
    sent = next(each.body for each in run.arm.requests if each.path.endswith("/validate"))
    assert "s3cret-of-the-test-A1" not in out + str(sent)
