"""A version out of the locker, in the locker's own layout: `<folder>/<project>/<version>/…` and `…/blobs/…`.

Every file is compared with what the locker says of it, and project blobs with the manifest. The version's folder
appears complete or not at all; what is there already is never overwritten.
"""

from __future__ import annotations

import filecmp
import hashlib
import os
import shutil
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path, PurePosixPath

from msgspec import Struct

from ..disk import swap
from ..disk.reasons import refusing
from ..errors import CannotRead, CannotWrite, ProblemsFound
from .container import Container
from .layout import MANIFEST, Listing, Stored, blobs_prefix, listed_blobs, version_prefix


class Pulled(Struct, frozen=True):
    folder: Path
    files: int
    size_bytes: int
    blobs: tuple[Path, ...]


class Damaged(ProblemsFound):
    """What the locker holds is not what it says."""


def pull(container: Container, project: str, version: str, into: Path) -> Pulled:
    """Fetch a version with its project blobs; raises CannotRead, CannotWrite, Damaged, Refused."""
    prefix = version_prefix(project, version)
    listing = {name: stored for name, stored in container.listing(prefix).items() if not stored.is_folder}
    if prefix + MANIFEST not in listing:
        what = "its manifest is missing, so its upload has not finished" if listing else "it is not there"
        raise CannotRead(f"{container.address} has no {project} {version}: {what}", "cycleforge locker ls")
    target = into / project / version
    if os.path.lexists(target):
        raise CannotWrite(f"{target} already exists and is left unchanged", "remove it, or choose another --into")
    paths = {name: _path(name, prefix) for name in listing}
    _no_file_is_a_folder(paths.values())
    blobs = _wanted_blobs(container, project, container.read(prefix + MANIFEST))
    with refusing(
        f"cannot write {target}", "free some space or get write permission, or choose another --into", unchanged=False
    ):
        target.parent.mkdir(parents=True, exist_ok=True)
        swap.heal(target, has_lock=False)
        work = swap.temporary_beside(target)
        try:
            fetched = [(name, work / "version" / path, listing[name]) for name, path in paths.items()]
            fetched += [(name, work / "blobs" / path, stored) for name, (path, stored) in blobs.items()]
            for _, path, _ in fetched:
                path.parent.mkdir(parents=True, exist_ok=True)
            container.run_all(partial(_download, container, *each) for each in fetched)
            kept = _place_blobs(work / "blobs", target.parent / "blobs", [path for path, _ in blobs.values()])
            (work / "version").rename(target)
        finally:
            _remove(work)
    return Pulled(target, len(listing), sum(stored.size_bytes for stored in listing.values()), kept)


def _wanted_blobs(container: Container, project: str, manifest: bytes) -> dict[str, tuple[PurePosixPath, Stored]]:
    """Name → path and what is known, of the project blobs that a manifest lists."""
    listed = listed_blobs(manifest)
    if listed is None:
        raise Damaged(f"the manifest of {project} cannot be read", "cycleforge locker verify")
    if not listed:
        return {}
    prefix = blobs_prefix(project)
    listing: Listing = container.listing(prefix)
    wanted: dict[str, tuple[PurePosixPath, Stored]] = {}
    for path, checksum in listed.items():
        stored = listing.get(prefix + path)
        if stored is None:
            raise Damaged(f"the locker lacks blobs/{path} of {project}", "upload the project again")
        try:
            md5 = bytes.fromhex(checksum)
        except ValueError:
            raise Damaged(f"the manifest of {project} has no checksum for {path}", "upload it again") from None
        known = Stored(stored.size_bytes, md5, stored.etag, stored.modified)
        wanted[prefix + path] = (_path(prefix + path, prefix), known)
    _no_file_is_a_folder(path for path, _ in wanted.values())
    return wanted


def _download(container: Container, name: str, path: Path, stored: Stored) -> None:
    checksum, size_bytes, first = hashlib.md5(usedforsecurity=False), 0, b""
    with path.open("xb") as stream:
        for piece in container.stream(name):
            if container.stop.is_set():
                return  # another file has failed, or a person has given up
            first = first or piece[:2]
            checksum.update(piece)
            size_bytes += len(piece)
            stream.write(piece)
        stream.flush()
        os.fsync(stream.fileno())
    if size_bytes != stored.size_bytes or (stored.md5 is not None and checksum.digest() != stored.md5):
        raise Damaged(f"{name} does not have the content that its manifest lists", "upload the project again")
    # A locker keeps no modes; a script is what begins like one.
    path.chmod(0o755 if first == b"#!" else 0o644)


def _remove(work: Path) -> None:
    """After Ctrl-C a thread may make one more file in a folder that is just being emptied."""
    for _ in range(5):
        shutil.rmtree(work, ignore_errors=True)
        if not work.exists():
            return
        time.sleep(0.02)


def _place_blobs(source: Path, target: Path, paths: list[PurePosixPath]) -> tuple[Path, ...]:
    """Project blobs to their place, each in one rename; another content that is there stays, and is a problem."""
    for path in paths:
        there = target / path
        if there.is_file() and not filecmp.cmp(there, source / path, shallow=False):
            raise CannotWrite(f"{there} has different content and is left unchanged", "choose another --into")
    for path in paths:
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).replace(target / path)
    return tuple(target / path for path in paths)


def _no_file_is_a_folder(paths: Iterable[PurePosixPath]) -> None:
    files = set(paths)
    for path in sorted(files):
        if not files.isdisjoint(path.parents):
            raise Damaged(
                f"the locker holds {path} below a file that has the name of its folder", "upload the project again"
            )


def _path(name: str, prefix: str) -> PurePosixPath:
    """The path of a blob below its prefix; names that would leave the folder are refused."""
    parts = name.removeprefix(prefix).split("/")
    if any(part in ("", ".", "..") or "\\" in part or not part.isprintable() for part in parts):
        raise Damaged(
            f"the locker holds the name {name!r}, which is not a valid file path", "remove that blob from the locker"
        )
    return PurePosixPath(*parts)
