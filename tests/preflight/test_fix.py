"""`preflight --fix`: shows, asks, changes what it said and nothing else, and looks again."""

from __future__ import annotations

import io
from typing import Any

import pytest

from generator.azure.checks import providers
from tests.answers import data_of
from tests.bed.arm.exchange import RefusedError
from tests.bed.arm.offers import terms_path
from tests.preflight.command import Run

TERMS = terms_path("azurecyclecloud", "azure-cyclecloud", "cyclecloud8-gen2")
REGISTER = "/providers/Microsoft.StorageCache/register"


@pytest.fixture
def broken(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A provider is not registered, and terms are not accepted."""
    monkeypatch.setattr(providers, "LOOK_AFTER_S", 0.0)
    run.arm.state.providers["Microsoft.StorageCache"]["registrationState"] = "NotRegistered"
    agreement: Any = run.arm.state.documents[TERMS]
    agreement["properties"]["accepted"] = False
    return run


def answers(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal(text))


def changes(run: Run) -> list[str]:
    """What was changed, below the subscription."""
    start = run.arm.state.scope
    posts = [each for each in run.arm.posts if each.endswith("/register")]
    return sorted(each.replace(start, "") for each in (*run.arm.changes, *posts))


def test_it_shows_asks_mends_and_looks_again(broken: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert broken.found(name="gpt3-h100") == ["E4201", "E4404"]
    answers(monkeypatch, "y\n")
    code, out, err = broken("--fix", name="gpt3-h100", changes=True)
    assert code == 0, out
    assert f"in the subscription {broken.arm.state.subscription}:" in err
    assert "register the provider Microsoft.StorageCache: done" in err
    assert "accept the terms" in err
    assert len(changes(broken)) == 2
    assert changes(broken)[0] == f"POST {REGISTER}"
    assert changes(broken)[1].startswith("PUT /providers/Microsoft.MarketplaceOrdering/")


@pytest.mark.parametrize("answer", ["", "n\n", "yess\n", "\n"])
def test_without_a_yes_nothing_is_changed(broken: Run, monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    answers(monkeypatch, answer)
    code, _, err = broken("--fix", name="gpt3-h100")
    assert code == 1
    assert "nothing was changed" in err
    assert changes(broken) == []


def test_without_a_terminal_it_needs_yes(broken: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    code, _, err = broken("--fix", name="gpt3-h100")
    assert code == 2
    assert "--yes does it without asking" in err
    assert changes(broken) == []
    code, out, _ = broken("--fix", "--yes", "--json", name="gpt3-h100", changes=True)
    assert code == 0
    assert [each["done"] for each in data_of(out)["fixed"]] == [True, True]


def test_what_azure_refuses_is_said_and_the_rest_is_done(broken: Run) -> None:
    refusal = RefusedError(403, "AuthorizationFailed", "The client does not have authorization.")
    broken.arm.fail("POST", f"*{REGISTER}", refusal)
    code, out, err = broken("--fix", "--yes", name="gpt3-h100", changes=True)
    assert code == 1
    assert "register the provider Microsoft.StorageCache: Azure refuses: AuthorizationFailed" in err
    assert "E4201" in out
    assert "E4404" not in out


def test_the_lines_of_what_it_would_do(broken: Run) -> None:
    code, out, _ = broken("--fix", "--print", name="gpt3-h100")
    assert code == 1
    assert out.splitlines()[0] == "az provider register --namespace Microsoft.StorageCache --wait"
    assert "az vm image terms accept" in out


def test_nothing_to_do(run: Run) -> None:
    code, _, err = run("--fix")
    assert code == 0
    assert "--fix cannot do anything" in err
    assert run("--yes")[0] == 2
