"""What the tests of the locker are on does what it says: servers, credentials, and a proxy that breaks requests."""

from __future__ import annotations

import http.client
import io
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from azure.core.credentials import AccessToken
from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    HttpResponseError,
    ResourceNotFoundError,
    ServiceRequestError,
    ServiceResponseError,
)
from azure.identity import DefaultAzureCredential
from azure.storage.blob import BlobBlock, BlobClient, BlobServiceClient, ContainerClient, LinearRetry

from tests.locker import refusals
from tests.locker.azurite import ACCOUNT, KEY, Azurite, Container, account_sas, md5_of, missing_azurite
from tests.locker.certificate import Certificate
from tests.locker.faults import (
    HIERARCHICAL,
    Cut,
    Decide,
    Delay,
    Fault,
    Request,
    at,
    burst,
    either,
    on,
    with_folders,
)  # fmt: skip
from tests.locker.identity import Identity, token
from tests.locker.proxy import Proxy, proxying
from tests.locker.refusals import Answer

SHARED_KEY = {"account_name": ACCOUNT, "account_key": KEY}
CONTENT = bytes(range(256)) * 40


class Fixed:
    """A credential that has its token already."""

    def __init__(self, word: str) -> None:
        self._word = word

    def get_token(self, *_: str, **__: Any) -> AccessToken:
        return AccessToken(self._word, int(time.time()) + 3600)


def through(proxy: Proxy, container: Container, credential: Any = None, **options: Any) -> ContainerClient:
    """Microsoft's client, which goes through the proxy and tries everything once."""
    options = {"retry_total": 0, "read_timeout": 5} | options
    return ContainerClient(proxy.url, container.name, credential=credential or SHARED_KEY, **options)


def over_tls(container: Container, credential: Any) -> ContainerClient:
    certificate = container.server.certificate
    assert certificate
    return ContainerClient(
        container.server.url, container.name, credential=credential, connection_verify=str(certificate.certificate),
        retry_total=0,
    )  # fmt: skip


def code_of(error: pytest.ExceptionInfo[HttpResponseError]) -> str:
    """Azure's word for what went wrong."""
    code = getattr(error.value, "error_code", "")
    return str(getattr(code, "value", code))


# ---------------------------------------------------------------- the server


