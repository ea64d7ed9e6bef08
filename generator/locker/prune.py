"""Versions that no cluster refers to, and the project blobs that only they use."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta

from msgspec import Struct

from .container import Container
from .layout import ROOT, Listing, Stored, Version, blobs_of, blobs_prefix, listed_blobs, versions_of

RUNNING = timedelta(days=1)
"""A version without a manifest that was written to within this time may be an upload that is still running."""
Reference = tuple[str, str]
"""Project and version."""


class Prune(Struct, frozen=True):
    versions: tuple[Version, ...]
    blobs: Mapping[str, Stored]
    """Name → project blob that no version that stays lists."""
    kept: tuple[tuple[Version, str], ...]
    """With the reason."""

    @property
    def size_bytes(self) -> int:
        """What it frees."""
        return sum(each.size_bytes for each in self.versions) + sum(blob.size_bytes for blob in self.blobs.values())


def plan_prune(
    container: Container, projects: Collection[str], used: Collection[Reference], keep: int, now: datetime | None = None
) -> Prune:
    """Look at the versions of these projects; `used` stay, as do the `keep` newest of each, and everything else's."""
    listing = container.listing(ROOT)
    now = now or datetime.now(UTC)
    going, kept = [], []
    by_project: dict[str, list[Version]] = {}
    for version in versions_of(listing):
        by_project.setdefault(version.project, []).append(version)
    for project, versions in sorted(by_project.items()):
        newest = sorted((v for v in versions if v.is_complete), key=lambda v: order(v.version), reverse=True)[:keep]
        for version in sorted(versions, key=lambda v: order(v.version)):
            reason = _reason_to_stay(version, project in projects, used, newest, now)
            if reason is None:
                going.append(version)
            else:
                kept.append((version, reason))
    touched = {version.project for version in going}
    return Prune(tuple(going), _orphans(container, listing, touched, kept), tuple(kept))


def prune(container: Container, plan: Prune) -> None:
    """Do it. The manifests go first, so that a node finds no version instead of half of one.

    The blobs go before the other files: as long as a file of a version is left, the next run knows that there is more.
    """
    manifests = {v.manifest: v.files[v.manifest] for v in plan.versions if v.is_complete}
    container.delete_all(manifests)
    container.delete_all(plan.blobs)
    files = {name: stored for version in plan.versions for name, stored in version.files.items()}
    container.delete_all({name: stored for name, stored in files.items() if name not in manifests})


def order(version: str) -> tuple[tuple[int, int, str], ...]:
    """A key that puts 1.10.0 after 1.9.0; words sort before numbers, so 1.0.0-rc10 comes after rc9, before 1.0.0."""
    parts = ((1, int(digits), "") if digits else (0, 0, word) for digits, word in _PARTS.findall(version))
    return (*parts, (1, -1, ""))


_PARTS = re.compile(r"([0-9]+)|([^0-9._-]+)")


def _reason_to_stay(
    version: Version, is_ours: bool, used: Collection[Reference], newest: list[Version], now: datetime
) -> str | None:
    if not is_ours:
        return "of a project that no definition here names"
    if (version.project, version.version) in used:
        return "used by a definition here"
    if version in newest:
        return "one of the newest, --keep"
    if not version.is_complete and now - version.modified < RUNNING:
        return "without a manifest and younger than a day: its upload may still be running"
    return None


def _orphans(
    container: Container, listing: Listing, projects: Collection[str], kept: list[tuple[Version, str]]
) -> dict[str, Stored]:
    """Project blobs of the projects that lose a version and that no version that stays needs."""
    found: dict[str, Stored] = {}
    for project, blobs in blobs_of(listing).items():
        if project not in projects:
            continue
        staying = [version for version, _ in kept if version.project == project]
        lists = [listed_blobs(container.read(version.manifest)) for version in staying if version.is_complete]
        # What an upload under way will list is not known, nor what an unreadable manifest meant.
        if None in lists or any(not version.is_complete for version in staying):
            continue
        needed = {blobs_prefix(project) + path for listed in lists if listed is not None for path in listed}
        found |= {name: stored for name, stored in blobs.items() if name not in needed}
    return found
