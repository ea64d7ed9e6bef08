"""One cluster of emulated nodes for all tests that ask for it, in order at the begin of every test.

`tests/bed/order.py` keeps these tests in one process, so that there is only one.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bed.sick import SickCluster, running_sick


@pytest.fixture(scope="session")
def whole_sick() -> Iterator[SickCluster]:
    """Eight nodes; tests take `sick`."""
    with running_sick(8) as cluster:
        yield cluster


@pytest.fixture
def sick(whole_sick: SickCluster) -> SickCluster:
    whole_sick.restore()
    return whole_sick
