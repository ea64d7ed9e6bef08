"""Killed at any moment, the folder is the old one or the new one; several builds at once mix nothing."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from generator.output import folder as output
from tests.output.folders import assert_whole, files

ROOT = Path(__file__).resolve().parents[2]
KILLS = 22
"""More, until a quarter of so many has hit a build."""

LOOKS = 500
"""Of a reader, and more until both versions were seen."""


def start(folder: Path) -> subprocess.Popen[bytes]:
    """A process that builds endlessly."""
    command = [sys.executable, "-m", "tests.output.builder", str(folder)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def kill(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL, which nothing can catch."""
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


class Children:
    """Processes that build endlessly, one at a time."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "tests.output.builder", str(folder), "children"]
        self.parent = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Children:
        return self

    def __exit__(self, *_: object) -> None:
        self.parent.communicate()
        assert self.parent.returncode == 0

    def killed_after(self, seconds: float) -> None:
        """The next one lives so long; SIGKILL, which nothing can catch."""
        child = int(self._said())
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        assert self._said() == "gone\n"

    def _said(self) -> str:
        assert self.parent.stdin is not None
        assert self.parent.stdout is not None
        self.parent.stdin.write("\n")
        self.parent.stdin.flush()
        return self.parent.stdout.readline()


@pytest.fixture
def children(tmp_path: Path) -> Iterator[Children]:
    with Children(tmp_path / "lab") as found:
        yield found


def test_kill(tmp_path: Path, children: Children) -> None:
    """At random moments; the next run cleans up and builds."""
    folder = tmp_path / "lab"
    output.write(folder, files("a", count=30))
    chance = random.Random("kills")
    kills = interrupted = 0
    while kills < KILLS or interrupted < KILLS // 4:
        kills += 1
        children.killed_after(chance.uniform(0, 0.03))
        left = [entry for entry in tmp_path.iterdir() if entry != folder]
        interrupted += bool(left)
        if folder.exists():  # not between the two renames
            assert_whole(folder, "a", "b")
        output.write(folder, files("b", count=31))
        assert_whole(folder, "b")
        assert [entry.name for entry in tmp_path.iterdir()] == ["lab"]


def test_readers_never_see_a_mixture(tmp_path: Path) -> None:
    """Three builds at once, while someone reads the manifest and a file of the same version."""
    folder = tmp_path / "lab"
    output.write(folder, files("a", count=30))
    processes = [start(folder) for _ in range(3)]
    try:
        seen: set[str | None] = set()
        looks = 0
        while looks < LOOKS or not {"a", "b"} <= seen:
            looks += 1
            try:
                handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)  # one version, whatever its name is later
            except FileNotFoundError:
                continue  # between two renames
            try:
                seen.add(_version(handle))
            finally:
                os.close(handle)
            assert all(process.poll() is None for process in processes)
    finally:
        for process in processes:
            kill(process)
    assert seen - {None} == {"a", "b"}
    output.write(folder, files("b", count=31))
    assert_whole(folder, "b")
    assert [entry.name for entry in tmp_path.iterdir()] == ["lab"]


def _version(handle: int) -> str | None:
    """The version that two files of one folder agree on; None when the folder is being deleted already."""
    try:
        with open("d1/f1.txt", opener=lambda path, flags: os.open(path, flags, dir_fd=handle)) as file:
            one = file.read(1)
        with open("run.sh", opener=lambda path, flags: os.open(path, flags, dir_fd=handle)) as file:
            other = file.read().split()[-1]
    except FileNotFoundError:
        return None
    assert one == other
    return one
