"""How far an upload is: a bar on a terminal, a plain line per project elsewhere, nothing with --json."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

from .packages import size_text

if TYPE_CHECKING:
    from ..locker.compare import Wanted


class Progress:
    """One for a whole command. `mode`: `bar`, `lines` or `none`."""

    def __init__(self, mode: str) -> None:
        self._mode = mode
        self._lock = threading.Lock()
        self._bar: Any = None

    def begin(self, wanted: Wanted, files: int, size_bytes: int) -> None:
        """A package of so much begins."""
        title = f"{wanted.project.name} {wanted.project.version}"
        self.close()
        if self._mode == "lines":
            print(f"{title}: sending {files} files, {size_text(size_bytes)}", file=sys.stderr, flush=True)
        elif self._mode == "bar":
            from tqdm import tqdm

            self._bar = tqdm(total=size_bytes, desc=title, unit="B", unit_scale=True, unit_divisor=1024, leave=False)

    def sent(self, size_bytes: int) -> None:
        """So much more is there; called from several threads."""
        if self._bar is not None:
            with self._lock:
                self._bar.update(size_bytes)

    def note(self, text: str) -> None:
        """Something that people should know now."""
        if self._bar is not None:
            self._bar.clear()
        print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Leave an empty line for what comes next."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
