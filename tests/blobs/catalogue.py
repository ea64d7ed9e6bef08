"""Blobs of our own for the tests, in place of the catalogue's: of a few files, and of one."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from generator import catalog
from generator.blobs import Blob, pins
from generator.blobs.archive import packed
from generator.catalog.pinned_files import Blobs
from generator.projects import content, local

COMMIT = "0123456789abcdef0123456789abcdef01234567"
FILES: Mapping[str, bytes] = {
    "LICENSE": b"Do what you like.\n",
    "tool": b"#!/bin/bash\necho tool\n",
    "scripts/a.part": b"part a\n",
    "scripts/b.part": b"part b\n" * 200,
}
TAR = packed(FILES)
BINARY_TAR = packed({"tool": bytes(range(256)) * 4})


def entry(file: str, content_bytes: bytes, **changes: Any) -> dict[str, Any]:
    """One entry of the catalogue."""
    return {
        "file": file,
        "project": "slurm_nhc",
        "version": "1.0",
        "repository": "somebody/tool",
        "commit": COMMIT,
        "url": f"https://forge.example/somebody/tool/archive/{COMMIT}.tar.gz",
        "license": "MIT",
        "members": ["LICENSE", "tool", "scripts/*.part"],
        "sha256": hashlib.sha256(content_bytes).hexdigest(),
        "size_bytes": len(content_bytes),
        "used_for": "The tests.",
        "without": "nodes run no tests",
        "needed": "always",
    } | changes


# The name is the one that project.ini of slurm_nhc lists, so that a build carries it.
SOURCE = entry("nhc-1.4.3-9c4a38c.tar", TAR)
BINARY = entry(
    "tool-1.0.bin", BINARY_TAR, members=["tool"], project="pyxis_enroot",
    url="https://forge.example/somebody/tool/releases/download/v1.0/tool_1.0_amd64.bin",
)  # fmt: skip


def blob(row: Mapping[str, Any]) -> Blob:
    """An entry as the code sees it."""
    return Blob(**{**row, "members": tuple(row["members"])})


@contextmanager
def catalogue_of(monkeypatch: pytest.MonkeyPatch, *rows: Mapping[str, Any]) -> Iterator[None]:
    """Let these be all pinned blobs."""

    def forget() -> None:
        for cached in (pins.pinned, content.shipped_project, local.shipped):
            cached.cache_clear()

    with monkeypatch.context() as patch:
        patch.setattr(catalog, "blobs", lambda: Blobs(blobs=tuple(map(blob, rows))))
        forget()
        yield
    forget()


def archive(
    files: Mapping[str, bytes] = FILES,
    *,
    top: str = f"tool-{COMMIT}/",
    compress: Callable[[bytes], bytes] = gzip.compress,
) -> bytes:
    """The archive of a commit, as a forge gives it."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT, pax_headers={"comment": COMMIT}) as tar:
        for name, text in {**files, "README.md": b"not taken\n"}.items():
            member = tarfile.TarInfo(top + name)
            member.size, member.mtime = len(text), 1700000000
            tar.addfile(member, io.BytesIO(text))
    return compress(buffer.getvalue())
