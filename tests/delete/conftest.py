"""What was deployed in the stand-in of Azure, once; a place for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bed.arm import Arm
from tests.delete.place import Kept, Place


@pytest.fixture(scope="session")
def _kept() -> Kept:
    return {}


@pytest.fixture
def place(
    arm: Arm, _kept: Kept, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Place:
    return Place(arm, tmp_path, capsys, monkeypatch, _kept)
