"""Whether a project is what was released: its digest against the lock beside it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Literal

from ..records import record
from .content import BUILT, digest, shipped_project
from .find import Located
from .ini import Project
from .lock import LOCK_NAME, read_lock
from .payload import Payload, measured
from .tree import Tree

_PIECE_BYTES = 1 << 18


@record
class Release:
    """What the lock says. `versions`: the released ones with their digests."""

    digest: str
    state: Literal["released", "changed", "not recorded"]
    versions: Mapping[str, str]


def release(found: Located, project: Project) -> Release:
    """The state of a project; raises CannotRead."""
    current = digest(shipped_project(project.name)[1]) if found.is_shipped else folder_digest(project)
    versions = read_lock(found.folder.parent / LOCK_NAME).get(project.name, {})
    recorded = versions.get(project.version)
    if recorded is None:
        return Release(current, "not recorded", versions)
    return Release(current, "released" if recorded == current else "changed", versions)


def folder_digest(project: Project) -> str:
    """What `digest(contents(project, shipped=False))` gives, without holding a large blob in memory."""
    files = Tree(project.folder).files(PurePosixPath(), without=BUILT)
    total = hashlib.sha256()
    for path, file in sorted(
        (path.as_posix().encode("utf-8", "surrogateescape"), file) for path, file in files.items()
    ):
        payload: Payload = measured(file)
        total.update(b"%d:%s\n%d:" % (len(path), path, payload.size_bytes))
        with payload.open() as stream:
            while piece := stream.read(_PIECE_BYTES):
                total.update(piece)
    return total.hexdigest()
