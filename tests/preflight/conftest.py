"""One stand-in for each process, healthy again for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bed.arm import Arm, running_arm
from tests.bed.plans import KEY
from tests.preflight.command import Run


@pytest.fixture(scope="session")
def _running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arm]:
    with running_arm(tmp_path_factory.mktemp("arm")) as arm:
        yield arm


@pytest.fixture
def arm(_running: Arm, monkeypatch: pytest.MonkeyPatch) -> Arm:
    _running.renewed()
    for name, value in _running.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("CYCLECLOUD_SSH_PUBLIC_KEY", KEY)
    return _running


@pytest.fixture
def run(
    arm: Arm, tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    monkeypatch.chdir(tmp_path)
    return Run(arm, tmp_path, kept, capsys)


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is built, by its definition."""
    return tmp_path_factory.mktemp("kept")
