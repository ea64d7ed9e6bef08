"""What the tests of the locker are on does what it says: servers, credentials, and a proxy that only looks."""

from __future__ import annotations

import http.client
import io
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    HttpResponseError,
    ServiceRequestError,
)
from azure.identity import DefaultAzureCredential
from azure.storage.blob import BlobBlock, BlobServiceClient, ContainerClient

from tests.locker.azurite import ACCOUNT, Azurite, Container, account_sas, md5_of, missing_azurite
from tests.locker.certificate import Certificate
from tests.locker.clients import CONTENT, SHARED_KEY, Fixed, code_of, over_tls, through
from tests.locker.faults import (
    Cut,
    at,
)  # fmt: skip
from tests.locker.identity import Identity, token
from tests.locker.proxy import Proxy, proxying

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
