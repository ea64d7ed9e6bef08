"""Requests as they leave: signed in every way, whatever the name of a blob, and sent nowhere else."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from azure.core.credentials import AccessToken, AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import ClientAuthenticationError
from azure.storage.blob import BlobBlock

from generator.locker import address
from generator.locker.container import NEW, Container
from generator.locker.credentials import Credential, SignIn, _Login
from generator.locker.refusals import Refused
from tests.locker import azurite, refusals
from tests.locker.azurite import ACCOUNT, KEY
from tests.locker.faults import Request
from tests.locker.ground import ONCE, noise, opened
from tests.locker.proxy import Proxy, proxying
from tests.locker.refusals import Answer

NAMES = ("projects/a b/ü.txt", "a&b=c", "100%", "a+b", "x'y\"z", "q?r#s", "[1]", "~t", "%41", "a;b,c", "é<>")


def container_as(container: azurite.Container, credential: Credential, url: str = "") -> Container:
    """Opened with a credential, directly or through a proxy."""
    place = address.parse(f"{url or container.server.url}/{container.name}")
    return Container(place, SignIn("key", "a key", credential), ONCE)


@pytest.mark.parametrize("way", ["key", "sas"])
def test_any_name_can_be_written_listed_read_and_removed(container: azurite.Container, way: str) -> None:
    ours = container_as(
        container, AzureNamedKeyCredential(ACCOUNT, KEY) if way == "key" else AzureSasCredential(container.sas())
    )
    for name in NAMES:
        content = name.encode()
        ours.put(name, content, bytes.fromhex(azurite.md5_of(content)), NEW)
    assert {name: blob.content for name, blob in container.blobs().items()} == {each: each.encode() for each in NAMES}
    listing = ours.listing("")
    assert set(listing) == set(NAMES)
    for name in NAMES:
        assert ours.read(name) == name.encode()
        assert set(ours.listing(name)) == {name}
        ours.delete(name, listing[name].etag)
    assert container.names() == set()


def test_a_listing_of_several_pages(container: azurite.Container, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what each blob's writer claimed; a committed blob has no MD5, and an ETag is what a condition needs."""
    monkeypatch.setattr("generator.locker.container._PAGE_NAMES", 2)
    names = ("a&b", "c d", "ü <x>", "100%")
    for name in names:
        container.put(f"projects/{name}", name.encode())
    ours = opened(container.server.url, container)
    ours.stage("projects/blocks", "cf-1", b"12")
    container.client().get_blob_client("projects/blocks").commit_block_list([BlobBlock("cf-1")])
    found = dict(ours.listing("projects/"))
    assert found.pop("projects/blocks").md5 is None
    assert {name.removeprefix("projects/"): each.size_bytes for name, each in found.items()} == {
        name: len(name.encode()) for name in names
    }
    for name, each in found.items():
        assert each.md5 == bytes.fromhex(azurite.md5_of(name.removeprefix("projects/").encode()))
        ours.delete(name, each.etag)


def test_secrets_are_in_no_text() -> None:
    for credential in (AzureNamedKeyCredential("forge", "hush"), AzureSasCredential("sig=hush")):
        assert "hush" not in f"{SignIn('key', 'a key', credential)!r}"


