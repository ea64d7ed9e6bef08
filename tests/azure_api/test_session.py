"""Which cloud and which subscription are meant."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from generator.azure.clouds import cloud_of
from generator.azure.refusals import NotAsked
from generator.azure.session import sign_in, subscription_of
from generator.errors import CannotRead

A, B, C, D = (f"{number * 8}-0000-0000-0000-00000000000a" for number in "1234")


def test_the_nearest_word_decides_about_the_subscription(tmp_path: Path) -> None:
    profile = {"subscriptions": [{"id": A, "isDefault": False}, {"id": D, "isDefault": True}]}
    (tmp_path / "azureProfile.json").write_text(json.dumps(profile), encoding="utf-8-sig")
    az = {"AZURE_CONFIG_DIR": str(tmp_path)}
    both = {**az, "AZURE_SUBSCRIPTION_ID": C}
    assert subscription_of(A, A.upper(), both) == A
    assert subscription_of(None, B, both) == B
    assert subscription_of(None, None, both) == C
    assert subscription_of(None, None, az) == D


def test_no_subscription_two_or_none_that_is_one(tmp_path: Path) -> None:
    az = {"AZURE_CONFIG_DIR": str(tmp_path)}
    for content in ("", "{", "[]", '{"subscriptions": [{"id": "x"}]}', '{"subscriptions": null}'):
        (tmp_path / "azureProfile.json").write_text(content)
        with pytest.raises(CannotRead, match="no subscription is chosen"):
            subscription_of(None, None, az)
    with pytest.raises(CannotRead, match="differs from the definition's"):
        subscription_of(A, B, az)
    with pytest.raises(CannotRead, match="not the id"):
        subscription_of("my subscription", None, az)


@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("public", "management.azure.com"),
        ("usgov", "management.usgovcloudapi.net"),
        ("china", "management.chinacloudapi.cn"),
    ],
)
def test_each_cloud_has_its_own_endpoints(name: str, host: str) -> None:
    cloud = cloud_of(name, {})
    assert (cloud.host, cloud.scope) == (host, f"https://{host}/.default")
    assert cloud_of(name, {"AZURE_AUTHORITY_HOST": "login.example"}).authority == "https://login.example"


def test_no_token_is_sent_in_the_clear() -> None:
    for variable in ("AZURE_AUTHORITY_HOST", "ARM_CLOUD_METADATA_URL"):
        with pytest.raises(NotAsked, match="is not https"):
            cloud_of("public", {variable: "http://login.example/"})


def test_nobody_signed_in_is_said_with_what_to_type(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The real chain, without any of its sources. AZURE_TOKEN_CREDENTIALS keeps it from 169.254.169.254."""
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "AzureCliCredential")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotAsked, match="not signed in to AzureCloud") as raised:
        sign_in(cloud_of("public", {}), A).get_token()
    assert "AzureCliCredential: Azure CLI not found" in raised.value.reason
    assert "az login" in str(raised.value.hint)
