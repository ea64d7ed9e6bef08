"""Where fetched blobs are on this machine. A blob counts only with its pinned sha256, which every read verifies."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from ..catalog.pinned_files import Blob
from ..disk import file
from ..disk.reasons import reason, refusing
from ..disk.user_cache import user_cache
from ..errors import CannotRead

VARIABLE = "CYCLEFORGE_BLOBS"
State = Literal["present", "missing", "damaged"]


class Found(Struct, frozen=True):
    """What the store holds of a blob; `reason` says what is wrong with a damaged one."""

    state: State
    reason: str | None = None


class Unusable(CannotRead):
    """The store does not hold the blob with its pinned content."""


def store_of(environment: Mapping[str, str]) -> Store:
    """The store of this user: `$CYCLEFORGE_BLOBS`, else `blobs` in the user's cache."""
    chosen = environment.get(VARIABLE, "")
    if chosen:
        return Store(Path(os.path.abspath(chosen)))  # noqa: PTH100 - resolve() would follow links
    return Store(user_cache(environment, f"give a folder in {VARIABLE}") / "blobs")


class Store:
    """A folder of blobs; it need not exist."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, blob: Blob) -> Path:
        return self.folder / blob.file

    def look(self, blob: Blob) -> Found:
        """Whether the blob is there with its pinned content."""
        return self._look(blob)[0]

    def read(self, blob: Blob) -> bytes:
        """The content, which has the pinned sha256; raises Unusable."""
        found, content = self._look(blob)
        if content is None:
            raise Unusable(f"{self.path(blob)} {found.reason or 'is not there'}", f"cycleforge blobs fetch {blob.file}")
        return content

    def put(self, blob: Blob, content: bytes) -> Path:
        """Keep a blob, in one rename; raises CannotWrite. The content must be the pinned one."""
        if hashlib.sha256(content).hexdigest() != blob.sha256:
            raise ValueError(f"not the pinned content of {blob.file}")
        path = self.path(blob)
        hint = f"free some space or get write permission, or give another folder in {VARIABLE}"
        with refusing(f"cannot keep blobs in {self.folder}", hint, unchanged=False):
            self.folder.mkdir(parents=True, exist_ok=True)
            file.write(path, content, mode=0o644)
        return path

    def _look(self, blob: Blob) -> tuple[Found, bytes | None]:
        try:
            # Not blocking: someone may have put a pipe there.
            descriptor = os.open(self.path(blob), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            return Found("missing"), None
        except OSError as error:
            return Found("damaged", f"cannot be read: {reason(error)}"), None
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(descriptor)
            return Found("damaged", "is not a file"), None
        with os.fdopen(descriptor, "rb") as stream:
            if status.st_size != blob.size_bytes:
                return Found("damaged", f"has {status.st_size} bytes instead of {blob.size_bytes}"), None
            try:
                content = stream.read(blob.size_bytes + 1)
            except OSError as error:
                return Found("damaged", f"cannot be read: {reason(error)}"), None
        if hashlib.sha256(content).hexdigest() != blob.sha256:
            return Found("damaged", "does not have the pinned sha256"), None
        return Found("present"), content
