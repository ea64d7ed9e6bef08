"""A package against what is in the locker. Pure: it looks at two listings and says what differs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from ..projects.ini import Project, ProjectUnreadable
from ..projects.package import Package
from ..projects.payload import Payload, made
from ..records import record
from .layout import BLOBS, MANIFEST, Listing, blobs_prefix, version_prefix


@record
class Wanted:
    """What an upload of a package leaves in the locker; names are those in the container, in the order of sending."""

    project: Project
    files: Mapping[str, Payload]
    """Of the version, without its manifest."""
    blobs: Mapping[str, Payload]
    manifest_name: str
    manifest: Payload

    @property
    def prefix(self) -> str:
        """Of the version."""
        return version_prefix(self.project.name, self.project.version)

    @property
    def all(self) -> dict[str, Payload]:
        """Everything, the manifest last."""
        return {**self.files, **self.blobs, self.manifest_name: self.manifest}

    @property
    def size_bytes(self) -> int:
        """Of everything."""
        return sum(payload.size_bytes for payload in self.all.values())


@record
class Difference:
    """Names in the container. `unproven` have the right size, but nobody left their MD5."""

    missing: tuple[str, ...]
    changed: tuple[str, ...]
    foreign: tuple[str, ...]
    """Below the version's folder, but not of the package."""
    unproven: tuple[str, ...]

    @property
    def any(self) -> bool:
        """Whether there is something that is known to differ."""
        return bool(self.missing or self.changed or self.foreign)

    def to_send(self, manifest_name: str) -> list[str]:
        """What must be sent before the manifest."""
        return [name for name in (*self.missing, *self.changed) if name != manifest_name]


def wanted_of(package: Package) -> Wanted:
    """The blobs that a package becomes; ProjectUnreadable for a version that is not a valid folder name."""
    project = package.project
    if project.version.lower() == BLOBS:
        raise ProjectUnreadable(
            project.folder / "project.ini", project.version_line, f"the version must not be '{project.version}'",
            "Write three numbers, for example 1.0.0.",
        )  # fmt: skip
    prefix, below = version_prefix(project.name, project.version), blobs_prefix(project.name)
    return Wanted(
        project,
        {f"{prefix}{path}": payload for path, payload in _sorted(package.files)},
        {f"{below}{path}": payload for path, payload in _sorted(package.blobs)},
        f"{prefix}{MANIFEST}",
        made(package.manifest),
    )


def compare(wanted: Wanted, listing: Listing) -> Difference:
    """What differs; project blobs of other versions are not foreign."""
    missing, changed, unproven = [], [], []
    for name, payload in wanted.all.items():
        stored = listing.get(name)
        if stored is None:
            missing.append(name)
        elif stored.size_bytes != payload.size_bytes or (stored.md5 is not None and stored.md5 != payload.md5):
            changed.append(name)
        elif stored.md5 is None:
            unproven.append(name)
    every = wanted.all
    foreign = [name for name in listing if name.startswith(wanted.prefix) and name not in every]
    return Difference(tuple(missing), tuple(changed), tuple(foreign), tuple(unproven))


def _sorted(files: Mapping[PurePosixPath, Payload]) -> list[tuple[PurePosixPath, Payload]]:
    return sorted(files.items(), key=lambda item: item[0].as_posix())
