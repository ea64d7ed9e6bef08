"""Fetch blobs into the store: what is there stays, what is missing or damaged is got, one failure stops no other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Literal

from ..catalog.pinned_files import Blob
from ..records import record
from .archive import MAX_ARCHIVE_BYTES
from .download import DownloadFailed, Limits, download
from .sources import NotGot, Source, verified
from .store import Store

Progress = Callable[[Blob, int, int | None], None]


@record
class Outcome:
    """What became of one blob. `absent`: the named source does not hold it, and nobody asked for it by name."""

    blob: Blob
    state: Literal["fetched", "present", "failed", "absent"]
    path: Path
    reason: str | None = None
    hint: str | None = None


class Network:
    """The addresses of the catalogue."""

    def __init__(self, limits: Limits | None = None, progress: Progress = lambda *_: None) -> None:
        self._limits = limits or Limits()
        self._progress = progress

    def get(self, blob: Blob) -> bytes:
        """The verified blob; raises NotGot."""
        try:
            content = download(
                blob.url, MAX_ARCHIVE_BYTES, self._limits, lambda size, total: self._progress(blob, size, total)
            )
        except DownloadFailed as error:
            elsewhere = f"download {blob.url} elsewhere, then: cycleforge blobs fetch {blob.file} --from FILE"
            raise NotGot(error.reason, error.hint or elsewhere) from error
        return verified(blob, content, blob.url)


def fetch(blobs: Iterable[Blob], store: Store, source: Source, *, optional: bool = False) -> Iterator[Outcome]:
    """One outcome per blob, as soon as it is known. `optional`: a source need not hold all of them.

    Raises CannotWrite when the store cannot be written.
    """
    for blob in blobs:
        path = store.path(blob)
        if store.look(blob).state == "present":
            yield Outcome(blob, "present", path)
            continue
        try:
            content = source.get(blob)
        except NotGot as error:
            state: Literal["absent", "failed"] = "absent" if optional and error.is_absent else "failed"
            yield Outcome(blob, state, path, error.reason, error.hint)
            continue
        yield Outcome(blob, "fetched", store.put(blob, content))
