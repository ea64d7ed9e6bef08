"""The stand-in of Azure Resource Manager, with the real libraries that speak to it."""

from __future__ import annotations

from typing import Any

import pytest
import requests

from tests.bed.arm import Arm
from tests.bed.arm.answers import ANSWERS
from tests.bed.arm.client import Client
from tests.bed.arm.exchange import RefusedError
from tests.bed.arm.state import CONTRIBUTOR, READER
from tests.bed.arm.table import kinds, rows

GROUP = "2025-04-01"
NETWORK = "2025-05-01"


def group_of(arm: Arm, name: str = "rg") -> str:
    path = f"{arm.state.scope}/resourceGroups/{name}"
    arm.state.put(path, location="eastus")
    return path


def network_of(arm: Arm) -> str:
    return f"{group_of(arm)}/providers/Microsoft.Network/virtualNetworks/net"


NETWORK_BODY = {
    "location": "eastus",
    "properties": {
        "addressSpace": {"addressPrefixes": ["10.0.0.0/16"]},
        "subnets": [{"name": "a", "properties": {"addressPrefix": "10.0.0.0/24"}}],
    },
}


def test_every_row_names_a_public_source_and_an_answer() -> None:
    assert all(row.source.startswith("https://") and row.answer in ANSWERS for row in rows())
    assert all(kind.source.startswith("https://") for kind in kinds().values())


def test_what_the_table_does_not_have_is_refused(client: Client, arm: Arm) -> None:
    scope, net = arm.state.scope, network_of(arm)
    wrong: tuple[Any, ...]
    for wrong in (
        ("GET", f"{scope}/something", GROUP),
        ("GET", scope, None),
        ("GET", scope, "2014-01-01"),
        ("DELETE", scope, "2022-12-01"),
        ("PUT", f"{scope}/resourceGroups/rg", GROUP, {"tags": {}}),
        ("PUT", net, NETWORK, {}),
        ("GET", net, "1999-01-01"),
        ("GET", f"{group_of(arm)}/providers/Microsoft.Nothing/things/a", GROUP),
    ):
        assert client.error(*wrong) == (400, "NotInTable"), wrong
    assert client.error("GET", scope, "2022-12-01", option="1") == (400, "NotInTable")
    assert len(arm.refused) == 9


def test_who_is_not_signed_in(arm: Arm) -> None:
    def asked(token: str) -> str:
        headers = {"Authorization": token} if token else {}
        address = f"{arm.url}{arm.state.scope}?api-version=2022-12-01"
        response = requests.get(address, headers=headers, timeout=20)
        assert response.status_code == 401
        return str(response.json()["error"]["code"])

    from tests.bed.arm.tokens import token

    state = arm.state
    old = token(state.caller, "https://management.azure.com", state.tenant, -10)
    foreign = token(state.caller, "https://management.azure.com", "another")
    other = token(state.caller, "https://storage.azure.com", state.tenant)
    assert asked("") == "AuthenticationFailed"
    assert asked("Bearer x") == "InvalidAuthenticationToken"
    assert asked(f"Bearer {old}") == "ExpiredAuthenticationToken"
    assert asked(f"Bearer {foreign}") == "InvalidAuthenticationTokenTenant"
    assert asked(f"Bearer {other}") == "InvalidAuthenticationTokenAudience"


@pytest.mark.parametrize(("variable", "value", "said"), [
    ("AZURE_CLIENT_SECRET", "another", "AADSTS7000215"),
    ("AZURE_CLIENT_ID", "cccccccc-0000-0000-0000-000000000009", "AADSTS700016"),
])  # fmt: skip
def test_a_login_that_is_refused(
    arm: Arm, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, said: str
) -> None:
    from azure.core.exceptions import ClientAuthenticationError

    monkeypatch.setenv(variable, value)
    with pytest.raises(ClientAuthenticationError, match=said):
        Client(arm)


def test_a_resource_is_created_changed_listed_and_deleted(client: Client, arm: Arm) -> None:
    net = network_of(arm)
    assert client.error("GET", net, NETWORK) == (404, "ResourceNotFound")
    created = client("PUT", net, NETWORK, NETWORK_BODY)
    assert (created.status_code, created.json()["properties"]["provisioningState"]) == (201, "Creating")
    states: list[str] = []
    while not states or states[-1] == "InProgress":
        states.append(client("GET", created.headers["Azure-AsyncOperation"], None).json()["status"])
    assert states == ["InProgress", "Succeeded"]
    assert client("GET", net, NETWORK).json()["properties"]["provisioningState"] == "Succeeded"
    assert client("GET", f"{net}/subnets/a", NETWORK).json()["properties"]["addressPrefix"] == "10.0.0.0/24"
    assert client("PUT", net, NETWORK, NETWORK_BODY).status_code == 200
    listed = client("GET", f"{arm.state.scope}/providers/Microsoft.Network/virtualNetworks", NETWORK).json()["value"]
    assert [each["id"] for each in listed] == [net]
    deleted = client("DELETE", net, NETWORK)
    assert deleted.status_code == 202
    assert [client("GET", deleted.headers["Location"], None).status_code for _ in range(2)] == [202, 204]
    assert client("DELETE", net, NETWORK).status_code == 204
    assert arm.changes == [f"PUT {net}", f"PUT {net}", f"DELETE {net}", f"DELETE {net}"]


def test_a_group_goes_with_what_is_in_it(client: Client, arm: Arm) -> None:
    net = network_of(arm)
    arm.state.put(net, location="eastus")
    deleted = client("DELETE", group_of(arm), GROUP)
    assert [client("GET", deleted.headers["Location"], None).status_code for _ in range(2)] == [202, 200]
    assert client.error("GET", group_of(arm).replace("/rg", "/other"), GROUP) == (404, "ResourceGroupNotFound")
    assert not list(arm.state.below(net.rpartition("/providers")[0]))


