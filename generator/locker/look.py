"""Compares a package with what is in the locker: what an upload of it would have to do."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from ..projects.ini import Project, ProjectUnreadable
from ..projects.package import Package
from ..projects.payload import Payload, made
from .container import Container
from .layout import BLOBS, MANIFEST, Listing, Stored, blobs_prefix, listed_blobs, version_prefix, versions_of
from .refusals import hierarchical

State = Literal["new", "unfinished", "same", "damaged", "different"]
"""`unfinished`: files without a manifest, so no node sees them. `damaged`: the version is there and right, but project
blobs of it are missing. `different`: this version already has different content, or another version uses such a
blob."""


class Look(Struct, frozen=True):
    wanted: Wanted
    listing: Listing
    difference: Difference
    state: State
    reasons: tuple[str, ...] = ()
    """Of `different`, for people."""


def look(container: Container, wanted: Wanted) -> Look:
    """List the version and the project blobs, and compare them; what has no MD5 is read."""
    listing = listed(container, wanted)
    listing |= proven(container, listing, compare(wanted, listing).unproven)
    difference = compare(wanted, listing)
    state, reasons = _state(container, wanted, listing, difference)
    return Look(wanted, listing, difference, state, reasons)


def listed(container: Container, wanted: Wanted) -> dict[str, Stored]:
    """List the version and, where the package has some, the project blobs. Raises Refused for folders."""
    listing = dict(container.listing(wanted.prefix))
    if any(stored.is_folder for stored in listing.values()):
        raise hierarchical(container.address)
    if wanted.blobs:
        listing |= container.listing(blobs_prefix(wanted.project.name))
    return listing


def proven(container: Container, listing: Listing, names: Sequence[str]) -> dict[str, Stored]:
    """The blobs with the MD5 of what they hold, found by reading them."""
    found = {}
    for name in names:
        checksum = hashlib.md5(usedforsecurity=False)
        for piece in container.stream(name):
            checksum.update(piece)
        found[name] = replace(listing[name], md5=checksum.digest())
    return found


def _state(
    container: Container, wanted: Wanted, listing: Listing, difference: Difference
) -> tuple[State, tuple[str, ...]]:
    is_there = wanted.manifest_name in listing
    changed_blobs = [name for name in difference.changed if name in wanted.blobs]
    reasons = _used_elsewhere(container, wanted, listing, changed_blobs)
    if is_there:
        reasons += _other_content(wanted, difference)
    if reasons:
        return "different", tuple(reasons)
    if not is_there:
        return ("unfinished" if any(name.startswith(wanted.prefix) for name in listing) else "new"), ()
    return ("damaged" if difference.any else "same"), ()


def _other_content(wanted: Wanted, difference: Difference) -> list[str]:
    """How the version in the locker differs from the package, one line each."""
    return [
        f"{word}: {name.removeprefix(wanted.prefix)}"
        for word, names in (
            ("differs", difference.changed),
            ("not in the locker", difference.missing),
            ("only in the locker", difference.foreign),
        )
        for name in names
        if name not in wanted.blobs
    ]


def _used_elsewhere(container: Container, wanted: Wanted, listing: Listing, changed: Sequence[str]) -> list[str]:
    """Project blobs have no version of their own: one that another version uses must not change."""
    if not changed:
        return []
    project = wanted.project
    versions = versions_of(container.listing(version_prefix(project.name, "").removesuffix("/")))
    reasons = []
    for version in versions:
        if version.project != project.name or not version.is_complete:
            continue
        users = listed_blobs(container.read(version.manifest))
        for name in changed:
            path = name.removeprefix(blobs_prefix(project.name))
            stored = listing[name].md5
            if users is None or (stored is not None and users.get(path) == stored.hex()):
                reasons.append(f"differs: blobs/{path}, which version {version.version} uses")
    return reasons


class Wanted(Struct, frozen=True):
    """What an upload of a package leaves in the locker; names are those in the container, in the order of sending."""

    project: Project
    files: Mapping[str, Payload]
    """Of the version, without its manifest."""
    blobs: Mapping[str, Payload]
    manifest_name: str
    manifest: Payload

    @property
    def prefix(self) -> str:
        return version_prefix(self.project.name, self.project.version)

    @property
    def all(self) -> dict[str, Payload]:
        return {**self.files, **self.blobs, self.manifest_name: self.manifest}

    @property
    def size_bytes(self) -> int:
        return sum(payload.size_bytes for payload in self.all.values())


class Difference(Struct, frozen=True):
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
