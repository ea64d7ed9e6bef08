"""One stand-in for the module, and what was deployed in it; a place for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bed.arm import Arm, running_arm
from tests.delete.place import Kept, Place


@pytest.fixture(scope="session")
def _arm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arm]:
    with running_arm(tmp_path_factory.mktemp("arm")) as running:
        yield running


@pytest.fixture(scope="session")
def _kept() -> Kept:
    return {}


@pytest.fixture
def place(
    _arm: Arm, _kept: Kept, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Place:
    return Place(_arm.renewed(), tmp_path, capsys, monkeypatch, _kept)
