"""How a command signs in: every way, what is missing or garbled, and what a real login says when it fails."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential

from generator.errors import CannotRead
from generator.locker import credentials
from generator.locker.address import parse
from generator.locker.credentials import SignIn, Way, sign_in
from tests.answers import data_of
from tests.locker.azurite import ACCOUNT, KEY, Azurite, Container, account_sas
from tests.locker.command import Command, commands
from tests.locker.identity import Identity, token

LOCKER = parse("az://forge/projects")
STRING, KEYED, SAS = "AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Iterator[Command]:
    yield from commands(monkeypatch, capsys, tmp_path)


# ---------------------------------------------------------------- what the environment holds


def signature(found: SignIn) -> str:
    assert isinstance(found.credential, AzureSasCredential)
    return found.credential.signature


@pytest.mark.parametrize(
    ("variables", "way", "described"),
    [
        ({STRING: "AccountName=forge;AccountKey=a2V5", KEYED: "b3RoZXI=", SAS: "sig=x"}, "auto", f"key in {STRING}"),
        ({KEYED: "a2V5", SAS: "sig=x"}, "auto", f"account key in {KEYED}"),
        ({STRING: " ", KEYED: "", SAS: "sv=1&sig=x"}, "auto", f"SAS token in {SAS}"),
        ({STRING: "AccountName=forge;AccountKey=a2V5", KEYED: "a2V5", SAS: "sig=x"}, "key", KEYED),
        ({STRING: "AccountName=forge;AccountKey=a2V5", KEYED: "a2V5", SAS: "sig=x"}, "sas", SAS),
        ({STRING: "AccountName=forge;AccountKey=a2V5", KEYED: "b3RoZXI="}, "connection-string", f"key in {STRING}"),
        ({STRING: "AccountName=forge;SharedAccessSignature=sv=1&sig=x"}, "auto", f"SAS token in {STRING}"),
        ({STRING: "BlobEndpoint=https://forge.blob.core.windows.net;SharedAccessSignature=?sv=1&sig=x"}, "auto",
         f"SAS token in {STRING}"),
        ({STRING: "SharedAccessSignature=sv=1&sig=x"}, "auto", f"SAS token in {STRING}"),
    ],
)  # fmt: skip
def test_which_one_is_taken(variables: Mapping[str, str], way: Way, described: str) -> None:
    found = sign_in(LOCKER, variables, way)
    assert found.described.endswith(described)
    assert found.is_sas == ("SAS" in described)
    if found.is_sas:
        assert signature(found) in ("sig=x", "sv=1&sig=x")
    else:
        assert isinstance(found.credential, AzureNamedKeyCredential)
        assert tuple(found.credential.named_key) == ("forge", "a2V5")


@pytest.mark.parametrize("value", ["?sv=1&sig=x%3D", "sv=1&sig=x%3D", " sv=1&sig=x%3D\n", "https://a/b?sv=1&sig=x%3D"])
def test_forms_of_a_signature(value: str) -> None:
    assert signature(sign_in(LOCKER, {SAS: value})) == "sv=1&sig=x%3D"


@pytest.mark.parametrize(
    ("variables", "way", "message", "hint"),
    [
        ({}, "key", f"--auth key needs {KEYED}, which is not set", f"export {KEYED}=…, or use --auth login"),
        ({}, "sas", f"--auth sas needs {SAS}, which is not set", f"export {SAS}="),
        ({STRING: "  "}, "connection-string", f"--auth connection-string needs {STRING}", f"export {STRING}="),
        *(({KEYED: value}, "auto", f"{KEYED} is not a valid account key", "copy it again, in quotes")
          for value in ("hushh", "hush=hush", "hüsh", "hu sh")),
        *(({SAS: value}, "auto", f"{SAS} is not a valid SAS token", "copy it again, in quotes")
          for value in ("hush", "sv=hush&sig=", "sv=hush sig=hush", "sig=hüsh", "design=hush", "https://hush/c?sv=1")),
        ({STRING: "AccountName=other;AccountKey=hush"}, "auto", f"{STRING} belongs to the account 'other', but the "
         "locker is az://forge/projects", "--locker"),
        ({STRING: "BlobEndpoint=https://other.blob.core.windows.net/;SharedAccessSignature=sig=hush"}, "auto",
         "belongs to the account 'other'", "unset it"),
        ({STRING: "AccountName=forge;AccountKey=hüsh"}, "auto", f"{STRING} is not a valid account key", "in quotes"),
        ({STRING: "AccountName=forge;SharedAccessSignature=hush"}, "auto", f"{STRING} is not a valid SAS token",
          "in quotes"),
        *(({STRING: value}, "auto", f"{STRING} has neither AccountKey nor SharedAccessSignature", "in quotes")
          for value in ("hush", "AccountName=forge", "AccountName=forge;AccountKey=", "BlobEndpoint=:hush")),
    ],
)  # fmt: skip
def test_what_is_missing_or_garbled(variables: Mapping[str, str], way: Way, message: str, hint: str) -> None:
    with pytest.raises(CannotRead) as refused:
        sign_in(LOCKER, variables, way)
    assert message in refused.value.message
    assert hint in (refused.value.hint or "")
    assert "hush" not in f"{refused.value.message}{refused.value.hint}"


def test_the_mode_of_az_means_login(monkeypatch: pytest.MonkeyPatch) -> None:
    login = SignIn("login", "a login", AzureSasCredential("sig=x"))
    monkeypatch.setattr(credentials, "_login", lambda: login)
    keyed = {KEYED: "a2V5"}
    assert sign_in(LOCKER, {**keyed, "AZURE_STORAGE_AUTH_MODE": "Login"}) is login
    assert sign_in(LOCKER, keyed, "login") is login
    assert sign_in(LOCKER, {}) is login
    assert sign_in(LOCKER, {**keyed, "AZURE_STORAGE_AUTH_MODE": "key"}).way == "key"
    assert sign_in(LOCKER, {**keyed, "AZURE_STORAGE_AUTH_MODE": "login"}, "key").way == "key"


# ---------------------------------------------------------------- against a server


def test_every_way_opens_the_locker(run: Command, azurite: Azurite, container: Container) -> None:
    container.put("projects/site/1.0.0/manifest.json", b"{}")
    sas = container.sas()
    ways = [
        ("key", KEY), ("sas", sas), ("sas", f"?{sas}"), ("sas", account_sas()),
        ("connection-string", azurite.connection_string()),
        ("connection-string", f"BlobEndpoint={azurite.url};SharedAccessSignature={sas}"),
    ]  # fmt: skip
    for way, value in ways:
        run.sign_in(way, value)
        for auth in ("auto", way):
            code, found = run.json("locker", "ls", "--locker", container.url, "--auth", auth)
            assert (code, [each["version"] for each in found["versions"]]) == (0, ["1.0.0"])


WRONG = base64.b64encode(b"another key").decode()


@pytest.mark.parametrize("words", [("locker", "ls"), ("locker", "pull", "site:1.0.0"), ("locker", "verify", ".")])
def test_a_wrong_secret_is_not_repeated(run: Command, azurite: Azurite, container: Container, words: Any) -> None:
    (run.folder / "here/specs/default/cluster-init").mkdir(parents=True)
    (run.folder / "here/project.ini").write_text("[project]\nname = site\nversion = 1.0.0\ntype = application\n")
    expired = container.sas(lifetime_s=-60)
    for way, value in (
        ("key", WRONG), ("sas", expired), ("sas", container.sas().replace("sig=", "sig=x")),
        ("connection-string", azurite.connection_string().replace(KEY, WRONG)),
        ("connection-string", f"AccountName={ACCOUNT};BlobEndpoint={azurite.url};SharedAccessSignature={expired}"),
    ):  # fmt: skip
        run.sign_in(way, value)
        run.secrets |= {WRONG, expired, "sig="}
        code, said = run.refused(*words, "--locker", container.url)
        assert code == 4
        assert "is wrong or has expired" in said or "is not accepted" in said
        code, out, _ = run(*words, "--locker", container.url, "--json")
        assert (code, data_of(out)["ok"]) == (4, False)


def test_a_traceback_shows_no_signature(run: Command, container: Container, monkeypatch: pytest.MonkeyPatch) -> None:
    """When nobody answers, urllib3 names the whole request, and that is what the bug below happens on top of."""
    run.sign_in("sas", container.sas())
    run.secrets.add("sig=x")
    run.environment(CYCLEFORGE_DEBUG="1")

    def broken(error: Exception, *_: object) -> Exception:
        assert "sig=" in str(error)
        raise ZeroDivisionError

    monkeypatch.setattr("generator.locker.refusals.refused", broken)
    code, out, err = run("locker", "ls", "--locker", f"http://127.0.0.1:1/{ACCOUNT}/{container.name}")
    assert (code, out) == (70, "")
    assert "ZeroDivisionError" in err
    assert "Traceback" in err
    assert "sig=…" in err


# ---------------------------------------------------------------- a login


@pytest.fixture
def trusted(run: Command, container_tls: Container) -> Command:
    """The server over https is trusted, and holds a version."""
    certificate = container_tls.server.certificate
    assert certificate
    run.environment(REQUESTS_CA_BUNDLE=str(certificate.certificate))
    container_tls.put("projects/site/1.0.0/manifest.json", b"{}")
    return run


def test_an_identity_of_the_machine(trusted: Command, container_tls: Container, token_server: Identity) -> None:
    trusted.environment(**token_server.environment)
    for words in (("--auth", "login"), ()):
        code, found = trusted.json("locker", "ls", "--locker", container_tls.url, *words)
        assert (code, found["versions"][0]["project"]) == (0, "site")
    assert token_server.asked == ["https://storage.azure.com"] * 2


def az(run: Command, script: str) -> None:
    """A command line of Azure that does this."""
    program = run.folder / "bin/az"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def test_the_login_of_az(trusted: Command, container_tls: Container, token_server: Identity) -> None:
    token_server.behaviour = "refuses"
    trusted.environment(**token_server.environment)
    answer = json.dumps({"accessToken": token(), "expires_on": int(time.time()) + 3600, "tokenType": "Bearer"})
    (trusted.folder / "answer").write_text(answer)
    az(trusted, f'while read -r line || [ "$line" ]; do echo "$line"; done <\'{trusted.folder / "answer"}\'')
    trusted.secrets.add(json.loads(answer)["accessToken"])
    code, found = trusted.json("locker", "ls", "--locker", container_tls.url)
    assert (code, found["versions"][0]["project"]) == (0, "site")


def test_nobody_is_signed_in(run: Command, token_server: Identity) -> None:
    token_server.behaviour = "refuses"
    run.environment(**token_server.environment, AZURE_CLIENT_SECRET="hush-hush")
    az(run, "echo 'Please run az login to setup account.' >&2; exit 1")
    code, said = run.refused("locker", "ls", "--locker", "az://forge/projects")
    assert code == 4
    first, *tried, hint = said.splitlines()
    assert first == "cycleforge: not signed in to Azure; tried:"
    reasons = dict(line.strip().split(": ", 1) for line in tried)
    assert "az login" in reasons["AzureCliCredential"]
    assert "EnvironmentCredential" in reasons
    assert "No User Assigned" in reasons["ManagedIdentityCredential"]
    assert all(len(line) < 300 for line in tried)
    assert hint.startswith("  hint: az login (")
    for word in ("--use-device-code", "AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_CLIENT_SECRET", "managed identity"):
        assert word in hint


def test_an_endpoint_that_does_not_answer_is_given_up(
    run: Command, token_server: Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "SILENCE_S", 0.2)
    token_server.behaviour = "hangs"
    run.environment(**token_server.environment)
    code, said = run.refused("locker", "ls", "--locker", "az://forge/projects")
    assert code == 4
    assert "ManagedIdentityCredential: " in said
    assert len(token_server.asked) == 2


@pytest.mark.parametrize(
    "variables", [{"AZURE_TOKEN_CREDENTIALS": "nonsense"}, {"AZURE_AUTHORITY_HOST": "http://not.encrypted"}]
)
def test_settings_of_a_login_that_make_no_sense(run: Command, variables: dict[str, str]) -> None:
    run.environment(**variables, AZURE_TENANT_ID="a b", AZURE_CLIENT_ID="x", AZURE_CLIENT_SECRET="hush-hush")
    code, said = run.refused("locker", "ls", "--locker", "az://forge/projects")
    assert code == 4
    assert "not signed in to Azure; tried: " in said
    assert "no reason was given" not in said


def test_a_token_for_somebody_else(trusted: Command, container_tls: Container, token_server: Identity) -> None:
    token_server.audience = "https://management.azure.com"
    trusted.environment(**token_server.environment)
    code, said = trusted.refused("locker", "ls", "--locker", container_tls.url)
    assert code == 4
    assert "the login is not accepted" in said
    assert "az login --tenant TENANT" in said


def test_a_login_is_not_sent_without_encryption(run: Command, container: Container, token_server: Identity) -> None:
    run.environment(**token_server.environment)
    code, said = run.refused("locker", "ls", "--locker", container.url)
    assert code == 2
    assert "is not encrypted, so a login is not sent there" in said
    assert "--auth key" in said
    assert token_server.asked == []


@pytest.mark.parametrize(
    ("claims", "wanted"),
    [
        ({"oid": "1-2", "upn": "ann@example.com", "scp": "user_impersonation"}, ("ann@example.com", "1-2", "User")),
        ({"oid": "1-2", "appid": "3-4"}, ("3-4", "1-2", "ServicePrincipal")),
        ({"oid": "1-2"}, ("1-2", "1-2", "ServicePrincipal")),
        ({"sub": "x"}, None),
        ([1], None),
    ],
)
def test_who_a_token_is_for(claims: object, wanted: tuple[str, str, str] | None) -> None:
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    found = credentials._principal(f"x.{payload}.y")
    assert (found and (found.name, found.object_id, found.kind)) == wanted


@pytest.mark.parametrize("word", ["", "a", "a.b.c", "a.ä.c", "a." + base64.b64encode(b"[" * 99999).decode()])
def test_a_token_that_says_nothing(word: str) -> None:
    assert credentials._principal(word) is None
