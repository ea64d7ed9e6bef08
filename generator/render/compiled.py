"""Compiled templates beside compiled modules: what Python does for its own files in `__pycache__`.

Compiling the templates anew costs a tenth of a build. A compiled template carries the checksum of its text, so that a
changed template is never taken for the old one; where nothing can be written everything works as without them.
"""

from __future__ import annotations

import marshal
import pickle
import sys
from contextlib import suppress
from pathlib import Path

from jinja2.bccache import Bucket, FileSystemBytecodeCache, bc_magic

FOLDER = Path(__file__).resolve().parent / "__pycache__"


class BesideModules(FileSystemBytecodeCache):
    """Jinja's cache of compiled templates; it reads what is there, and writes where Python would write, too."""

    def __init__(self, folder: Path = FOLDER, *, writes: bool = not sys.dont_write_bytecode) -> None:
        super().__init__(str(folder), f"template-%s.{sys.implementation.cache_tag}.jinja")
        self._writes = writes and folder.is_dir()

    def load_bytecode(self, bucket: Bucket) -> None:
        """Take the compiled template, if there is a sound one.

        Read from memory: from a file, as the base class does it, marshal takes one small read per value, which makes
        the templates of a build forty times slower to load.
        """
        with suppress(OSError, ValueError, EOFError, TypeError):
            content = Path(self.directory, self.pattern % (bucket.key,)).read_bytes()
            start = bc_magic + pickle.dumps(bucket.checksum, 2)
            if content.startswith(start):
                bucket.code = marshal.loads(memoryview(content)[len(start) :])  # noqa: S302 - our own file

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep the compiled template, if that is possible."""
        if self._writes:
            with suppress(OSError):
                super().dump_bytecode(bucket)
