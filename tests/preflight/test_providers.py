"""Resource providers and features."""

from __future__ import annotations

from tests.bed.plans import SMALL
from tests.preflight.command import Run

FEATURE = "/providers/microsoft.features/providers/microsoft.compute/features/encryptionathost"


def test_a_provider_that_is_not_registered(run: Run) -> None:
    provider = run.arm.state.providers["Microsoft.Network"]
    for state in ("NotRegistered", "Registering"):
        provider["registrationState"] = state
        code, out, _ = run()
        assert code == 1
        assert f"error E4201: the provider Microsoft.Network is {state}" in out
        assert "hint: az provider register --namespace Microsoft.Network --wait" in out
    provider["registrationState"] = "Registered"
    assert run.found() == []


def test_a_provider_that_the_cloud_does_not_have(run: Run) -> None:
    del run.arm.state.providers["Microsoft.Insights"]
    assert run.found() == ["E4201"]


def test_encryption_at_host_needs_its_feature(run: Run) -> None:
    text = f"{SMALL}\nsecurity: {{encryption_at_host: true}}\n"
    assert run.found(text=text) == []
    of_nodes = SMALL.replace("default: true}", "default: true, node_attributes: {EncryptionAtHost: true}}")
    documents = run.arm.state.documents
    del documents[FEATURE]
    assert run.found(text=text) == ["E4202"]
    assert run.found(text=of_nodes) == ["E4202"]
    documents[FEATURE] = {"properties": {"state": "Pending"}}
    assert run.found(text=text) == ["E4202"]
    assert run.found() == [], "nobody asked for it"
