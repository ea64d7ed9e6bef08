"""Which tests run in one process, one after the other, and which begin first, when pytest-xdist shares them out.

`--dist loadgroup` of xdist 3.8 itself does nothing under pytest 9.2: it renames tests by an attribute that pytest no
longer reads. So what belongs together is named here, by path, for `pytest_xdist_make_scheduler`.
Source: pytest-dev/pytest-xdist, src/xdist/remote.py and src/xdist/scheduler/loadscope.py.
"""

from __future__ import annotations

from typing import Any

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
WAITING = (
    "tests/cluster/",
    "tests/sick/",
    "tests/mpi/",
    "tests/runs/",
    "tests/cloud/",
    "tests/bed/test_guard.py",
)
"""What waits most of its time for machines and time limits, in this order. Half of the processes begin with it and the
others end with it, so that there is always somebody who computes."""
FIRST = (
    # They need no root, which the chains above are building meanwhile.
    "tests/rules/test_robust.py",
    "tests/locker/",
    "tests/wheel/",
    "tests/test_contributing.py",
    "tests/projects/",
    "tests/machines/",
    "tests/bootstrap/",
    "tests/containers/",
    "tests/jobs/",
    "tests/broken_off/",
    "tests/connect/",
    "tests/verbs/",
    "tests/delete/",
    "tests/tutorial/",
    "tests/deploy/",
    "tests/cluster_template/",
    "tests/catalog/",
)
"""Of the others, what takes long, in this order; a long one at the end would leave the other processes idle."""


def unit_of(nodeid: str) -> str:
    """The name of what one process runs without a break: a chain, a test or a file."""
    if not nodeid.startswith(ALONE):
        for chain in CHAINS:
            if nodeid.startswith(chain):
                return chain
    return nodeid if nodeid.startswith(APART) else nodeid.partition("::")[0]


def place_of(nodeid: str) -> int:
    """The smaller, the earlier."""
    return next(
        (place for place, start in enumerate(WAITING + FIRST) if nodeid.startswith(start)), len(WAITING + FIRST)
    )


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

    class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
        """Hands out what waits and what computes to different processes, as long as there is both."""

        def _split_scope(self, nodeid: str) -> str:
            return unit_of(nodeid)

        def _reschedule(self, node: Any) -> None:
            # One that replaces a process that has died and is still collecting; it is asked again when it has.
            if node in self.registered_collections:
                super()._reschedule(node)

        def _assign_work_unit(self, node: Any) -> None:
            waits = list(self.registered_collections).index(node) % 2 == 0
            unit = next((each for each in self.workqueue if each.startswith(WAITING) == waits), None)
            if unit is not None:
                self.workqueue.move_to_end(unit, last=False)
            super()._assign_work_unit(node)

    config.option.loadscopereorder = False
    return Scheduling(config, log)