def test_without_its_program_the_reason_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tests.locker.azurite.PROGRAM", tmp_path / "nothing")
    assert "tests/install-tools.sh" in missing_azurite()
    monkeypatch.setattr("tests.locker.azurite.PROGRAM", Path("/bin/sh"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "node" in missing_azurite()


def test_a_server_keeps_what_it_has_until_it_is_killed(keeping: Azurite) -> None:
    container, port, first = keeping.new_container(), keeping.port, keeping.pid
    container.put("projects/a b/ü", CONTENT)
    keeping.restart()
    assert (keeping.port, container.names()) == (port, {"projects/a b/ü"})
    assert keeping.pid != first
    assert container.blobs()["projects/a b/ü"] == (len(CONTENT), md5_of(CONTENT), CONTENT)
    keeping.kill()
    with pytest.raises(OSError, match="refused"):
        http.client.HTTPConnection("127.0.0.1", port).connect()


def test_key_and_signatures_open_a_container(container: Container, azurite: Azurite) -> None:
    for credential in (SHARED_KEY, container.sas(), account_sas()):
        client = ContainerClient(azurite.url, container.name, credential=credential)
        client.upload_blob("x", CONTENT, overwrite=True)
        assert client.download_blob("x").readall() == CONTENT
        client.delete_blob("x")
    service = BlobServiceClient.from_connection_string(azurite.connection_string())
    assert container.name in {each.name for each in service.list_containers()}
    assert container.names() == set()


@pytest.mark.parametrize(
    ("credential", "code"),
    [
        (lambda _: {**SHARED_KEY, "account_key": "AAAA"}, "AuthorizationFailure"),
        (lambda container: container.sas("rl"), "AuthorizationPermissionMismatch"),
        (lambda container: container.sas(lifetime_s=-60), "AuthorizationFailure"),
        (lambda container: container.server.new_container().sas(), "AuthorizationFailure"),
    ],
    ids=["wrong key", "read only", "expired", "of another container"],
)
def test_other_credentials_do_not(container: Container, credential: Callable[[Container], object], code: str) -> None:
    client = ContainerClient(container.server.url, container.name, credential=credential(container), retry_total=0)  # type: ignore[arg-type]
    with pytest.raises(HttpResponseError) as refused:
        client.upload_blob("x", CONTENT)
    assert (refused.value.status_code, code_of(refused)) == (403, code)
    assert container.names() == set()


# ---------------------------------------------------------------- tokens


def test_a_token_key_or_signature_opens_the_server_over_tls(container_tls: Container) -> None:
    for credential in (Fixed(token()), SHARED_KEY, container_tls.sas()):
        over_tls(container_tls, credential).upload_blob("x", CONTENT, overwrite=True)
    assert container_tls.blobs()["x"].content == CONTENT


@pytest.mark.parametrize(
    "wrong",
    [token("https://management.azure.com"), token(issuer="https://elsewhere.example/"), token(lifetime_s=-30)],
    ids=["audience", "issuer", "expired"],
)
def test_another_token_does_not(container_tls: Container, wrong: str) -> None:
    with pytest.raises(ClientAuthenticationError) as refused:
        over_tls(container_tls, Fixed(wrong)).upload_blob("x", CONTENT)
    assert refused.value.status_code in (401, 403)
    assert container_tls.names() == set()


def test_the_certificate_is_not_trusted_by_itself(container_tls: Container) -> None:
    client = ContainerClient(container_tls.server.url, container_tls.name, credential=SHARED_KEY, retry_total=0)
    with pytest.raises(ServiceRequestError, match="CERTIFICATE_VERIFY_FAILED"):
        client.exists()


@pytest.fixture
def signed_in(token_server: Identity, monkeypatch: pytest.MonkeyPatch) -> Iterator[DefaultAzureCredential]:
    """What a machine with an identity has, asking the endpoint of this test."""
    for name, value in token_server.environment.items():
        monkeypatch.setenv(name, value)
    credential = default_credential()
    yield credential
    credential.close()


def default_credential(**options: float) -> DefaultAzureCredential:
    """The login of a machine without a developer on it."""
    return DefaultAzureCredential(
        exclude_developer_credentials=True, exclude_shared_token_cache_credential=True, retry_total=0, **options
    )


def test_the_default_credential_asks_the_endpoint(
    container_tls: Container, token_server: Identity, signed_in: DefaultAzureCredential
) -> None:
    over_tls(container_tls, signed_in).upload_blob("x", CONTENT)
    assert container_tls.names() == {"x"}
    assert token_server.asked == ["https://storage.azure.com"]


def test_an_endpoint_may_refuse_or_hang(token_server: Identity, signed_in: DefaultAzureCredential) -> None:
    token_server.behaviour = "refuses"
    with pytest.raises(ClientAuthenticationError, match="No User Assigned"):
        signed_in.get_token("https://storage.azure.com/.default")
    token_server.behaviour = "hangs"
    with default_credential(read_timeout=0.3) as impatient, pytest.raises(AzureError):
        impatient.get_token("https://storage.azure.com/.default")
    token_server.release()


# ---------------------------------------------------------------- a proxy that only looks


def test_requests_pass_unchanged_and_are_written_down(container: Container, proxy: Proxy) -> None:
    for credential in (SHARED_KEY, container.sas()):
        client = through(proxy, container, credential)
        name = "projects/a b/1.0.0/ü.txt"
        client.upload_blob(name, CONTENT, overwrite=True)
        blob = client.get_blob_client(name)
        blob.stage_block("MQ==", b"one")
        blob.stage_block("Mg==", io.BytesIO(b"two"))
        assert len(blob.get_block_list("uncommitted")[1]) == 2
        blob.commit_block_list([BlobBlock("MQ=="), BlobBlock("Mg==")])
        assert blob.get_blob_properties().size == 6
        assert blob.download_blob().readall() == b"onetwo"
        assert [each.name for each in client.list_blobs()] == [name]
        client.get_account_information()
        blob.delete_blob()
        assert [(each.operation, each.status) for each in proxy.requests] == [
            ("Put Blob", 201), ("Put Block", 201), ("Put Block", 201), ("Get Block List", 200),
            ("Put Block List", 201), ("Get Blob Properties", 200), ("Get Blob", 206), ("List Blobs", 200),
            ("Get Account Information", 200), ("Delete Blob", 202),
        ]  # fmt: skip
        first = proxy.requests[0]
        assert (first.number, first.container, first.blob) == (1, container.name, name)
        assert (first.body_bytes, first.headers["x-ms-blob-type"]) == (len(CONTENT), "BlockBlob")
        assert first.served == first.status
        assert first.started_s < first.ended_s
        assert len(proxy.done("Put Block")) == 2
        proxy.forget()
    assert proxy.requests == []


def raw(proxy: Proxy, container: Container, send: Callable[[http.client.HTTPConnection, str], None]) -> list[int]:
    """Twice the same request over one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=10)
    statuses = []
    for _ in range(2):
        send(connection, f"/{ACCOUNT}/{container.name}/x?{container.sas()}")
        answer = connection.getresponse()
        answer.read()
        statuses.append(answer.status)
    connection.close()
    return statuses


HEADERS = {"x-ms-blob-type": "BlockBlob", "x-ms-version": "2021-12-02"}


def test_chunks_are_understood(container: Container, proxy: Proxy) -> None:
    pieces = [b"a" * 70000, b"b" * 3]
    statuses = raw(proxy, container, lambda it, to: it.request("PUT", to, iter(pieces), HEADERS, encode_chunked=True))
    # Blob servers want a length, so this is the server's own answer, given when it has seen the whole body or before.
    assert statuses == [400, 400]
    assert [each.served for each in proxy.requests] == [400, 400]
    assert proxy.sent_bytes == 2 * 70003


def test_a_client_that_waits_for_100_gets_it(container: Container, proxy: Proxy) -> None:
    def send(connection: http.client.HTTPConnection, target: str) -> None:
        connection.putrequest("PUT", target)
        for name, value in {**HEADERS, "Content-Length": "3", "Expect": "100-continue"}.items():
            connection.putheader(name, value)
        connection.endheaders()
        assert connection.sock.recv(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.send(b"abc")

    assert raw(proxy, container, send) == [201, 201]
    assert container.blobs()["x"].content == b"abc"


def test_a_proxy_stands_before_tls_as_well(container_tls: Container, certificate: Certificate) -> None:
    with proxying(container_tls.server) as proxy:
        options = {"connection_verify": str(certificate.certificate)}
        client = through(proxy, container_tls, Fixed(token()), **options)
        client.upload_blob("x", CONTENT)
        proxy.decide = at(2, Cut("before"))
        with pytest.raises(AzureError):
            client.upload_blob("y", CONTENT)
    assert container_tls.names() == {"x"}


# ---------------------------------------------------------------- faults


@pytest.mark.parametrize("reset", [True, False])
@pytest.mark.parametrize(("where", "is_there"), [("before", False), ("body", False), ("after", True), ("answer", True)])
def test_a_connection_is_cut_where_it_should(
    container: Container, proxy: Proxy, where: Any, is_there: bool, reset: bool
) -> None:
    client = through(proxy, container)
    client.upload_blob("first", CONTENT)
    proxy.decide = at(2, Cut(where, reset))
    with pytest.raises((ServiceRequestError, ServiceResponseError)):
        client.upload_blob("x", CONTENT)
    assert container.names() == ({"first", "x"} if is_there else {"first"})
    second = proxy.requests[1]
    assert (second.status, second.served) == (None, 201 if is_there else None)
    assert second.body_bytes == {"before": 0, "body": second.body_bytes}.get(where, len(CONTENT))
    client.upload_blob("x", CONTENT, overwrite=True)
    assert container.blobs()["x"].content == CONTENT


def test_half_of_a_download_comes_through(container: Container, proxy: Proxy) -> None:
    container.put("x", CONTENT)
    proxy.decide = on("Get Blob", Cut("answer", reset=False))
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=10)
    connection.request("GET", f"/{ACCOUNT}/{container.name}/x?{container.sas()}")
    with pytest.raises(http.client.IncompleteRead) as cut:
        connection.getresponse().read()
    assert len(CONTENT) // 3 < len(cut.value.partial) < len(CONTENT)
    connection.close()


def test_a_large_body_is_cut_while_it_is_sent(container: Container, proxy: Proxy) -> None:
    proxy.decide = at(1, Cut("body"))
    with pytest.raises((ServiceRequestError, ServiceResponseError)):
        through(proxy, container).upload_blob("x", bytes(8 << 20))
    assert (4 << 20) <= proxy.sent_bytes < (8 << 20)
    assert container.names() == set()


@pytest.mark.parametrize("fault", [refusals.BUSY, refusals.INTERNAL, Cut("before"), Cut("after")])
def test_a_burst_ends_and_the_client_goes_on(container: Container, proxy: Proxy, fault: Fault) -> None:
    proxy.decide = burst(2, 3, fault)
    retries = LinearRetry(backoff=0, random_jitter_range=0, retry_total=4, retry_connect=4, retry_read=4)
    client = through(proxy, container, retry_policy=retries)
    client.upload_blob("a", CONTENT)
    client.upload_blob("b", CONTENT, overwrite=True)
    assert [each.fault for each in proxy.requests] == [None, fault, fault, fault, None]
    assert container.names() == {"a", "b"}


def test_a_server_without_time_may_say_how_long_to_wait(container: Container, proxy: Proxy) -> None:
    for answer, wait in ((refusals.TOO_MANY, None), (refusals.BUSY.after(7), "7")):
        proxy.decide = on("Put Blob", answer)
        with pytest.raises(HttpResponseError) as busy:
            through(proxy, container).upload_blob("a", CONTENT)
        response: Any = busy.value.response
        assert response.headers.get("Retry-After") == wait


def refusing() -> list[Answer]:
    return [value for value in vars(refusals).values() if isinstance(value, Answer)]


def test_refusals_reach_the_client_as_azures_do(container: Container, proxy: Proxy) -> None:
    for answer in refusing():
        proxy.forget()
        proxy.decide = burst(1, 2, answer)
        client = through(proxy, container)
        with pytest.raises(HttpResponseError) as refused:
            client.upload_blob("x", CONTENT)
        assert (refused.value.status_code, code_of(refused)) == (answer.status, answer.code)
        assert answer.message in str(refused.value)
        with pytest.raises(HttpResponseError) as headless:
            client.get_blob_client("x").get_blob_properties()
        assert (headless.value.status_code, code_of(headless)) == (answer.status, answer.code)
    assert container.names() == set()
    assert len(refusing()) > 15


def test_an_account_with_a_hierarchical_namespace(container: Container, proxy: Proxy) -> None:
    proxy.decide = either(on("Get Account Information", HIERARCHICAL), on("List Blobs", with_folders("projects")))
    client = through(proxy, container)
    assert bool(client.get_account_information()["is_hns_enabled"])
    for names in ({"projects"}, {"projects", "projects/x"}):
        listed = {each.name: each.metadata for each in client.list_blobs(include=["metadata"])}
        assert set(listed) == names
        assert listed["projects"] == {"hdi_isfolder": "true"}
        container.put("projects/x", CONTENT)
    proxy.forget()
    assert not client.get_account_information()["is_hns_enabled"]


def test_an_answer_comes_late_or_not_at_all(container: Container, proxy: Proxy) -> None:
    proxy.decide = at(1, Delay(0.2))
    client = through(proxy, container)
    client.upload_blob("x", CONTENT)
    assert proxy.requests[0].ended_s - proxy.requests[0].started_s >= 0.2
    proxy.decide = at(2, Delay(3600))
    with pytest.raises(ServiceResponseError, match="timed out"):
        through(proxy, container, read_timeout=0.2).upload_blob("y", CONTENT)
    proxy.end()
    assert container.names() == {"x", "y"}


def test_connections_are_refused_until_the_door_opens(container: Container, proxy: Proxy) -> None:
    client = through(proxy, container)
    client.upload_blob("x", CONTENT)
    port = proxy.port
    proxy.close()
    with pytest.raises(ServiceRequestError):
        client.upload_blob("y", CONTENT)
    proxy.open()
    assert proxy.port == port
    client.upload_blob("y", CONTENT)
    assert container.names() == {"x", "y"}


def test_a_server_that_goes_breaks_the_connection(keeping: Azurite) -> None:
    with proxying(keeping) as proxy:
        container = keeping.new_container()
        client = through(proxy, container)

        def gone(request: Request) -> Fault | None:
            if request.number == 2:
                keeping.stop()
            return None

        proxy.decide = gone
        client.upload_blob("x", CONTENT)
        with pytest.raises((ServiceRequestError, ServiceResponseError)):
            client.upload_blob("y", CONTENT)
        keeping.start()
        client.upload_blob("y", CONTENT)
        assert container.names() == {"x", "y"}


@pytest.mark.parametrize("hook", ["decide", "observe"])
def test_a_server_crashes_in_the_middle_and_keeps_its_word(keeping: Azurite, hook: str) -> None:
    with proxying(keeping) as proxy:
        container = keeping.new_container()
        is_back = threading.Event()

        def crash(request: Request) -> None:
            if request.number == 5:
                proxy.restart_server()
                is_back.set()

        setattr(proxy, hook, crash)
        stored, lost = set(), 0

        def upload(name: str) -> None:
            nonlocal lost
            try:
                through(proxy, container).upload_blob(name, CONTENT)
                stored.add(name)
            except (ServiceRequestError, ServiceResponseError):
                lost += 1

        threads = [threading.Thread(target=upload, args=(str(number),)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert is_back.wait(30)
        assert lost >= 1
        assert len(stored) + lost == 8
        assert stored <= container.names()
        through(proxy, container).upload_blob("afterwards", CONTENT)


# ---------------------------------------------------------------- an observer


def test_an_observer_sees_every_state(container: Container, proxy: Proxy) -> None:
    seen: list[tuple[str, set[str]]] = []
    proxy.observe = lambda request: seen.append((request.blob, container.names()))
    clients = [through(proxy, container) for _ in range(4)]
    threads = [
        threading.Thread(target=lambda client=client, name=str(i): client.upload_blob(name, CONTENT))
        for i, client in enumerate(clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(names) for _, names in seen] == [1, 2, 3, 4]
    for i, (name, names) in enumerate(seen):
        assert names == {each for each, _ in seen[: i + 1]}, name


@pytest.mark.parametrize("decide", [at(1, Cut("after")), at(1, Cut("body"))], ids=["lost answer", "broken"])
def test_an_observer_also_sees_what_the_client_does_not(container: Container, proxy: Proxy, decide: Decide) -> None:
    seen: list[set[str]] = []
    proxy.observe = lambda _: seen.append(container.names())
    proxy.decide = decide
    with pytest.raises(AzureError):
        through(proxy, container).upload_blob("x", CONTENT)
    assert seen == [container.names()]


def test_what_an_observer_finds_fails_the_test(azurite: Azurite, container: Container) -> None:
    def complain(_: Request) -> None:
        raise AssertionError("half a state")

    with pytest.raises(AssertionError, match="half a state"), proxying(azurite) as proxy:  # noqa: PT012
        proxy.observe = complain
        through(proxy, container).upload_blob("x", CONTENT)
    assert container.names() == {"x"}


def test_a_name_that_is_not_there(container: Container, proxy: Proxy) -> None:
    with pytest.raises(ResourceNotFoundError):
        BlobClient(proxy.url, "nowhere", "x", credential=SHARED_KEY, retry_total=0).upload_blob(CONTENT)
    assert proxy.requests[0].status == 404
    assert container.names() == set()
