"""One running cluster, healthy and without jobs at the begin of every test.

`tests/bed/order.py` keeps all these tests in one process, so that there is only one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import pytest

from tests.bed.slurm.cluster import Cluster, running_cluster
from tests.bed.slurm.engine import nhc_blob


@pytest.fixture(scope="session")
def whole_cluster() -> Iterator[Cluster]:
    """The cluster itself; tests take `cluster`."""
    with running_cluster(blobs=nhc_blob()) as made:
        yield made


@pytest.fixture
def cluster(whole_cluster: Cluster) -> Cluster:
    """A cluster in order, whatever the test before did."""
    whole_cluster.restore()
    return whole_cluster


@pytest.fixture
def figure(capfd: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """Prints a measured figure although the test passes, also from a process of pytest-xdist."""

    def show(text: str) -> None:
        with capfd.disabled():
            print(f"\ncluster: {text}", file=sys.stderr, flush=True)

    return show
