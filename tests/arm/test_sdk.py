"""The real SDK: its pipeline reads pages and errors, its poller follows both headers, and two people are two."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from azure.core.pipeline.policies import RequestIdPolicy
from azure.core.polling import LROPoller
from azure.core.rest import HttpRequest
from azure.identity import ClientSecretCredential
from azure.mgmt.core import ARMPipelineClient
from azure.mgmt.core.policies import ARMChallengeAuthenticationPolicy
from azure.mgmt.core.polling.arm_polling import ARMPolling

from tests.bed.arm import Arm

GROUP, NETWORK = "2025-04-01", "2025-05-01"
SCOPE = "https://management.azure.com/.default"


def sdk(arm: Arm, place: int = 0) -> Any:
    """Signed in as one of the callers."""
    caller = list(arm.state.callers.values())[place]
    credential = ClientSecretCredential(
        arm.state.tenant, caller.client_id, caller.secret, authority=arm.url, disable_instance_discovery=True
    )
    policies = [RequestIdPolicy(), ARMChallengeAuthenticationPolicy(credential, SCOPE)]
    return ARMPipelineClient(arm.url, policies=policies)


@pytest.fixture
def pipeline(arm: Arm) -> Iterator[Any]:
    with sdk(arm) as made:
        yield made


def ended(client: Any, method: str, path: str, version: str, body: Any = None) -> Any:
    """The result of a long operation, as the real poller finds it."""
    request = HttpRequest(method, client.format_url(path), params={"api-version": version}, json=body)
    first = client._pipeline.run(request)
    first.http_response.read()
    poller: LROPoller[Any] = LROPoller(client, first, lambda answer: answer, ARMPolling(0))
    return poller.result(60)


def test_the_poller_follows_both_headers(arm: Arm, pipeline: Any) -> None:
    group = f"{arm.state.scope}/resourceGroups/rg"
    arm.state.put(group, location="eastus")
    net = f"{group}/providers/Microsoft.Network/virtualNetworks/net"
    arm.state.polls = 3
    created = ended(pipeline, "PUT", net, NETWORK, {"location": "eastus", "properties": {}})
    assert created.http_response.json()["properties"]["provisioningState"] == "Succeeded"
    ended(pipeline, "DELETE", group, GROUP)
    assert list(arm.state.resources) == []
    asked = [each.path.split("/")[-2] for each in arm.requests if "/operation" in each.path]
    assert asked == ["operationStatuses"] * 3 + ["operationResults"] * 3


def test_two_people_are_told_apart(arm: Arm, pipeline: Any) -> None:
    request = HttpRequest("GET", pipeline.format_url(f"{arm.state.scope}?api-version=2022-12-01"))
    pipeline.send_request(request).raise_for_status()
    with sdk(arm, 1) as second:
        second.send_request(request).raise_for_status()
    assert [each.caller for each in arm.requests] == list(arm.state.callers)
    first, other = (arm.environment_of(each)["AZURE_CLIENT_ID"] for each in arm.state.callers.values())
    assert first != other
