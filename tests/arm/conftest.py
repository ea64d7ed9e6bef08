"""A client of the stand-in."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bed.arm import Arm
from tests.bed.arm.client import Client


@pytest.fixture
def client(arm: Arm) -> Iterator[Client]:
    made = Client(arm)
    with made.session:
        yield made
