"""What holds for every test: no blobs, Ctrl-C as usual, a guard against hanging, a last line that counts skips."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import tempfile

import hypothesis
import pytest

from tests.bed.sources import remember_store
from tests.bed.temporary import use_memory

pytest_plugins = ("tests.bed.guard", "tests.bed.one_arm", "tests.bed.order", "tests.bed.summary")

# Milliseconds are not what a busy machine keeps.
hypothesis.settings.register_profile("busy", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("busy")

_STORE = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    """For this process and the ones that tests start; early, because cases are also made while tests are collected."""
    use_memory()
    remember_store()
    # Python's own 700 lets it look for cycles thousands of times; half a million small objects are a few dozen MiB.
    gc.set_threshold(50_000)
    # A developer's own store would change outputs.
    config.stash[_STORE] = os.environ["CYCLEFORGE_BLOBS"] = tempfile.mkdtemp(prefix="blobs.")
    # And what its commands have noted would be met by tests; those have homes of their own.
    os.environ.pop("XDG_CACHE_HOME", None)
    # A script's background job ignores both signals, and so would every program that tests start and interrupt.
    for number, default in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, default)


def pytest_collection_finish() -> None:
    """What was imported and collected stays to the end: nobody has to look through it for cycles again."""
    gc.freeze()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Tests put nothing there; those of the store use their own."""
    shutil.rmtree(config.stash[_STORE], ignore_errors=True)
