"""What a program says, read while it runs, without keeping more of it than we want.

A host decides how much it sends; a pipe that is read to its end and kept would fill the memory or the disk.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import IO

MOST_ERRORS = 64 * 1024
"""Bytes of a standard error; its end says why something failed."""
_PIECE = 64 * 1024
_PATIENCE_S = 5.0


class Drain:
    """Reads a pipe to its end in a thread of its own."""

    def __init__(self, pipe: IO[bytes], most: int, too_much: Callable[[], None] | None = None) -> None:
        """Keep `most` bytes: the last ones, or with `too_much` the first, and it is called at the first byte more."""
        self._pipe, self._most, self._too_much = pipe, most, too_much
        self._kept = bytearray()
        self.is_cut = False
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def content(self) -> bytes:
        """What is kept, once the program has ended: what it started may hold the pipe open for longer."""
        self._thread.join(_PATIENCE_S)
        return bytes(self._kept)

    def _read(self) -> None:
        # A pipe that is closed here by the one who has given up is no error.
        with suppress(OSError, ValueError):
            while piece := self._pipe.read1(_PIECE):  # type: ignore[attr-defined]
                self._keep(piece)

    def _keep(self, piece: bytes) -> None:
        self._kept += piece
        if len(self._kept) <= self._most:
            return
        if self._too_much is None:
            del self._kept[: -self._most]
            return
        del self._kept[self._most :]
        if not self.is_cut:
            self.is_cut = True
            self._too_much()
