"""Third-party sources for tests: the blobs that `cycleforge blobs fetch` keeps, else a local git copy.

Neither is downloaded here. Where both are missing the tests that need them are skipped, with the reason.
"""

from __future__ import annotations

import os
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from generator.blobs.archive import normalised
from generator.blobs.pins import pinned
from generator.blobs.store import Store, Unusable, store_of
from generator.catalog.pinned_files import Blob

KEPT = "CYCLEFORGE_TEST_BLOBS"
"""Where the developer's own store is; `CYCLEFORGE_BLOBS` names an empty one while tests run."""


def remember_store() -> None:
    """Before `CYCLEFORGE_BLOBS` gets another value; a worker of pytest-xdist finds it remembered."""
    os.environ.setdefault(KEPT, str(store_of(os.environ).folder))


def developers_store() -> Store:
    """What the developer has fetched; benchmarks run without the tests' own environment."""
    return Store(Path(os.environ[KEPT])) if KEPT in os.environ else store_of(os.environ)


def _variable(blob: Blob) -> str:
    return re.sub(r"[^A-Z0-9]", "_", blob.repository.rpartition("/")[2].upper()) + "_SRC"


@cache
def found(file: str) -> tuple[bytes | None, str]:
    """The blob, byte for byte as pinned, or why it is not here."""
    blob = pinned()[file]
    try:
        return developers_store().read(blob), ""
    except Unusable as error:
        missing = f"{error.args[0]} (cycleforge blobs fetch {file})"
    variable = _variable(blob)
    copy = os.environ.get(variable)
    if not copy:
        return None, f"{missing}, and {variable} names no git copy of {blob.repository}"
    archive = subprocess.run(
        ["git", "-C", copy, "archive", "--format=tar", f"--prefix={blob.commit}/", blob.commit],
        capture_output=True,
        check=False,
    )
    if archive.returncode:
        return None, f"{missing}, and {variable}={copy}: {archive.stderr.decode(errors='replace').strip()}"
    return normalised(archive.stdout, blob.members, blob.size_bytes), ""


def blob_or_skip(file: str) -> bytes:
    """The blob; without it the test is skipped."""
    content, reason = found(file)
    if content is None:
        pytest.skip(reason)
    return content


def origin_or_skip(file: str) -> Path:
    """What `blobs fetch --from` takes for a blob: the git copy, which is packed here, or the kept file."""
    blob = pinned()[file]
    copy = os.environ.get(_variable(blob))
    if copy:
        return Path(copy)
    blob_or_skip(file)
    return developers_store().path(blob)