def test_a_lock_keeps_its_scope_and_what_holds_it(client: Client, arm: Arm) -> None:
    net = network_of(arm)
    arm.state.put(net, location="eastus")
    lock = f"{net}/providers/Microsoft.Authorization/locks/keep"
    assert client("PUT", lock, "2016-09-01", {"properties": {"level": "CanNotDelete"}}).status_code == 201
    assert client.error("DELETE", net, NETWORK) == (409, "ScopeLocked")
    assert client.error("DELETE", net.rpartition("/providers")[0], GROUP) == (409, "ScopeLocked")
    assert client("PUT", net, NETWORK, NETWORK_BODY).status_code == 200
    assert client("DELETE", lock, "2016-09-01").status_code == 200
    assert client("DELETE", net, NETWORK).status_code == 202


def test_roles_and_deny_assignments_forbid(client: Client, arm: Arm) -> None:
    net, caller = network_of(arm), arm.state.caller
    caller.roles = [(arm.state.scope, READER)]
    assert client("GET", arm.state.scope, "2022-12-01").status_code == 200
    assert client.error("PUT", net, NETWORK, NETWORK_BODY) == (403, "AuthorizationFailed")
    caller.roles = [(net.rpartition("/providers")[0], CONTRIBUTOR)]
    assert client.error("GET", arm.state.scope, "2022-12-01") == (403, "AuthorizationFailed")
    assert client("PUT", net, NETWORK, NETWORK_BODY).status_code == 201
    asked = client("GET", f"{net}/providers/Microsoft.Authorization/permissions", "2022-04-01").json()["value"]
    assert asked == [CONTRIBUTOR]
    everyone = {"id": "00000000-0000-0000-0000-000000000000", "type": "SystemDefined"}
    denied = {"scope": net, "permissions": [{"actions": ["*/delete"]}], "principals": [everyone]}
    arm.state.deny_assignments = [{"name": "no-delete", "properties": denied}]
    assert client.error("DELETE", net, NETWORK) == (403, "DenyAssignmentAuthorizationFailed")


def test_a_provider_is_registered_after_a_while(client: Client, arm: Arm) -> None:
    arm.state.providers["Microsoft.NetApp"]["registrationState"] = "NotRegistered"
    path = f"{arm.state.scope}/providers/Microsoft.NetApp"
    assert client("POST", f"{path}/register", "2021-04-01").json()["registrationState"] == "Registering"
    states = [client("GET", path, "2021-04-01").json()["registrationState"] for _ in range(3)]
    assert states == ["Registering", "Registered", "Registered"]
    assert (
        client.error("GET", f"{arm.state.scope}/providers/Microsoft.None", "2021-04-01")[1]
        == "InvalidResourceNamespace"
    )


def test_a_list_has_pages(client: Client, arm: Arm) -> None:
    arm.state.page_size = 4
    answer = client("GET", f"{arm.state.scope}/providers", "2021-04-01").json()
    found = list(answer["value"])
    while "nextLink" in answer:
        answer = client("GET", answer["nextLink"], None).json()
        found += answer["value"]
    assert {each["namespace"] for each in found} == set(arm.state.providers)
    assert len(arm.requests) > 3


def test_faults_are_used_up(client: Client, arm: Arm) -> None:
    net = network_of(arm)
    arm.throttle(retry_after="0")
    arm.fail("GET", "*", RefusedError(503, "ServerTimeout", "later"))
    first = client("GET", arm.state.scope, "2022-12-01")
    assert (first.status_code, first.headers["Retry-After"]) == (429, "0")
    assert client.error("GET", arm.state.scope, "2022-12-01") == (503, "ServerTimeout")
    assert client("GET", arm.state.scope, "2022-12-01").status_code == 200
    for after_effect in (False, True):
        arm.lose("PUT", "*/virtualnetworks/*", after_effect=after_effect)
        with pytest.raises(requests.ConnectionError):
            client("PUT", net, NETWORK, NETWORK_BODY)
        assert (arm.state.resource(net) is not None) == after_effect


def test_other_hosts_are_not_reached(arm: Arm) -> None:
    with pytest.raises(requests.ConnectionError):
        requests.get("https://example.org/", timeout=20)
    assert arm.refused == ["CONNECT example.org:443: not a host of the stand-in"]
    public = requests.get("https://management.azure.com/metadata/endpoints", timeout=20)
    assert public.json()[0]["resourceManager"] == f"{arm.url}/"


def test_what_the_stand_in_cannot_do_is_no_lost_connection(client: Client, arm: Arm) -> None:
    arm.state.documents["/providers/microsoft.features/providers/microsoft.compute/features/x"] = lambda *_: 1 / 0
    feature = f"{arm.state.scope}/providers/Microsoft.Features/providers/Microsoft.Compute/features/x"
    assert client.error("GET", feature, "2021-07-01") == (500, "StandInFailed")
    broken = client.session.post(
        f"{arm.url}{feature}", data="{", headers={"Content-Type": "application/json"}, timeout=20
    )
    assert broken.status_code == 500
    assert "ZeroDivisionError" in arm.refused[0]
    assert "JSONDecodeError" in arm.refused[1]


def test_az_writes_one_key_without_quotes(client: Client, arm: Arm) -> None:
    path = f"{arm.state.scope}/providers/Microsoft.Resources/deployments/a?api-version=2025-04-01"
    text = '{"location": "eastus", "properties": {"mode": "Incremental", template:{"resources": []}}}'
    answer = client.session.put(f"{arm.url}{path}", data=text, headers={"Content-Type": "application/json"}, timeout=20)
    assert answer.status_code == 201