def test_nothing_of_the_environment_signs(
    container: azurite.Container, proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`requests` would take a password from a .netrc, and keep cookies."""
    (tmp_path / ".netrc").write_text("default login ann password hush\n")
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    proxy.decide = lambda request: (
        Answer(404, "BlobNotFound", "", {"Set-Cookie": "a=b"}) if request.number < 3 else None
    )
    ours = container_as(container, AzureSasCredential(container.sas()), proxy.url)
    assert ours.staged("x") == []
    ours.delete("x")
    assert dict(ours.listing("")) == {}
    for request in proxy.requests:
        assert "authorization" not in request.headers
        assert "cookie" not in request.headers


def test_a_redirection_is_not_followed(container: azurite.Container, proxy: Proxy) -> None:
    asked: list[Request] = []

    def decide(request: Request) -> Answer:
        asked.append(request)
        return Answer(302, "", "", {"Location": f"{proxy.url}/elsewhere"})

    proxy.decide = decide
    with pytest.raises(Refused, match="the answer 302 is not one of Azure's blob service"):
        container_as(container, AzureSasCredential(container.sas()), proxy.url).listing("")
    assert len(asked) == 1


def test_a_large_blob_is_read_in_pieces_of_one_content(container: azurite.Container) -> None:
    ours = opened(container.server.url, container)
    first, second = noise(5 * 2**20, 1), noise(5 * 2**20, 2)
    container.put("big", first)
    assert [len(piece) for piece in ours.stream("big")] == [2 * 2**20, 2 * 2**20, 2**20]
    assert ours.read("big") == first
    pieces = ours.stream("big")
    assert next(pieces) == first[: 2 * 2**20]
    container.put("big", second)
    with pytest.raises(Refused, match="another program is changing it at the same time"):
        list(pieces)
    container.put("empty", b"")
    assert ours.read("empty") == b""


# ---------------------------------------------------------------- tokens


class Tokens:
    """Gives tokens that are valid for so long, and remembers for which tenant."""

    def __init__(self, lifetime_s: float) -> None:
        self.lifetime_s = lifetime_s
        self.tenants: list[str | None] = []

    def get_token(self, *scopes: str, tenant_id: str | None = None, **_: Any) -> AccessToken:
        assert scopes == ("https://storage.azure.com/.default",)
        if self.lifetime_s < 0:
            raise ClientAuthenticationError("expired")
        self.tenants.append(tenant_id)
        return AccessToken(f"token {len(self.tenants)}", int(time.time() + self.lifetime_s))


@pytest.fixture
def over_tls(container_tls: azurite.Container, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """In front of a server that takes tokens and is trusted."""
    certificate = container_tls.server.certificate
    assert certificate
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate.certificate))
    with proxying(container_tls.server) as proxy:
        yield proxy


def asked_with(proxy: Proxy) -> list[str]:
    """The tokens of all requests; each of them is refused."""
    seen: list[str] = []

    def decide(request: Request) -> Answer:
        seen.append(request.headers["authorization"])
        return refusals.NO_ROLE

    proxy.decide = decide
    return seen


def test_a_token_is_kept_until_shortly_before_its_end(container_tls: azurite.Container, over_tls: Proxy) -> None:
    seen = asked_with(over_tls)
    for lifetime_s in (3600, 120):
        ours = container_as(container_tls, _Login(Tokens(lifetime_s)), over_tls.url)
        for _ in range(2):
            with pytest.raises(Refused):
                ours.listing("")
    assert seen == ["Bearer token 1", "Bearer token 1", "Bearer token 2", "Bearer token 3"]


def test_no_token_any_more(container_tls: azurite.Container, over_tls: Proxy) -> None:
    tokens = Tokens(120)
    ours = container_as(container_tls, _Login(tokens), over_tls.url)
    tokens.lifetime_s = -1
    with pytest.raises(Refused, match="no token: expired") as refused:
        ours.listing("")
    assert refused.value.hint == "az login"
    assert over_tls.requests == []


def test_a_challenge_is_answered_once_with_a_token_of_the_accounts_tenant(
    container_tls: azurite.Container, over_tls: Proxy
) -> None:
    tenant = "72f988bf-86f1-41af-91ab-2d7cd011db47"
    uri = f"https://login.microsoftonline.com/{tenant}/oauth2/authorize"
    bearer = {"WWW-Authenticate": f"Bearer authorization_uri={uri} resource_id=https://storage.azure.com"}
    over_tls.decide = lambda _: Answer(401, "InvalidAuthenticationInfo", "Issuer validation failed.", bearer)
    tokens = Tokens(3600)
    with pytest.raises(Refused):
        container_as(container_tls, _Login(tokens), over_tls.url).listing("")
    assert [each.headers["authorization"] for each in over_tls.requests] == ["Bearer token 1", "Bearer token 2"]
    assert tokens.tenants == [None, tenant]
