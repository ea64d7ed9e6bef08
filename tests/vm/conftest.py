"""Virtual machines run under emulation, in `make test-vm`, which CI calls too.

An emulated machine that shares two cores with other tests takes several times as long as alone, and delays them.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say where they run instead."""
    here = Path(__file__).parent
    if os.environ.get("CYCLEFORGE_TEST_VM"):
        return
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.skip(reason="takes minutes under emulation; `make test-vm` runs it, CI too"))
