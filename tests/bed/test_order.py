"""Tests that share a cluster run in one process, and long ones begin first."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from generator.files import assets
from tests.bed import order

FILE = """import pytest


@pytest.mark.parametrize("number", range(12))
def test_it(number):
    pass
"""


def test_a_chain_and_a_file_stay_in_one_process_and_the_long_ones_begin(tmp_path: Path) -> None:
    """In a run of its own, in which each unit alone would be small enough to be shared out."""
    files = [
        "tests/blobs/test_z.py", "tests/cluster/test_a.py", "tests/cluster/test_b.py", "tests/machines/test_m.py",
        "tests/mpi/test_n.py",
    ]  # fmt: skip
    for name in files:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(FILE)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-v", "-n", "2", "--dist", "loadgroup", "-p", "tests.bed.order",
               "-p", "no:cacheprovider", "tests"]  # fmt: skip
    done = subprocess.run(
        command, cwd=tmp_path, env={"PYTHONPATH": str(assets.root())}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    ran = re.findall(r"^\[(gw\d)\] .* PASSED (\S+?)::", done.stdout, re.MULTILINE)
    assert len(ran) == 12 * len(files)
    workers = {name: {worker for worker, file in ran if file == name} for name in files}
    assert workers["tests/cluster/test_a.py"] == workers["tests/cluster/test_b.py"]
    assert [len(workers[name]) for name in files[:3]] == [1, 1, 1]
    assert len(workers["tests/machines/test_m.py"]) == 2 or workers["tests/machines/test_m.py"] != workers[files[1]]
    # One process begins with what waits, and the other one computes meanwhile.
    begun = {worker: next(file for each, file in ran if each == worker) for worker in ("gw0", "gw1")}
    assert sorted(begun.values()) == ["tests/cluster/test_a.py", "tests/machines/test_m.py"]
    # Which process ends last depends on the machine; which of what computes it runs last does not.
    beside = [file for worker, file in ran if worker in workers[files[0]] and file != "tests/mpi/test_n.py"]
    assert beside[-12:] == [files[0]] * 12


class Process:
    """What the scheduler sees of one."""

    shutting_down = False

    def __init__(self) -> None:
        self.given: list[int] = []

    def send_runtest_some(self, numbers: list[int]) -> None:
        self.given += numbers

    def shutdown(self) -> None:
        self.shutting_down = True


def test_a_process_that_still_collects_is_given_nothing() -> None:
    values: dict[str, Any] = {"dist": "loadgroup", "tx": ["popen"]}
    config: Any = SimpleNamespace(getvalue=values.__getitem__, option=SimpleNamespace())
    scheduler: Any = order.pytest_xdist_make_scheduler(config, None)
    tests = [f"tests/words/test_{name}.py::test_it" for name in "abcdef"]
    first, second = Process(), Process()
    scheduler.add_node(first)
    scheduler.add_node_collection(first, tests)
    scheduler.schedule()
    scheduler.add_node(second)
    assert scheduler.remove_node(first) == tests[0]
    assert second.given == []
    scheduler.add_node_collection(second, tests)
    scheduler.schedule()
    assert second.given


@pytest.mark.parametrize("paths", [order.CHAINS, order.ALONE, order.APART, order.WAITING, order.FIRST])
def test_every_path_is_there(paths: tuple[str, ...]) -> None:
    for path in paths:
        assert (assets.root() / path).exists(), path
