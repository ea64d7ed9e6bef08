"""One running cluster per test process, healthy and without jobs at the begin of every test."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.bed.slurm.cluster import Cluster, running_cluster
from tests.bed.slurm.engine import nhc_blob


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Two processes have a cluster at most, of four booted machines each; the tests of a file share one."""
    here = Path(__file__).parent
    files = sorted({item.path for item in items if item.path.is_relative_to(here)} - {here / "test_fakes.py"})
    for item in items:
        if item.path in files:
            item.add_marker(pytest.mark.xdist_group(f"cluster-{files.index(item.path) % 2}"))


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
