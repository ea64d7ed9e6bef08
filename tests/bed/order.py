"""Which tests run in one process, one after the other, and which begin first, when pytest-xdist shares them out.

`--dist loadgroup` of xdist 3.8 itself does nothing under pytest 9.2: it renames tests by an attribute that pytest no
longer reads. So what belongs together is named here, by path, for `pytest_xdist_make_scheduler`.
Source: pytest-dev/pytest-xdist, src/xdist/remote.py and src/xdist/scheduler/loadscope.py.
"""

from __future__ import annotations

import pytest

CHAINS = (
    "tests/bootstrap/test_booted.py",
    "tests/cluster/",
    "tests/locker/",
    "tests/machines/test_misc_ubuntu.py",
    "tests/mpi/",
    "tests/runs/",
    "tests/sick/",
    "tests/wheel/",
)
"""One process for all of it: it shares what takes longest to set up, as machines, a running Slurm, servers, a wheel."""
ALONE = ("tests/cluster/test_fakes.py", "tests/sick/test_guard.py", "tests/sick/test_storm.py")
"""Below a chain, and no part of it."""
APART = (
    "tests/bed/test_guard.py",
    "tests/bootstrap/",
    "tests/containers/",
    "tests/machines/",
    "tests/projects/",
    "tests/test_contributing.py",
)
"""Each test by itself: they share nothing, and one file would keep a process busy for minutes. Any other file stays
together, because its tests share fixtures and what the process remembers."""
FIRST = (
    "tests/cluster/",
    # They wait, and compute nothing meanwhile.
    "tests/cloud/",
    "tests/mpi/",
    "tests/runs/",
    "tests/sick/",
    # They need no root, which the one above is building meanwhile.
    "tests/bed/test_guard.py",
    "tests/rules/test_robust.py",
    "tests/machines/",
    "tests/wheel/",
    "tests/test_contributing.py",
    "tests/bootstrap/",
    "tests/projects/",
    "tests/locker/",
    "tests/containers/",
    "tests/cluster_template/",
    "tests/catalog/",
)
"""What takes long, in this order; a long one at the end would leave the other processes idle."""


def unit_of(nodeid: str) -> str:
    """The name of what one process runs without a break: a chain, a test or a file."""
    if not nodeid.startswith(ALONE):
        for chain in CHAINS:
            if nodeid.startswith(chain):
                return chain
    return nodeid if nodeid.startswith(APART) else nodeid.partition("::")[0]


def place_of(nodeid: str) -> int:
    """The smaller, the earlier."""
    return next((place for place, start in enumerate(FIRST) if nodeid.startswith(start)), len(FIRST))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long ones first; within a file in its order."""
    items.sort(key=lambda item: place_of(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """For `--dist loadgroup`: xdist's scheduler of scopes, with our units as scopes and in our order."""
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    config.option.loadscopereorder = False
    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = unit_of
    return scheduler
