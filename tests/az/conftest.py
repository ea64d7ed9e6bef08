"""Microsoft's `az` in front of the stand-in of Azure, in `make test-az`, which CI calls too.

The first run on a machine installs azure-cli, which takes a minute and 700 MB.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.az.user import User
from tests.bed.arm import Arm
from tests.bed.az.shell import Az, served


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say where they run instead."""
    here = Path(__file__).parent
    if os.environ.get("CYCLEFORGE_TEST_AZ"):
        return
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.skip(reason="needs azure-cli, 700 MB; `make test-az` runs it, CI too"))


@pytest.fixture(scope="session")
def _az(one_arm: Arm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Az]:
    with served(tmp_path_factory.mktemp("az"), one_arm) as az:
        yield az


@pytest.fixture
def user(
    _az: Az, arm: Arm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> User:
    monkeypatch.chdir(tmp_path)
    return User(_az, arm, tmp_path, monkeypatch, capsys)
