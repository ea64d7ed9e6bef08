"""The virtual machine runs under emulation and takes minutes, so it has a command of its own: `make test-vm`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say where they run instead."""
    if os.environ.get("CYCLEFORGE_TEST_VM"):
        return
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.skip(reason="takes minutes under emulation: `make test-vm` runs it"))
