"""A version into the locker: files, project blobs, and the manifest last.

Large files go in blocks; a block's id holds its place and a digest of its content, so one that is there already is
recognised whatever file or program version it came from. Limits: 50,000 blocks of up to 4,000 MiB; all ids of a blob
have the same length. Source: https://learn.microsoft.com/rest/api/storageservices/put-block

Nothing outside `projects/<name>/<version>/` and `projects/<name>/blobs/` is touched. What is there is not sent again.
"""

from __future__ import annotations

import hashlib
import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Protocol

from msgspec import Struct

from ..errors import CannotRead, ProblemsFound
from ..projects.payload import Payload
from .container import NEW, Container
from .layout import Listing
from .look import Look, Wanted, compare, listed
from .refusals import hierarchical

SINGLE_PUT_BYTES = 2 * 2**20
"""Larger files go in blocks; times the number of connections, this bounds the memory."""


class Progress(Protocol):
    """Told while an upload continues, from several threads."""

    def begin(self, wanted: Wanted, files: int, size_bytes: int) -> None:
        """This much of a package will be sent."""

    def sent(self, size_bytes: int) -> None:
        """So many bytes more are in the locker."""


class Done(Struct, frozen=True):
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
    container.delete_all({name: found.listing[name] for name in stale})
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
    listing = listed(container, wanted)
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
        raise hierarchical(container.address)


def _send_all(container: Container, payloads: dict[str, Payload], listing: Listing, progress: Progress) -> None:
    """Small files at once, many at a time; then the large ones, each with many blocks at a time."""

    def put(name: str, payload: Payload) -> None:
        content = content_of(name, payload)
        container.put(name, content, payload.md5, _expected(name, listing))
        progress.sent(len(content))

    small = {name: payload for name, payload in payloads.items() if payload.size_bytes <= SINGLE_PUT_BYTES}
    container.run_all(partial(put, name, payload) for name, payload in small.items())
    for name, payload in payloads.items():
        if name not in small:
            ids = stage_blocks(container, name, payload, progress.sent)
            container.commit(name, ids, payload.size_bytes, payload.md5, _expected(name, listing))


def _expected(name: str, listing: Listing) -> str:
    return listing[name].etag if name in listing else NEW


def content_of(name: str, payload: Payload) -> bytes:
    """The content of a small file; raises CannotRead when it is no longer the one that was packaged."""
    with payload.open() as stream:
        content = stream.read(payload.size_bytes + 1)
    if hashlib.md5(content, usedforsecurity=False).digest() != payload.md5:
        raise changed_meanwhile(name)
    return content


BLOCK_BYTES = 8 * 2**20
MOST_BLOCKS = 50_000
WORKERS = 4
"""Blocks on their way at once; with the size of a block, this bounds the memory."""
_ID = re.compile(r"cf-[0-9]{5}-[0-9a-f]{32}")
Sent = Callable[[int], None]


class Block(Struct, frozen=True):
    """A part of a file, without its content."""

    number: int
    offset: int
    size_bytes: int


