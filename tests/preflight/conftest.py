"""The command in front of the stand-in of Azure."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bed.arm import Arm
from tests.bed.plans import KEY
from tests.preflight.command import Run


@pytest.fixture
def run(
    arm: Arm, tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CYCLECLOUD_SSH_PUBLIC_KEY", KEY)
    return Run(arm, tmp_path, kept, capsys)


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is built, by its definition."""
    return tmp_path_factory.mktemp("kept")
