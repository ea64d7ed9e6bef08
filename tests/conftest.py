"""What holds for every test: the store of fetched blobs is empty, so that a developer's own changes no output."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def empty_blob_store() -> Iterator[str]:
    """The variable is for this process and the ones that tests start; tests of the store set their own."""
    before = os.environ.get("CYCLEFORGE_BLOBS")
    with tempfile.TemporaryDirectory(prefix="blobs.") as folder:
        os.environ["CYCLEFORGE_BLOBS"] = folder
        yield folder
        if before is None:
            del os.environ["CYCLEFORGE_BLOBS"]
        else:
            os.environ["CYCLEFORGE_BLOBS"] = before
