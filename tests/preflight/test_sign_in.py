"""Subscription, tenant and region."""

from __future__ import annotations

import pytest

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
