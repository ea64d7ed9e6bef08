"""The Windows jumpbox: an image in support, and the licence that it needs."""

from __future__ import annotations

import pytest

from tests.bed.plans import plan_from, server_of
from tests.bicep.test_modules import module_text
from tests.readme.test_readme import rendered
from tests.rules.annotations import findings_of

JUMPBOX = "server: {jumpbox: {}}"


def test_the_licence_is_declared_and_readers_are_told() -> None:
    assert "    licenseType: 'Windows_Client'\n" in module_text("jumpbox")
    text = rendered(plan_from(JUMPBOX))
    assert "needs a licence for Windows on Azure" in text
    assert "Windows_Client" not in rendered(plan_from())


@pytest.mark.parametrize("sku", ["win11-24h2-ent", "win11-25h2-pro", "win11-25h2-ent", "win12-something"])
def test_releases_in_support_and_unknown_ones_are_not_complained_of(sku: str) -> None:
    text = f"name: case\nlocation: southcentralus\nserver: {{jumpbox: {{sku: {sku}}}}}\n"
    assert findings_of(text) == []


def test_the_image_is_the_newest_known_release() -> None:
    jumpbox = server_of(plan_from(JUMPBOX)).jumpbox
    assert jumpbox is not None
    assert jumpbox.image.urn == "MicrosoftWindowsDesktop:windows-11:win11-25h2-pro:latest"
