"""A place for each test; what is built is kept for the next one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bed.arm import Arm
from tests.what_if.place import Place


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kept")


@pytest.fixture
def place(
    arm: Arm, tmp_path: Path, kept: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Place:
    return Place(arm, tmp_path, capsys, monkeypatch, kept)
