"""What Azure refuses, as a person reads it: the right exit code, what it means, and what to do."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from generator.locker import container as container_module
from generator.locker.client import Limits
from generator.locker.refusals import _CODES, _STATUS, HIERARCHICAL, _reason
from tests.locker import refusals
from tests.locker.azurite import ACCOUNT, KEY, Azurite, Container
from tests.locker.command import CLOSED, Command, commands
from tests.locker.faults import HIERARCHICAL as HIERARCHICAL_ACCOUNT
from tests.locker.faults import Decide, Fault, Request, Rewrite, on, with_folders
from tests.locker.ground import ONCE, project
from tests.locker.identity import Identity
from tests.locker.proxy import Proxy, proxying
from tests.locker.refusals import Answer

IN_TIME_S = 6.0
"""Until a person knows that there is nobody."""


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Iterator[Command]:
    yield from commands(monkeypatch, capsys, tmp_path)


@dataclass(frozen=True)
class Page(Answer):
    """What something between says: no XML, no code."""

    def body(self) -> bytes:
        """Any page."""
        return b"<!DOCTYPE html><html><title>Sign in &amp; go on</title></html>"


ANSWERS = [
    *(value for name, value in sorted(vars(refusals).items()) if isinstance(value, Answer)),
    Answer(400, "Md5Mismatch", "The MD5 value specified in the request did not match the value that was calculated."),
    Answer(400, "InvalidAuthenticationInfo", "Authentication information is not given in the correct format."),
    Answer(403, "AuthorizationSourceIPMismatch", "This request is not authorized … using this source IP 192.0.2.1."),
    Answer(403, "AuthorizationProtocolMismatch", "This request is not authorized … using this protocol."),
    Answer(403, "InsufficientAccountPermissions", "Write operations are not allowed."),
    Answer(403, "UnauthorizedBlobOverwrite", "This request is not authorized to perform blob overwrites."),
    Answer(403, "KeyVaultEncryptionKeyNotFound", "The key vault key is not found to unwrap the encryption key."),
    Answer(403, "KeyVaultAccessTokenCannotBeAcquired", "Failed to acquire an access token for the key vault."),
    Answer(404, "BlobNotFound", "The specified blob does not exist."),
    Answer(404, "ResourceNotFound", "The specified resource does not exist."),
    Answer(409, "AccountBeingCreated", "The specified account is in the process of being created."),
    Answer(409, "BlobArchived", "This operation is not permitted on an archived blob."),
    Answer(409, "BlobBeingRehydrated", "This operation is not permitted because the blob is being rehydrated."),
    Answer(409, "BlobImmutableDueToLegalHold", "This operation is not permitted … one or more legal holds."),
    Answer(409, "BlobOperationNotSupported", "The operation is not supported in this scenario."),
    Answer(409, "ContainerDisabled", "The specified container has been disabled by the administrator."),
    Answer(409, "EndpointUnsupportedAccountFeatures", "This endpoint does not support these account features."),
    Answer(409, "BlobApiNotYetSupportedForHierarchicalNamespaceAccounts", "Blob API is not yet supported …"),
    Answer(409, "ResourceTypeMismatch", "The specified resource type does not match the existing resource."),
    Answer(412, "ConditionNotMet", "The condition specified using HTTP conditional header(s) is not met."),
    # What is not known, or not Azure's.
    Answer(400, "NewCodeOfTomorrow", "One of the request inputs is not valid."),
    Answer(401, "NewCodeOfTomorrow", "Not you."),
    Answer(403, "NewCodeOfTomorrow", "Not here."),
    Answer(418, "NewCodeOfTomorrow", "Short and stout."),
    Answer(507, "NewCodeOfTomorrow", "No room."),
    Page(401, "", "", {"Content-Type": "text/html"}),
    Page(403, "", "", {"Content-Type": "text/html"}),
    Page(404, "", "", {"Content-Type": "text/html"}),
    Page(429, "", "", {"Content-Type": "text/html"}),
    Page(502, "", "", {"Content-Type": "text/html"}),
]


def always(answer: Answer) -> Decide:
    """To every request."""
    return lambda _: answer


@dataclass(frozen=True)
class Door:
    """A way to sign in through a proxy that refuses what it is told."""

    way: str
    proxy: Proxy
    container: Container

    @property
    def url(self) -> str:
        """Of the container, through the proxy."""
        return f"{self.proxy.url}/{self.container.name}"

    def neutral(self, text: str) -> str:
        """Without what differs from run to run."""
        for there, word in ((self.url, "LOCKER"), (self.container.name, "CONTAINER"), (ACCOUNT, "ACCOUNT")):
            text = text.replace(there, word)
        return text


@contextmanager
def doors(
    run: Command, proxy: Proxy, container: Container, over_tls: Container, login: Identity
) -> Iterator[list[Door]]:
    """With a key, a signature, a login."""
    certificate = over_tls.server.certificate
    assert certificate
    run.environment(**login.environment, REQUESTS_CA_BUNDLE=str(certificate.certificate))
    run.environment(AZURE_STORAGE_KEY=KEY, AZURE_STORAGE_SAS_TOKEN=container.sas())
    with proxying(over_tls.server) as between:
        yield [Door("key", proxy, container), Door("sas", proxy, container), Door("login", between, over_tls)]


def test_the_table_has_every_code() -> None:
    assert {answer.code for answer in ANSWERS} >= set(_CODES)
    unknown = {answer.status for answer in ANSWERS if answer.code == "NewCodeOfTomorrow"}
    assert unknown >= set(_STATUS)


def test_every_refusal_says_what_to_do(
    run: Command, proxy: Proxy, container: Container, container_tls: Container, token_server: Identity,
    snapshot: SnapshotAssertion,
) -> None:  # fmt: skip
    said: list[str] = []
    with doors(run, proxy, container, container_tls, token_server) as ways:
        for answer in ANSWERS:
            said.append(f"---- {answer.status} {answer.code or '(a page)'}")
            texts: dict[str, list[str]] = {}
            for door in ways:
                door.proxy.decide = always(answer)
                code, text = run.refused("locker", "ls", "--locker", door.url, "--auth", door.way)
                assert code == 4, text
                assert "hint: " in text or answer.code == "NewCodeOfTomorrow"
                texts.setdefault(door.neutral(text), []).append(door.way)
            said += [f"{', '.join(names) if len(texts) > 1 else 'any'}: {text}" for text, names in texts.items()]
    assert "\n".join(said) == snapshot


def test_who_lacks_the_role_is_named_in_the_command(
    run: Command, proxy: Proxy, container: Container, container_tls: Container, token_server: Identity
) -> None:
    with doors(run, proxy, container, container_tls, token_server) as (*_, login):
        login.proxy.decide = lambda _: refusals.NO_ROLE
        _, said = run.refused("locker", "ls", "--locker", login.url, "--auth", "login")
    assert "the role 'Storage Blob Data Contributor'" in said
    assert "--assignee-object-id 44444444-4444-4444-4444-444444444444 --assignee-principal-type Service" in said


# ---------------------------------------------------------------- in the middle of a command


@pytest.mark.parametrize("answer", [refusals.NO_ROLE, refusals.IMMUTABLE, refusals.LEASED, refusals.FIREWALL])
def test_a_refusal_of_a_write_leaves_no_manifest(
    run: Command, proxy: Proxy, container: Container, answer: Answer
) -> None:
    folder = project(run.folder / "site")
    run.sign_in("sas", container.sas())
    proxy.decide = on("Put Blob", answer)
    code, said = run(*("upload", str(folder), "--locker", f"{proxy.url}/{container.name}"))[::2]
    assert code == 4
    assert f"({answer.code})" in said
    assert "hint: " in said
    assert container.names() == set()
    code, out, err = run("upload", str(folder), "--locker", f"{proxy.url}/{container.name}", "--json")
    assert (code, err) == (4, "")
    assert f"({answer.code})" in out
    proxy.forget()
    assert run("upload", str(folder), "--locker", f"{proxy.url}/{container.name}")[0] == 0


@pytest.mark.parametrize("when", ["by its account", "by a listing", "by what appears"])
def test_a_hierarchical_namespace(run: Command, proxy: Proxy, container: Container, when: str) -> None:
    def once_written(request: Request) -> Fault | None:
        is_listing = request.operation == "List Blobs" and bool(proxy.done("Put Blob"))
        return with_folders("projects", "projects/site", "projects/site/1.0.0") if is_listing else None

    proxy.decide = {
        "by its account": on("Get Account Information", HIERARCHICAL_ACCOUNT),
        "by a listing": on("List Blobs", with_folders("projects", "projects/site")),
        "by what appears": once_written,
    }[when]
    run.sign_in("key", KEY)
    code, _, said = run("upload", str(project(run.folder / "site")), "--locker", f"{proxy.url}/{container.name}")
    assert code == 4
    assert HIERARCHICAL[0] in said
    assert f"hint: {HIERARCHICAL[1]}" in said
    names = container.names()
    assert "projects/site/1.0.0/manifest.json" not in names
    assert bool(names) == (when == "by what appears")


def test_a_page_where_a_listing_should_be(
    run: Command, proxy: Proxy, container: Container, caplog: pytest.LogCaptureFixture
) -> None:
    run.sign_in("sas", container.sas())
    for content_type in ("text/html", "application/xml"):
        proxy.decide = on("List Blobs", Rewrite({"content-type": content_type}, lambda _: b"<html><p>Sign in</html>"))
        code, said = run.refused("locker", "ls", "--locker", f"{proxy.url}/{container.name}")
        assert code == 4
        assert "blob service" in said
        assert re.search("hint: .*address.*proxy.*page", said)
    proxy.decide = always(Page(500, "", "", {"Content-Type": "text/html"}))
    assert run.refused("locker", "ls", "--locker", f"{proxy.url}/{container.name}")[0] == 4
    assert not caplog.records, "the SDK's warnings would be printed"


# ---------------------------------------------------------------- nobody there


def door_of(port: int, scheme: str = "http") -> str:
    return f"{scheme}://127.0.0.1:{port}/{ACCOUNT}/locker"


def test_nobody_listens(run: Command, monkeypatch: pytest.MonkeyPatch, container: Container) -> None:
    monkeypatch.setattr(container_module, "Limits", Limits)
    run.sign_in("sas", container.sas())
    pauses_s: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses_s.append)
    code, said = run.refused("locker", "ls", "--locker", door_of(1))
    assert sum(pauses_s) < IN_TIME_S
    assert code == 4
    assert "cannot be reached: connection refused" in said
    assert "HTTPS_PROXY" in said


def test_no_name(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(host: str, *_: object, **__: object) -> list[Any]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    monkeypatch.setattr(container_module, "Limits", Limits)
    run.sign_in("sas", "sv=1&sig=hush-hush")
    pauses_s: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses_s.append)
    code, said = run.refused("locker", "ls", "--locker", "https://forge.blob.invalid/projects")
    assert sum(pauses_s) < IN_TIME_S
    assert code == 4
    assert "https://forge.blob.invalid/projects: the name of the account does not resolve" in said
    assert "private endpoint" in said


def test_a_certificate_that_nobody_knows(run: Command, container_tls: Container) -> None:
    run.sign_in("key", KEY)
    code, said = run.refused("locker", "ls", "--locker", container_tls.url)
    assert code == 4
    assert "its certificate is not accepted" in said
    assert "REQUESTS_CA_BUNDLE" in said


def test_a_file_of_certificates_that_is_not_there(run: Command, container_tls: Container) -> None:
    run.sign_in("key", KEY)
    run.environment(REQUESTS_CA_BUNDLE="/nonexistent.pem")
    code, said = run.refused("locker", "ls", "--locker", container_tls.url)
    assert code in (2, 4)
    assert "/nonexistent.pem" in said


def test_no_encryption_where_it_is_expected(run: Command, azurite: Azurite, container: Container) -> None:
    run.sign_in("sas", container.sas())
    code, said = run.refused("locker", "ls", "--locker", door_of(azurite.port, "https"))
    assert code == 4
    assert "cannot be reached: [SSL" in said
    code, said = run.refused("locker", "ls", "--locker", f"https://127.0.0.1:1/{ACCOUNT}/locker")
    assert "cannot be reached: connection refused" in said


def test_a_proxy_in_the_way(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    run.sign_in("sas", "sv=1&sig=hush-hush")
    run.secrets.add("pass-word")
    proxy = CLOSED.replace("http://", "http://user:pass-word@")
    run.environment(HTTPS_PROXY=proxy, https_proxy=proxy)
    code, said = run.refused("locker", "ls", "--locker", "az://forge/projects")
    assert code == 4
    assert "cannot be reached through the proxy of HTTPS_PROXY: connection refused" in said


def test_a_server_that_says_nothing(run: Command, monkeypatch: pytest.MonkeyPatch, container: Container) -> None:
    monkeypatch.setattr(container_module, "Limits", lambda: Limits(0.2, 0.1, tries=2, pause_s=0.01))
    run.sign_in("sas", container.sas())
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(8)
        code, said = run.refused("locker", "ls", "--locker", door_of(silent.getsockname()[1]))
    assert code == 4
    assert "cannot be reached: timed out" in said


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("HTTPSConnectionPool(host='x', port=443): Max retries exceeded with url: /c?sv=1&sig=hush (Caused by "
         "ProxyError('Unable to connect to proxy', OSError('Tunnel connection failed: 407 Proxy Authentication')))",
         "Tunnel connection failed: 407 Proxy Authentication"),
        ("HTTPConnectionPool(host='x', port=80): Max retries exceeded with url: /c?sig=hush (Caused by "
         "NewConnectionError(\"HTTPConnection(host='x'): Failed to establish: [Errno 113] No route to host\"))",
         "[Errno 113] No route to host"),
        ("('Connection broken: https://x/c?sig=hush', /c?sig=hush)", "('Connection broken: … …"),
        ("", "no reason was given"),
    ],
)  # fmt: skip
def test_reasons_without_what_was_sent(text: str, wanted: str) -> None:
    found = _reason(text)
    assert wanted in found
    assert "hush" not in found


def test_a_command_ends_when_the_server_has_no_time(
    run: Command, proxy: Proxy, container: Container, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container_module, "Limits", lambda: ONCE)
    run.sign_in("sas", container.sas())
    for answer in (refusals.BUSY, refusals.TOO_MANY):
        proxy.forget()
        proxy.decide = always(answer.after(1))
        code, said = run.refused("locker", "ls", "--locker", f"{proxy.url}/{container.name}")
        assert code == 4
        assert "the cause is in Azure: run the command again in a few minutes" in said
