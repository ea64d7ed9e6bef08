"""One cluster of emulated nodes for each module that asks for it, in order at the begin of every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bed.sick import SickCluster, running_sick


@pytest.fixture(scope="module")
def whole_sick() -> Iterator[SickCluster]:
    """Eight nodes; tests take `sick`."""
    with running_sick(8) as cluster:
        yield cluster


@pytest.fixture
def sick(whole_sick: SickCluster) -> SickCluster:
    """A cluster in order, whatever the test before did."""
    whole_sick.restore()
    return whole_sick
