"""What the verb does whatever it finds: places, exit codes, --json, --print, and closing when it cannot ask."""

from __future__ import annotations

import re
from pathlib import Path
from threading import Barrier

import pytest

from generator.azure.check import Check, Finding, Local
from generator.azure.checks import all_checks
from generator.azure.preflight import preflight
from generator.azure.reader import Reader
from generator.azure.refusals import NotAsked
from generator.operate.asking import session_of
from generator.plan.deployment import Plan
from tests.bed.arm import Arm
from tests.bed.arm.exchange import RefusedError
from tests.bed.plans import SMALL, plan_from
from tests.preflight.command import Run

FORBIDDEN = RefusedError(403, "AuthorizationFailed", "The client does not have authorization to perform action 'x'.")


def test_a_healthy_subscription_has_no_findings(run: Run) -> None:
    code, out, _ = run()
    assert code == 0, out
    assert re.fullmatch(r"preflight: \d+ checks: \d+ ok(, \d+ not needed)?\n", out)


def test_a_finding_stands_at_its_line_with_what_to_type(run: Run) -> None:
    run.arm.state.locations = [each for each in run.arm.state.locations if each["name"] != "southcentralus"]
    code, out, _ = run()
    assert code == 1
    line = next(number for number, each in enumerate(SMALL.splitlines(), 1) if each.startswith("location"))
    assert f"small.yaml:{line}:11: error E4005: the subscription does not have the region southcentralus" in out
    assert "hint: az account list-locations" in out
    assert "more: cycleforge explain E4005" in out
    assert "1 found something" in out


def test_as_json(run: Run) -> None:
    result = run.json()
    assert (result["ok"], result["cloud"], result["problems"], result["not_known"]) == (True, "AzureCloud", [], [])
    assert {each["rule"] for each in result["checks"]} == {check.id for check in all_checks()}
    run.arm.state.subscription_state = "Disabled"
    result = run.json()
    assert not result["ok"]
    assert [row["rule"] for row in result["problems"]] == ["E4002"]
    assert run.arm.state.subscription in result["subscription"]


def test_printed_lines_are_those_of_what_was_asked(run: Run) -> None:
    code, out, err = run("--print", text=SMALL.replace("jobs: {validation: [smoke]}\n", ""))
    assert code == 0
    assert f"az account show --subscription {run.arm.state.subscription}" in out.splitlines()
    assert all(line.startswith("az ") for line in out.splitlines())
    assert err.startswith("preflight: ")


def test_nothing_is_good_that_could_not_be_asked(run: Run) -> None:
    """Every single answer refused: no check counts as good but those of this machine."""
    run.arm.fail("*", "/subscriptions*", FORBIDDEN, times=1000)
    result = run.json()
    assert not result["ok"]
    outcomes = {each["rule"]: each["outcome"] for each in result["checks"]}
    assert {rule for rule, outcome in outcomes.items() if outcome == "ok"} <= {"E4001", "E4801", "W4802"}
    assert run()[0] == 4


@pytest.mark.parametrize("after_effect", [False, True])
def test_a_lost_connection_is_said_once_in_full(run: Run, after_effect: bool) -> None:
    run.arm.lose("*", "/subscriptions*", after_effect=after_effect, times=1000)
    code, out, _ = run()
    assert code == 4
    assert out.count("ended the connection, or was not reached") == 1
    assert "for the reason of E4002" in out
    assert "not known whether the subscription has the region" in out


def test_nobody_signed_in_ends_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_CLIENT_SECRET", "wrong")
    code, out, _ = run()
    assert code == 4
    assert "E4001: not known what Azure would say: not signed in to AzureCloud" in out
    assert "az login" in out
    assert run.arm.requests == []


def test_az_may_be_in_another_cloud(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AZURE_CLIENT_SECRET", "wrong")
    monkeypatch.setenv("AZURE_CONFIG_DIR", str(tmp_path))
    assert "az cloud set" not in run()[1]
    (tmp_path / "config").write_text("[cloud]\nname = AzureUSGovernment\n")
    assert "hint: az cloud set --name AzureCloud, then az login" in run()[1]
    (tmp_path / "config").write_text("not a config")
    assert "az cloud set" not in run()[1]


def test_an_odd_answer_is_not_known(run: Run) -> None:
    """An older or newer Azure, or a proxy that answers JSON."""
    run.arm.fail("GET", "/subscriptions/*", RefusedError(200, "Odd", "of no known form"), times=1000)
    result = run.json()
    messages = {row["rule"]: row["message"] for row in result["not_known"]}
    assert "does not have the documented form (KeyError)" in messages["E4002"]
    assert "is no list" in messages["E4005"]


def test_checks_run_at_the_same_time(arm: Arm) -> None:
    """Each of three waits for the others, so one after the other they would never end."""
    gate = Barrier(3)

    class Waiting(Check):
        question, level = "whether they meet", "error"

        def run(self, plan: Plan, reader: Reader) -> list[Finding]:
            gate.wait(20)
            raise NotAsked("they met")

    Waiting.id = "E4999"
    plan = plan_from()
    reader = Reader(session_of(plan))
    report = preflight(plan, reader, Local(Path(), {}), [Waiting() for _ in range(3)])
    reader.close()
    assert [each.message for each in report.findings] == ["not known whether they meet: they met"] * 3
    assert arm.requests == []


def test_every_check_is_provoked_somewhere() -> None:
    texts = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    assert [check.id for check in all_checks() if check.id not in texts] == []
