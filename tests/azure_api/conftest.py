"""What answers in Azure's place, for tests that need other answers than Azure's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.azure_api.small import Small, serving
from tests.locker.certificate import Certificate, self_signed


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return self_signed(tmp_path_factory.mktemp("certificate"))


@pytest.fixture
def small(certificate: Certificate, monkeypatch: pytest.MonkeyPatch) -> Iterator[Small]:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate.certificate))
    with serving(certificate) as server:
        yield server
