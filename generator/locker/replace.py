"""Another content under a version that is there, on the user's word.

First all new content is sent as blocks that nobody sees. Only then is the manifest removed, the blocks become files,
what no longer belongs goes, and the manifest is written: a few short requests, in which a node finds no version at
all instead of half of one. Interrupted before, the old content stays as it was; interrupted between, the next upload
completes it.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from . import blocks
from .compare import Wanted
from .container import NEW, Container
from .look import Look
from .upload import SINGLE_PUT_BYTES, Done, Progress, delete_all, finish, not_hierarchical

Notice = Callable[[str], None]


def replace(container: Container, found: Look, progress: Progress, notice: Notice = lambda _: None) -> Done:
    """Make the locker hold exactly the package, whatever has its version now."""
    wanted, difference = found.wanted, found.difference
    not_hierarchical(container)
    names = difference.to_send(wanted.manifest_name)
    size_bytes = sum(wanted.all[name].size_bytes for name in names)
    progress.begin(wanted, len(names), size_bytes)
    staged = _stage_all(container, wanted, names, progress)
    with _not_now(notice):
        if wanted.manifest_name in found.listing:
            container.delete(wanted.manifest_name, found.listing[wanted.manifest_name].etag)
        container.run_all(_commits(container, found, staged))
        delete_all(container, difference.foreign, found.listing)
        finish(container, wanted)
    sent = (*names, wanted.manifest_name)
    return Done("replaced", sent, size_bytes + wanted.manifest.size_bytes, difference.foreign)


def _stage_all(container: Container, wanted: Wanted, names: list[str], progress: Progress) -> dict[str, list[str]]:
    """Name → the ids of its blocks, which are all there now."""
    staged: dict[str, list[str]] = {}

    def small() -> Iterator[Callable[[], None]]:
        for name in names:
            if wanted.all[name].size_bytes <= SINGLE_PUT_BYTES:
                yield lambda name=name: stage(name)  # type: ignore[misc]

    def stage(name: str) -> None:
        staged[name] = blocks.stage(container, name, wanted.all[name], progress.sent, workers=1)

    container.run_all(small())
    for name in names:
        if name not in staged:
            staged[name] = blocks.stage(container, name, wanted.all[name], progress.sent)
    return staged


def _commits(container: Container, found: Look, staged: dict[str, list[str]]) -> Iterator[Callable[[], None]]:
    for name, ids in staged.items():
        payload = found.wanted.all[name]
        expected = found.listing[name].etag if name in found.listing else NEW
        yield lambda name=name, ids=ids, payload=payload, expected=expected: container.commit(  # type: ignore[misc]
            name, ids, payload.size_bytes, payload.md5, expected
        )


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
