"""The rendered file, the map of rendered files that flows to `generator.output`, and their `manifest.json`."""

from __future__ import annotations

import hashlib
import json
from pathlib import PurePosixPath

from msgspec import Struct


class File(Struct, frozen=True):
    """Bytes of one file in the deployment folder and whether it is executable (mode 0755 instead of 0644)."""

    content: bytes
    executable: bool = False

    @property
    def mode(self) -> int:
        return 0o755 if self.executable else 0o644


Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
"""What a JSON document holds."""

Files = dict[PurePosixPath, File]
"""Path relative to the deployment folder → file."""


def text(content: str, *, executable: bool = False) -> File:
    """A UTF-8 text file; line ends are `\\n` and the last line ends with one."""
    if not content.endswith("\n"):
        content += "\n"
    return File(content.encode("utf-8"), executable)


def json_file(value: object) -> File:
    """Pretty-printed JSON in the order of the given mappings."""
    return text(json.dumps(value, indent=2, ensure_ascii=False))


OWNER = "cycleforge"
MANIFEST = PurePosixPath("manifest.json")


def manifest_file(files: Files, version: str) -> File:
    """The manifest of these files; one that is among them already does not count."""
    digests = {str(path): digest(file.content) for path, file in sorted(files.items()) if path != MANIFEST}
    return json_file({"generator": OWNER, "version": version, "files": digests})


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
