"""Requests as they leave: signed in every way, whatever the name of a blob, and sent nowhere else."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from azure.core.credentials import AccessToken
from azure.core.exceptions import ClientAuthenticationError

from generator.locker import address
from generator.locker.container import NEW, Container
from generator.locker.credentials import SignIn
from generator.locker.refusals import Refused
from generator.locker.signing import Login, NoToken, Sas, SharedKey, Signature
from tests.locker import azurite
from tests.locker.azurite import ACCOUNT, KEY
from tests.locker.faults import Request
from tests.locker.ground import ONCE, noise, opened
from tests.locker.proxy import Proxy
from tests.locker.refusals import Answer

NAMES = ("projects/a b/ü.txt", "a&b=c", "100%", "a+b", "x'y\"z", "q?r#s", "[1]", "~t", "%41", "a;b,c", "é<>")


def container_as(container: azurite.Container, signature: Signature, url: str = "") -> Container:
    """Opened with a signature, directly or through a proxy."""
    place = address.parse(f"{url or container.server.url}/{container.name}")
    return Container(place, SignIn("key", "a key", signature), ONCE)


@pytest.mark.parametrize("way", ["key", "sas"])
def test_any_name_can_be_written_listed_read_and_removed(container: azurite.Container, way: str) -> None:
    ours = container_as(container, SharedKey(ACCOUNT, KEY) if way == "key" else Sas(container.sas()))
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


def test_secrets_are_in_no_text() -> None:
    for signature in (SharedKey("forge", "hush"), Sas("sig=hush")):
        assert "hush" not in f"{signature!r} {signature} {SignIn('key', 'a key', signature)}"


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
    ours = container_as(container, Sas(container.sas()), proxy.url)
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
        container_as(container, Sas(container.sas()), proxy.url).listing("")
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


class Credential:
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


def test_a_token_is_kept_until_shortly_before_its_end() -> None:
    credential = Credential(3600)
    login = Login(credential)
    assert [login.token(), login.token()] == ["token 1", "token 1"]
    short = Login(Credential(120))
    assert [short.token(), short.token()] == ["token 1", "token 2"]


def test_no_token_any_more(container: azurite.Container) -> None:
    with pytest.raises(NoToken, match="expired"):
        Login(Credential(-1)).token()
    with pytest.raises(Refused, match="no token: expired") as refused:
        container_as(container, Login(Credential(-1))).listing("")
    assert refused.value.hint == "az login"


def test_the_tenant_of_the_account_is_asked_for_once() -> None:
    credential = Credential(3600)
    login = Login(credential)
    login.token()
    tenant = "72f988bf-86f1-41af-91ab-2d7cd011db47"
    challenge = {
        "WWW-Authenticate": f"Bearer authorization_uri=https://login.microsoftonline.com/{tenant}/oauth2/authorize "
        "resource_id=https://storage.azure.com"
    }
    assert login.challenged(challenge)
    assert login.token() == "token 2"
    assert credential.tenants == [None, tenant]
    assert not login.challenged(challenge), "the same tenant again would be a loop"
    assert not login.challenged({})
    assert not SharedKey("forge", "a2V5").challenged(challenge)


def test_a_challenge_is_answered_with_another_token(container: azurite.Container, proxy: Proxy) -> None:
    uri = "https://login.microsoftonline.com/other-tenant/oauth2/authorize"
    seen: list[str] = []

    def decide(request: Request) -> Answer:
        seen.append(request.headers["authorization"])
        bearer = {"WWW-Authenticate": f"Bearer authorization_uri={uri} resource_id=https://storage.azure.com"}
        return Answer(401, "InvalidAuthenticationInfo", "Issuer validation failed.", bearer)

    proxy.decide = decide
    with pytest.raises(Refused):
        container_as(container, Login(Credential(3600)), proxy.url).listing("")
    assert seen == ["Bearer token 1", "Bearer token 2"]
