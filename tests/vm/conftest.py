"""The virtual machines are the longest tests, one after the other: they begin first, beside everything else."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what lies in this folder in front."""
    here = Path(__file__).parent
    items.sort(key=lambda item: not item.path.is_relative_to(here))
