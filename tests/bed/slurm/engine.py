"""LBNL NHC as the project's blob. Without its source the nodes use the built-in runner."""

from __future__ import annotations

from collections.abc import Mapping

from generator.blobs.pins import pinned_of
from tests.bed.sources import found

FILE = next(iter(pinned_of("slurm_nhc")))


def missing_source() -> str:
    """Why NHC is not here; empty when it is."""
    return found(FILE)[1]


def nhc_blob() -> Mapping[str, bytes]:
    """The blob by its name in the locker, or nothing; `test_the_engine…` says which."""
    content, _ = found(FILE)
    return {} if content is None else {FILE: content}
