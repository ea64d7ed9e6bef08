"""What the tests of the locker are on does what it says: servers, credentials, and a proxy that only looks."""

from __future__ import annotations

import http.client
import io
from pathlib import Path

import pytest
from azure.core.exceptions import (
    AzureError,
)
from azure.storage.blob import BlobBlock

from tests.locker.azurite import Azurite, Container, md5_of, missing_azurite
from tests.locker.certificate import Certificate
from tests.locker.clients import CONTENT, SHARED_KEY, Fixed, through
from tests.locker.faults import (
    Cut,
    at,
)  # fmt: skip
from tests.locker.identity import token
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


def test_a_proxy_stands_before_tls_as_well(container_tls: Container, certificate: Certificate) -> None:
    with proxying(container_tls.server) as proxy:
        options = {"connection_verify": str(certificate.certificate)}
        client = through(proxy, container_tls, Fixed(token()), **options)
        client.upload_blob("x", CONTENT)
        proxy.decide = at(2, Cut("before"))
        with pytest.raises(AzureError):
            client.upload_blob("y", CONTENT)
    assert container_tls.names() == {"x"}
