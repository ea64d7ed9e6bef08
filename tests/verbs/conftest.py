"""A cluster for each test; what is built is kept for the next one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bed.arm import Arm
from tests.verbs.place import Living
from tests.what_if.conftest import kept

__all__ = ["kept"]


@pytest.fixture
def living(
    arm: Arm, tmp_path: Path, kept: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Living]:
    place = Living(arm, tmp_path, capsys, monkeypatch, kept)
    yield place
    place.end()
