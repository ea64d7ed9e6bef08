"""One archive of texts without secrets, and an index that names what is not in it, and why.

The same texts give the same bytes: names are sorted, and nobody's time, name or id is in it.
"""

from __future__ import annotations

import gzip
import io
import tarfile

from ..words.counts import counted
from .hide import Hide
from .logs import CUT

INDEX = "index.txt"
MOST_BYTES = 8_000_000
"""Of one text; the end of a longer one is kept."""
MOST_TOGETHER = 64_000_000
"""Of all; what comes after that is named as missing."""


class Bundle:
    """Texts under their names, each cleaned as it comes in."""

    def __init__(self, title: str, hide: Hide) -> None:
        self._title, self._hide = title, hide
        self._texts: dict[str, bytes] = {}
        self._hidden: dict[str, int] = {}
        self._missing: dict[str, str] = {}

    def add(self, name: str, text: str) -> None:
        shown, hidden = self._hide.clean(text)
        content = shown.encode(errors="replace")
        if len(content) > MOST_BYTES:
            content = f"{CUT}\n".encode() + content[-MOST_BYTES:].partition(b"\n")[2]
        if sum(map(len, self._texts.values())) + len(content) > MOST_TOGETHER:
            self.miss(name, f"the archive has {MOST_TOGETHER // 1_000_000} MB without it; ask for it by itself")
            return
        self._texts[name], self._hidden[name] = content, hidden

    def miss(self, name: str, why: str) -> None:
        self._missing[name] = self._hide.clean(" ".join(why.split()))[0] or "no reason was given"

    @property
    def missing(self) -> dict[str, str]:
        return dict(self._missing)

    @property
    def names(self) -> list[str]:
        return sorted(self._texts)

    @property
    def index(self) -> str:
        """What is in it, how often something was hidden there, and what is not in it."""
        rows = [
            f"{name}: {len(self._texts[name])} bytes, {counted(self._hidden[name], 'secret')} hidden"
            for name in self.names
        ]
        absent = [f"{name}: {why}" for name, why in sorted(self._missing.items())]
        absent = absent or ["nothing is missing"]
        return "\n".join((self._title, "", "In this archive:", *rows, "", "Not in it, and why:", *absent)) + "\n"

    def content(self) -> bytes:
        out = io.BytesIO()
        with (
            gzip.GzipFile(fileobj=out, mode="wb", mtime=0, filename="") as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            for name, content in sorted({**self._texts, INDEX: self.index.encode()}.items()):
                member = tarfile.TarInfo(name)
                member.size, member.mode = len(content), 0o600
                archive.addfile(member, io.BytesIO(content))
        return out.getvalue()
