"""Third-party files that nodes need, each pinned by its digest."""

from __future__ import annotations

from typing import Literal

from .files import Fact


class Blob(Fact, frozen=True, kw_only=True):
    """One file; `generator.blobs` describes the fields."""

    file: str
    project: str
    version: str
    repository: str
    commit: str
    url: str
    license: str
    members: tuple[str, ...]
    sha256: str
    size_bytes: int
    used_for: str
    without: str
    needed: Literal["always", "without_built_in_containers", "by_tests"]

    @property
    def is_for_nodes(self) -> bool:
        """Whether a project carries it; the others are sources that only tests build, fetched where they are named."""
        return self.needed != "by_tests"


class Blobs(Fact, frozen=True, kw_only=True):
    blobs: tuple[Blob, ...]