def blocks_of(payload: Payload) -> list[Block]:
    """The parts of a file; larger ones where the file would have more than the service allows."""
    size = max(BLOCK_BYTES, -(-payload.size_bytes // MOST_BLOCKS))
    return [
        Block(number, offset, min(size, payload.size_bytes - offset))
        for number, offset in enumerate(range(0, payload.size_bytes, size))
    ]


def stage_blocks(container: Container, name: str, payload: Payload, sent: Sent, workers: int = WORKERS) -> list[str]:
    """Send the blocks that are not there; the ids to commit, in order. Nobody sees anything of it yet.

    Raises CannotRead when the file is no longer the one that was packaged.
    """
    blocks = blocks_of(payload)
    there = {} if len(blocks) < 2 else _usable(container, name)
    ids: list[str] = [""] * len(blocks)
    tasks = (partial(_send, container, name, payload, block, there, ids, sent) for block in blocks)
    container.run_all(tasks, workers)
    if not payload.is_unchanged:
        raise changed_meanwhile(name)
    return ids


def _send(
    container: Container, name: str, payload: Payload, block: Block, there: dict[str, int], ids: list[str], sent: Sent
) -> None:
    with payload.open() as stream:
        stream.seek(block.offset)
        content = stream.read(block.size_bytes)
    if len(content) != block.size_bytes:
        raise changed_meanwhile(name)
    block_id = f"cf-{block.number:05d}-{hashlib.sha256(content).hexdigest()[:32]}"
    if there.get(block_id) != block.size_bytes:
        container.stage(name, block_id, content)
    ids[block.number] = block_id
    sent(block.size_bytes)


def _usable(container: Container, name: str) -> dict[str, int]:
    """Blocks of an earlier try; those of another program are given up, because their ids do not go with ours."""
    staged = container.staged(name)
    if any(not _ID.fullmatch(block.id) for block in staged):
        container.forget_staged(name)
        return {}
    return {block.id: block.size_bytes for block in staged}


def changed_meanwhile(name: str) -> CannotRead:
    """The file is not the one that was packaged."""
    return CannotRead(f"the file of {name} changed while it was being sent", "run the command again")


Notice = Callable[[str], None]


def replace(container: Container, found: Look, progress: Progress, notice: Notice = lambda _: None) -> Done:
    """Make the locker hold exactly the package, whatever has its version now.

    First all new content is sent as blocks that nobody sees. Only then is the manifest removed, the blocks become
    files, what no longer belongs goes, and the manifest is written: a few short requests, in which a node finds no
    version at all instead of half of one. Interrupted before, the old content stays as it was; interrupted between, the
    next upload completes it.
    """
    wanted, difference = found.wanted, found.difference
    not_hierarchical(container)
    names = difference.to_send(wanted.manifest_name)
    size_bytes = sum(wanted.all[name].size_bytes for name in names)
    progress.begin(wanted, len(names), size_bytes)
    staged = _stage_all(container, wanted, names, progress)
    with _not_now(notice):
        if wanted.manifest_name in found.listing:
            container.delete(wanted.manifest_name, found.listing[wanted.manifest_name].etag)
        container.run_all(partial(_commit, container, found, name, ids) for name, ids in staged.items())
        container.delete_all({name: found.listing[name] for name in difference.foreign})
        finish(container, wanted)
    sent = (*names, wanted.manifest_name)
    return Done("replaced", sent, size_bytes + wanted.manifest.size_bytes, difference.foreign)


def _stage_all(container: Container, wanted: Wanted, names: list[str], progress: Progress) -> dict[str, list[str]]:
    """Name → the ids of its blocks, which are all there now."""
    staged: dict[str, list[str]] = {}

    def stage(name: str, workers: int) -> None:
        staged[name] = stage_blocks(container, name, wanted.all[name], progress.sent, workers=workers)

    small = [name for name in names if wanted.all[name].size_bytes <= SINGLE_PUT_BYTES]
    container.run_all(partial(stage, name, 1) for name in small)
    for name in names:
        if name not in staged:
            stage(name, WORKERS)
    return staged


def _commit(container: Container, found: Look, name: str, ids: list[str]) -> None:
    payload = found.wanted.all[name]
    container.commit(name, ids, payload.size_bytes, payload.md5, _expected(name, found.listing))


@contextmanager
def _not_now(notice: Notice) -> Iterator[None]:
    """Ctrl-C waits until the switch is over; a second one does not. Where it is ignored, it stays so."""
    here = threading.current_thread() is threading.main_thread()
    if not here or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield
        return
    asked = False

    def later(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        notice("finishing the switch to the new content; another Ctrl-C leaves the version without a manifest")

    before = signal.signal(signal.SIGINT, later)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if asked:
        raise KeyboardInterrupt
