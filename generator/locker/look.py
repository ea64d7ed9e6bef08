"""What an upload of a package would have to do, before anything is sent."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from ..records import record
from .compare import Difference, Wanted, compare
from .container import Container
from .layout import Listing, Stored, blobs_prefix, listed_blobs, version_prefix, versions_of
from .refusals import HIERARCHICAL, Refused

State = Literal["new", "unfinished", "same", "damaged", "different"]
"""`unfinished`: files without a manifest, so no node sees them. `damaged`: the version is there and right, but project
blobs of it are missing. `different`: this version already has different content, or another version uses such a
blob."""


@record
class Look:
    """A package and what is in its place."""

    wanted: Wanted
    listing: Listing
    difference: Difference
    state: State
    reasons: tuple[str, ...] = ()
    """Of `different`, for people."""


def look(container: Container, wanted: Wanted) -> Look:
    """List the version and the project blobs, and compare them; what has no MD5 is read."""
    listing = dict(container.listing(wanted.prefix))
    _no_folders(container, listing)
    if wanted.blobs:
        listing |= container.listing(blobs_prefix(wanted.project.name))
    listing |= proven(container, listing, compare(wanted, listing).unproven)
    difference = compare(wanted, listing)
    state, reasons = _state(container, wanted, listing, difference)
    return Look(wanted, listing, difference, state, reasons)


def proven(container: Container, listing: Listing, names: Sequence[str]) -> dict[str, Stored]:
    """The blobs with the MD5 of what they hold, found by reading them."""
    found = {}
    for name in names:
        checksum = hashlib.md5(usedforsecurity=False)
        for piece in container.stream(name):
            checksum.update(piece)
        found[name] = replace(listing[name], md5=checksum.digest())
    return found


def _no_folders(container: Container, listing: Listing) -> None:
    if any(stored.is_folder for stored in listing.values()):
        raise Refused(f"{container.address} {HIERARCHICAL[0]}", HIERARCHICAL[1], "HierarchicalNamespace")


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
