"""Virtual machines run under emulation. The short test is part of `make test`, the minutes are `make test-vm`.

CI runs both. Together they would not fit: an emulated machine that shares two cores with other tests takes several
times as long as alone.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SHORT = "test_scratch.py"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say where the long ones run instead."""
    here = Path(__file__).parent
    if os.environ.get("CYCLEFORGE_TEST_VM"):
        return
    for item in items:
        if item.path.is_relative_to(here) and item.path.name != SHORT:
            item.add_marker(pytest.mark.skip(reason="takes minutes under emulation; `make test-vm` runs it, CI too"))
