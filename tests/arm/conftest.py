"""One stand-in for each module, renewed for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bed.arm import Arm, running_arm
from tests.bed.arm.client import Client


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arm]:
    with running_arm(tmp_path_factory.mktemp("arm")) as arm:
        yield arm


@pytest.fixture
def arm(running: Arm, monkeypatch: pytest.MonkeyPatch) -> Arm:
    running.renewed()
    for name, value in running.environment.items():
        monkeypatch.setenv(name, value)
    return running


@pytest.fixture
def client(arm: Arm) -> Iterator[Client]:
    made = Client(arm)
    with made.session:
        yield made
