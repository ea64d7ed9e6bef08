"""Compiled templates beside compiled modules: what Python does for its own files in `__pycache__`.

Compiling the templates anew costs a tenth of a build. A compiled template carries the checksum of its text, so that a
changed template is never taken for the old one; where nothing can be written everything works as without them.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

from jinja2.bccache import Bucket, FileSystemBytecodeCache

FOLDER = Path(__file__).resolve().parent / "__pycache__"


class BesideModules(FileSystemBytecodeCache):
    """Jinja's cache of compiled templates; it reads what is there, and writes where Python would write, too."""

    def __init__(self, folder: Path = FOLDER, *, writes: bool = not sys.dont_write_bytecode) -> None:
        super().__init__(str(folder), f"template-%s.{sys.implementation.cache_tag}.jinja")
        self._writes = writes and folder.is_dir()

    def load_bytecode(self, bucket: Bucket) -> None:
        """Take the compiled template, if there is a sound one."""
        with suppress(OSError, ValueError, EOFError, TypeError):
            super().load_bytecode(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep the compiled template, if that is possible."""
        if self._writes:
            with suppress(OSError):
                super().dump_bytecode(bucket)
