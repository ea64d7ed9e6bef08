"""Subscription, tenant and region."""

from __future__ import annotations

import pytest

from generator.azure import failures
from generator.azure.refusals import Cause
from tests.preflight.command import Run


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("Disabled", ["E4002"]),
        ("Deleted", ["E4002"]),
        ("Warned", ["W4003"]),
        ("PastDue", ["W4003"]),
        ("Enabled", []),
    ],
)
def test_the_subscription_can_be_used(run: Run, state: str, expected: list[str]) -> None:
    run.arm.state.subscription_state = state
    assert run.found() == expected


def test_a_subscription_of_nobody(run: Run) -> None:
    other = "12345678-0000-0000-0000-000000000000"
    code, out, _ = run("--subscription", other)
    assert code == 1
    assert f"E4002: the subscription {other} does not exist for this login" in out


def test_a_subscription_of_another_tenant(run: Run) -> None:
    run.arm.state.subscription_tenant = "11111111-0000-0000-0000-00000000000a"
    code, out, _ = run()
    assert code == 1
    assert "error E4004: " in out
    assert "az login --tenant " in out


def test_warnings_do_not_fail(run: Run) -> None:
    run.arm.state.subscription_state = "Warned"
    assert run()[0] == 0


@pytest.mark.parametrize(
    ("methods", "expected"),
    [(None, []), (("pwd",), ["W4006"]), ((), ["W4006"]), (("pwd", "mfa"), []), (("rsa", "mfa"), [])],
)
def test_a_user_needs_more_than_a_password(run: Run, methods: tuple[str, ...] | None, expected: list[str]) -> None:
    """A service principal and a managed identity need no second factor."""
    run.arm.state.caller.methods = methods
    assert run.found() == expected
    code, out, _ = run()
    assert code == 0
    assert ("ann@example.org is signed in without multi-factor authentication" in out) == bool(expected)


def restricted(run: Run, *regions: str) -> None:
    """As Azure assigns it to student and new subscriptions: az policy assignment show --name sys.regionrestriction."""
    run.arm.state.put(
        f"{run.arm.state.scope}/providers/Microsoft.Authorization/policyAssignments/sys.regionrestriction",
        properties={
            "displayName": "Allowed resource deployment regions", "scope": run.arm.state.scope,
            "parameters": {"listOfAllowedLocations": {"value": list(regions)}},
        },
    )  # fmt: skip


def test_regions_that_azure_has_closed_to_the_subscription(run: Run) -> None:
    restricted(run, "westus3", "southCentralUS")
    assert run.found() == []
    restricted(run, "westus3", "centralus")
    code, out, _ = run()
    assert code == 1
    assert "error E4005: Azure lets this subscription deploy to westus3, centralus, not to southcentralus" in out
    assert "choose one of these" in out


def test_a_refusal_of_azure_itself_is_none_of_the_organisation() -> None:
    said = "This policy maintains a set of best available regions where your subscription can deploy resources."
    (own,) = failures.explained([Cause("RequestDisallowedByAzure", said)], name="small", group="small-rg")
    (other,) = failures.explained([Cause("RequestDisallowedByPolicy", "no")], name="small", group="small-rg")
    assert "Azure itself" in str(own.words)
    assert "another region" in str(own.fix)
    assert "exemption" not in str(own.fix)
    assert "your organisation forbids" in str(other.words)
