"""A shipped definition as it is built today, compiled by the stand-in `bicep`: deployed twice, it changes nothing."""

from __future__ import annotations

from tests.answers import data_of
from tests.what_if.place import PASSWORD, Place


def test_a_deployment_that_is_repeated_changes_nothing(place: Place) -> None:
    place.patch.setattr("generator.azure.deployment.PAUSE_S", 0.0)
    place.patch.setenv("CYCLECLOUD_ADMIN_PASSWORD", PASSWORD)
    place.arm.state.pace = 20
    assert place("build", "minimal")[0] == 0
    code, out, err = place("deploy", "minimal", "--yes", "--no-preflight")
    assert (code, place.arm.refused) == (0, []), err
    assert "to create" in out
    code, out, _ = place("what-if", "minimal")
    assert (code, out.splitlines()[0]) == (0, "nothing changes, as far as Azure can say")
    assert "cycleforge-roles: its names need what only the deployment creates" in out
    assert data_of(place("diff", "minimal", "--deployed", "--json")[1])["drift"] is False
