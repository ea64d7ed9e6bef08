"""A version into the locker: files, project blobs, and the manifest last.

Nothing outside `projects/<name>/<version>/` and `projects/<name>/blobs/` is touched. What is there is not sent again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Protocol

from ..errors import ProblemsFound
from ..projects.payload import Payload
from ..records import record
from . import blocks
from .compare import Wanted, compare
from .container import NEW, Container
from .layout import Listing, blobs_prefix
from .look import Look
from .refusals import HIERARCHICAL, Refused

SINGLE_PUT_BYTES = 2 * 2**20
"""Larger files go in blocks; times the number of connections, this bounds the memory."""


class Progress(Protocol):
    """Told while an upload continues, from several threads."""

    def begin(self, wanted: Wanted, files: int, size_bytes: int) -> None:
        """This much of a package will be sent."""

    def sent(self, size_bytes: int) -> None:
        """So many bytes more are in the locker."""


@record
class Done:
    """What became of a package."""

    word: str
    """unchanged, uploaded, completed, repaired or replaced."""
    sent: tuple[str, ...]
    sent_bytes: int
    deleted: tuple[str, ...]


class NotComplete(ProblemsFound):
    """After sending, the locker does not hold what it should; no manifest was written."""


_WORDS = {"new": "uploaded", "unfinished": "completed", "damaged": "repaired"}


def upload(container: Container, found: Look, progress: Progress) -> Done:
    """Bring a version into the locker that is not there, or not whole; the state must not be `different`.

    Raises Conflict when someone else writes the same version, Refused, CannotRead, NotComplete.
    """
    if found.state == "same":
        return Done("unchanged", (), 0, ())
    if found.state == "different":
        raise ValueError("this version has different content")
    not_hierarchical(container)
    wanted, difference = found.wanted, found.difference
    names = difference.to_send(wanted.manifest_name)
    size_bytes = sum(wanted.all[name].size_bytes for name in names)
    progress.begin(wanted, len(names), size_bytes)
    # A version without a manifest was never seen by a node; what does not belong to it goes.
    stale = difference.foreign if found.state != "damaged" else ()
    delete_all(container, stale, found.listing)
    for part in (wanted.files, wanted.blobs):
        payloads = {name: payload for name, payload in part.items() if name in names}
        _send_all(container, payloads, found.listing, progress)
    if found.state != "damaged":
        finish(container, wanted)
        names.append(wanted.manifest_name)
        size_bytes += wanted.manifest.size_bytes
    return Done(_WORDS[found.state], tuple(names), size_bytes, tuple(stale))


def finish(container: Container, wanted: Wanted) -> None:
    """Look whether everything is there, and only then write the manifest."""
    listing = dict(container.listing(wanted.prefix))
    if any(stored.is_folder for stored in listing.values()):
        raise Refused(f"{container.address} {HIERARCHICAL[0]}", HIERARCHICAL[1], "HierarchicalNamespace")
    if wanted.blobs:
        listing |= container.listing(blobs_prefix(wanted.project.name))
    left = compare(wanted, listing)
    wrong = [*(name for name in left.missing if name != wanted.manifest_name), *left.changed, *left.foreign]
    if wrong:
        raise NotComplete(
            f"{wanted.project.name} {wanted.project.version} is incomplete in the locker: {', '.join(wrong[:3])}"
            + (f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""),
            "another upload of it may be running: wait until it has finished, then run the command again",
        )
    if wanted.manifest_name not in listing:
        container.put(wanted.manifest_name, content_of(wanted.manifest_name, wanted.manifest), wanted.manifest.md5, NEW)


def not_hierarchical(container: Container) -> None:
    """Refuse an account with which lockers do not work, as far as we may know before anything is written."""
    if container.is_hierarchical():
        raise Refused(f"{container.address} {HIERARCHICAL[0]}", HIERARCHICAL[1], "HierarchicalNamespace")


def delete_all(container: Container, names: tuple[str, ...], listing: Listing) -> None:
    """Remove blobs, each only if it is the one that was listed."""
    container.run_all(
        lambda name=name: container.delete(name, listing[name].etag)  # type: ignore[misc]
        for name in names
    )


def _send_all(container: Container, payloads: dict[str, Payload], listing: Listing, progress: Progress) -> None:
    """Small files at once, many at a time; then the large ones, each with many blocks at a time."""

    def small() -> Iterator[Callable[[], None]]:
        for name, payload in payloads.items():
            if payload.size_bytes <= SINGLE_PUT_BYTES:
                yield lambda name=name, payload=payload: put(name, payload)  # type: ignore[misc]

    def put(name: str, payload: Payload) -> None:
        content = content_of(name, payload)
        container.put(name, content, payload.md5, _expected(name, listing))
        progress.sent(len(content))

    container.run_all(small())
    for name, payload in payloads.items():
        if payload.size_bytes > SINGLE_PUT_BYTES:
            ids = blocks.stage(container, name, payload, progress.sent)
            container.commit(name, ids, payload.size_bytes, payload.md5, _expected(name, listing))


def _expected(name: str, listing: Listing) -> str:
    return listing[name].etag if name in listing else NEW


def content_of(name: str, payload: Payload) -> bytes:
    """The content of a small file; raises CannotRead when it is no longer the one that was packaged."""
    with payload.open() as stream:
        content = stream.read(payload.size_bytes + 1)
    if hashlib.md5(content, usedforsecurity=False).digest() != payload.md5:
        raise blocks.changed(name)
    return content
