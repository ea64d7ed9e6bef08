"""One stand-in for the module, a place for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bed.arm import Arm, running_arm
from tests.what_if.place import Place


@pytest.fixture(scope="module")
def arm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arm]:
    with running_arm(tmp_path_factory.mktemp("arm")) as running:
        yield running


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kept")


@pytest.fixture
def place(
    arm: Arm, tmp_path: Path, kept: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Place:
    return Place(arm.renewed(), tmp_path, capsys, monkeypatch, kept)
