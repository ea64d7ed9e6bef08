"""The whole folder of every shipped definition, as a reviewer reads it.

Files that are copied as they stand are named with their source instead of being repeated six times; everything that
is generated is shown.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
from functools import cache
from pathlib import PurePosixPath

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from generator.files import assets
from generator.files.file import Files
from tests.definitions.build import NAMES, rendered

SOURCES = ("bicep_templates/modules", "bootstrap", "projects", "recipes")


class TextFile(SingleFileSnapshotExtension):
    """One readable file per definition."""

    _write_mode = WriteMode.TEXT
    file_extension = "txt"


@cache
def sources() -> dict[str, str]:
    """sha256 of every file that may be copied → its place in the checkout."""
    found: dict[str, str] = {}
    for folder in SOURCES:
        for path in sorted((assets.root() / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                found.setdefault(hashlib.sha256(path.read_bytes()).hexdigest(), str(path.relative_to(assets.root())))
    return found


def payload_listing(files: Files) -> str:
    """What travels to the server, by name and size."""
    chunks = [file.content for path, file in sorted(files.items()) if path.parts[:2] == ("bootstrap", "payload")]
    with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as archive:
        rows = [f"{member.mode:04o} {member.size:7} {member.name}" for member in archive.getmembers()]
    return "\n".join(rows)


def folder_text(files: Files) -> str:
    """The folder as one text."""
    parts = []
    for path, file in sorted(files.items()):
        mode = "executable" if file.executable else "file"
        digest = hashlib.sha256(file.content).hexdigest()
        if path.parts[:2] == ("bootstrap", "payload") or path == PurePosixPath("manifest.json"):
            parts.append(f"==> {path} ({mode}, generated)")
        elif digest in sources():
            parts.append(f"==> {path} ({mode}, copy of {sources()[digest]})")
        else:
            parts.append(f"==> {path} ({mode})\n{file.content.decode('utf-8')}")
    parts.append(f"==> archive in bootstrap/payload\n{payload_listing(files)}\n")
    return "\n".join(parts)


@pytest.mark.parametrize("name", NAMES)
def test_whole_folder(name: str, snapshot: SnapshotAssertion) -> None:
    assert folder_text(rendered(name)) == snapshot(name=name, extension_class=TextFile)
