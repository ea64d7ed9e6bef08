"""One stand-in of Azure Resource Manager for each process of tests, healthy again for each test.

What it is: tests/bed/arm/arm.py. It is loaded by the first test that asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.bed.arm import Arm


@pytest.fixture(scope="session")
def one_arm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arm]:
    from tests.bed.arm import running_arm

    with running_arm(tmp_path_factory.mktemp("arm")) as arm:
        yield arm


@pytest.fixture
def arm(one_arm: Arm, monkeypatch: pytest.MonkeyPatch) -> Arm:
    """The environment leads to it, and to its `bicep`; what it works at is looked at without a pause."""
    one_arm.renewed()
    for name, value in (one_arm.environment | {"PATH": one_arm.path}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("generator.azure.clients.POLL_S", 0.0)
    return one_arm
