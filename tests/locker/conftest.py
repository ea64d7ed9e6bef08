"""Blob servers for the tests of the locker, per process: with keys, with tokens, restarted. A container per test."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.locker.azurite import Azurite, Container, missing_azurite
from tests.locker.certificate import Certificate, self_signed
from tests.locker.identity import Identity, identity
from tests.locker.proxy import Proxy, proxying


@pytest.fixture(scope="session")
def azurite() -> Iterator[Azurite]:
    """Over http, in memory; takes the key and shared access signatures."""
    if reason := missing_azurite():
        pytest.skip(reason)
    with Azurite() as server:
        yield server


@pytest.fixture(scope="session")
def _keeping(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azurite]:
    if reason := missing_azurite():
        pytest.skip(reason)
    with Azurite(folder=tmp_path_factory.mktemp("kept")) as server:
        yield server


@pytest.fixture
def keeping(_keeping: Azurite) -> Azurite:
    """Over http, with its data in a folder: it may be ended and started again."""
    if not _keeping.is_running:
        # What a crash has left half written is no other test's.
        assert _keeping.folder
        shutil.rmtree(_keeping.folder)
        _keeping.folder.mkdir()
        _keeping.start()
    return _keeping


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    """What servers over https show; a client must be told to trust it."""
    return self_signed(tmp_path_factory.mktemp("certificate"))


@pytest.fixture(scope="session")
def azurite_tls(certificate: Certificate) -> Iterator[Azurite]:
    """Over https, in memory; takes tokens too."""
    if reason := missing_azurite():
        pytest.skip(reason)
    with Azurite(certificate=certificate) as server:
        yield server


@pytest.fixture
def container(azurite: Azurite) -> Container:
    """An empty one."""
    return azurite.new_container()


@pytest.fixture
def container_tls(azurite_tls: Azurite) -> Container:
    """An empty one, over https."""
    return azurite_tls.new_container()


@pytest.fixture
def proxy(azurite: Azurite) -> Iterator[Proxy]:
    """In front of the server over http; passes everything until told otherwise."""
    with proxying(azurite) as between:
        yield between


@pytest.fixture
def token_server() -> Iterator[Identity]:
    """What gives the machine its tokens."""
    with identity() as endpoint:
        yield endpoint


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """What counts as large, so that a test need not send megabytes."""
    monkeypatch.setattr("generator.locker.upload.SINGLE_PUT_BYTES", 1024)
    monkeypatch.setattr("generator.locker.upload.BLOCK_BYTES", 1000)
