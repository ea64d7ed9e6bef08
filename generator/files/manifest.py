"""`manifest.json` of a rendered folder: who made it, and the sha256 of every other file."""

from __future__ import annotations

import hashlib
from pathlib import PurePosixPath

from .file import File, Files, json_file

OWNER = "cycleforge"
MANIFEST = PurePosixPath("manifest.json")


def manifest_file(files: Files, version: str) -> File:
    """The manifest of these files; one that is among them already does not count."""
    digests = {str(path): digest(file.content) for path, file in sorted(files.items()) if path != MANIFEST}
    return json_file({"generator": OWNER, "version": version, "files": digests})


def digest(content: bytes) -> str:
    """The sha256 of a file, as the manifest has it."""
    return hashlib.sha256(content).hexdigest()
