"""What holds for every test: the store of fetched blobs is empty, so that a developer's own changes no output."""

from __future__ import annotations

import os
import shutil
import tempfile

import pytest

_STORE = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    """For this process and the ones that tests start; early, because cases are also made while tests are collected."""
    config.stash[_STORE] = os.environ["CYCLEFORGE_BLOBS"] = tempfile.mkdtemp(prefix="blobs.")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Tests put nothing there; those of the store use their own."""
    shutil.rmtree(config.stash[_STORE], ignore_errors=True)
