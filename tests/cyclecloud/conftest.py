"""One stand-in of a site for each process, empty again for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from generator.cyclecloud.site import Site
from generator.cyclecloud.wire import Login
from tests.bed.cyclecloud import PASSWORD, USER, SiteStandIn, running_site


@pytest.fixture(scope="session")
def _running_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SiteStandIn]:
    with running_site(tmp_path_factory.mktemp("site")) as site:
        yield site


@pytest.fixture
def portal(_running_site: SiteStandIn, monkeypatch: pytest.MonkeyPatch) -> Iterator[SiteStandIn]:
    monkeypatch.setattr("generator.cyclecloud.site.PAUSE_S", 0.0)
    yield _running_site.renewed()
    assert _running_site.refused == []


@pytest.fixture
def site(portal: SiteStandIn) -> Site:
    return site_of(portal)


def site_of(portal: SiteStandIn, password: str = PASSWORD) -> Site:
    """A client that has not asked anything yet."""
    return Site(portal.address, portal.port, portal.fingerprint, Login(USER, password))
