"""Names in the locker, and what a listing and a manifest of it mean.

Source: https://learn.microsoft.com/azure/cyclecloud/how-to/storage-blobs (`projects/[project]/[version]/[spec]`)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath

from msgspec import Struct

ROOT = "projects/"
MANIFEST = "manifest.json"
BLOBS = "blobs"


class Stored(Struct, frozen=True):
    """A blob of a listing. `md5` (16 bytes) is what its writer claimed; None when the writer gave none."""

    size_bytes: int
    md5: bytes | None
    etag: str
    modified: datetime
    is_folder: bool = False
    """A folder of an account with a hierarchical namespace."""


Listing = Mapping[str, Stored]
"""Name in the container → blob."""


@dataclass
class Version:
    """One version in the locker. `files` hold the manifest, too; names are those in the container."""

    project: str
    version: str
    files: dict[str, Stored] = field(default_factory=dict)

    @property
    def manifest(self) -> str:
        return version_prefix(self.project, self.version) + MANIFEST

    @property
    def is_complete(self) -> bool:
        """Whether nodes can see it."""
        return self.manifest in self.files

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files.values())

    @property
    def modified(self) -> datetime:
        """When its youngest file was written."""
        return max(file.modified for file in self.files.values())


def version_prefix(project: str, version: str) -> str:
    return f"{ROOT}{project}/{version}/"


def blobs_prefix(project: str) -> str:
    """`projects/<project>/blobs/`: files without a version of their own."""
    return f"{ROOT}{project}/{BLOBS}/"


def split(name: str) -> tuple[str, str, PurePosixPath] | None:
    """Project, version (or `blobs`) and the path below it; None for what is not a file of a project."""
    parts = name.removeprefix(ROOT).split("/")
    if not name.startswith(ROOT) or len(parts) < 3 or not all(parts[:3]):
        return None
    return parts[0], parts[1], PurePosixPath("/".join(parts[2:]))


def versions_of(listing: Listing) -> list[Version]:
    """The versions of a listing in its order, without project blobs."""
    found: dict[tuple[str, str], Version] = {}
    for name, stored in listing.items():
        place = split(name)
        if place is None or place[1] == BLOBS or stored.is_folder:
            continue
        project, version, _ = place
        found.setdefault((project, version), Version(project, version)).files[name] = stored
    return list(found.values())


def blobs_of(listing: Listing) -> dict[str, dict[str, Stored]]:
    """Project → its project blobs by name in the container."""
    found: dict[str, dict[str, Stored]] = {}
    for name, stored in listing.items():
        place = split(name)
        if place is not None and place[1] == BLOBS and not stored.is_folder:
            found.setdefault(place[0], {})[name] = stored
    return found


def listed_blobs(content: bytes) -> dict[str, str] | None:
    """Path below the project's `blobs/` → MD5 in hex; None for what is not a manifest."""
    try:
        blobs = json.loads(content)["blobs"]
        return {str(blob["path"]): str(blob["checksum"]).lower() for blob in blobs}
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
