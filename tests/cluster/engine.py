"""LBNL NHC as the project's blob, made of a local git copy. Without one the nodes use the built-in runner."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping

from generator.blobs.archive import normalised
from generator.blobs.pins import pinned_of

COMMIT = "9c4a38c0c9f48f92005c9120ca88145c33841dac"
FILE = "nhc-1.4.3-9c4a38c.tar"


def missing_source() -> str:
    """Why NHC cannot be taken from NHC_SRC; empty when it can."""
    source = os.environ.get("NHC_SRC", "")
    if not source:
        return f"NHC_SRC is not set; it must name a local git copy that has commit {COMMIT}"
    found = subprocess.run(
        ["git", "-C", source, "cat-file", "-e", f"{COMMIT}^{{commit}}"], capture_output=True, check=False
    )
    return f"NHC_SRC={source} has no commit {COMMIT}" if found.returncode else ""


def nhc_blob() -> Mapping[str, bytes]:
    """The blob by its name in the locker, or nothing; `test_the_engine…` says which."""
    if missing_source():
        return {}
    archive = subprocess.run(
        ["git", "-C", os.environ["NHC_SRC"], "archive", "--prefix=nhc/", COMMIT], capture_output=True, check=True
    ).stdout
    blob = pinned_of("slurm_nhc")[FILE]
    return {FILE: normalised(archive, blob.members, blob.size_bytes)}
