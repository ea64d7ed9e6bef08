"""Large files in blocks, resumable: what was sent before an interruption is not sent again.

A block's id holds its place and a digest of its content, so a block that is there already is recognised whatever file
or program version it came from. Limits: 50,000 blocks of up to 4,000 MiB; all ids of a blob have the same length.
Source: https://learn.microsoft.com/rest/api/storageservices/put-block
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator

from ..errors import CannotRead
from ..projects.payload import Payload
from ..records import record
from .container import Container

BLOCK_BYTES = 8 * 2**20
MOST_BLOCKS = 50_000
WORKERS = 4
"""Blocks on their way at once; with the size of a block, this bounds the memory."""
_ID = re.compile(r"cf-[0-9]{5}-[0-9a-f]{32}")
Sent = Callable[[int], None]


@record
class Block:
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


def stage(container: Container, name: str, payload: Payload, sent: Sent, *, workers: int = WORKERS) -> list[str]:
    """Send the blocks that are not there; the ids to commit, in order. Nobody sees anything of it yet.

    Raises CannotRead when the file is no longer the one that was packaged.
    """
    blocks = blocks_of(payload)
    there = {} if len(blocks) < 2 else _usable(container, name)
    ids: list[str] = [""] * len(blocks)

    def tasks() -> Iterator[Callable[[], None]]:
        for block in blocks:
            yield lambda block=block: _send(container, name, payload, block, there, ids, sent)  # type: ignore[misc]

    container.run_all(tasks(), workers)
    if not payload.is_unchanged:
        raise changed(name)
    return ids


def _send(
    container: Container, name: str, payload: Payload, block: Block, there: dict[str, int], ids: list[str], sent: Sent
) -> None:
    with payload.open() as stream:
        stream.seek(block.offset)
        content = stream.read(block.size_bytes)
    if len(content) != block.size_bytes:
        raise changed(name)
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


def changed(name: str) -> CannotRead:
    """The file is not the one that was packaged."""
    return CannotRead(f"the file of {name} changed while it was being sent", "run the command again")
