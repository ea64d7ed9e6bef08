"""One file as a whole or not at all: whoever looks, and whatever is killed, finds the old content or the new one."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from ..errors import CannotWrite
from .reasons import refusing

_LEFT_OVER_S = 3600.0
"""A temporary file of this age belongs to a run that was killed."""
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write(path: Path, content: bytes, *, mode: int | None = None, replace: bool = True) -> None:
    """Write beside, bring it to the disk, and give it the name; then bring the name to the disk.

    Without `mode` a file keeps the mode that it has, and a new one gets what the umask leaves. A link is replaced, not
    followed. Without `replace` a name that is taken raises FileExistsError. Raises OSError, which names the path.
    """
    _sweep(path)
    temporary = path.with_name(f".{path.name}.tmp-{os.urandom(4).hex()}")
    try:
        with os.fdopen(os.open(temporary, _NEW, 0o666), "wb") as stream:
            stream.write(content)
            stream.flush()
            mode = _mode_of(path) if mode is None else mode
            if mode is not None:
                os.fchmod(stream.fileno(), mode)
            os.fsync(stream.fileno())
        if replace:
            temporary.replace(path)
        else:
            # A link, other than a rename, fails if the name is taken, even if it was taken just now.
            os.link(temporary, path)
            temporary.unlink()
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and error.filename is not None:
            error.filename, error.filename2 = str(path), None
        raise
    with suppress(OSError):
        _sync(path.parent)


@contextmanager
def created(path: Path, mode: int) -> Iterator[BinaryIO]:
    """A new file to write into, which gets exactly this mode at the end; FileExistsError if the name is taken.

    The umask does not count, so that a folder is the same for everybody who makes it.
    """
    with os.fdopen(os.open(path, _NEW, 0o600), "wb") as stream:
        yield stream
        os.fchmod(stream.fileno(), mode)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _mode_of(path: Path) -> int | None:
    try:
        status = path.lstat()
    except OSError:
        return None
    return stat.S_IMODE(status.st_mode) if stat.S_ISREG(status.st_mode) else None


def _sweep(path: Path) -> None:
    """Remove what killed runs left; another run that writes the same file is younger."""
    pattern = re.compile(rf"\.{re.escape(path.name)}\.tmp-[0-9a-f]{{8}}")
    with suppress(OSError), os.scandir(path.parent) as entries:
        for entry in entries:
            if (
                pattern.fullmatch(entry.name)
                and time.time() - entry.stat(follow_symlinks=False).st_mtime > _LEFT_OVER_S
            ):
                Path(entry.path).unlink()


_HEAD_BYTES = 4096


def write_own(path: Path, content: bytes, *, is_ours: Callable[[bytes], bool], foreign: str, hint: str) -> None:
    """Replace the file in one step. CannotWrite leaves what was there.

    `is_ours` looks at the first bytes of the file that is there; one that is not ours `foreign` ("is not a page").
    """
    with refusing(f"cannot write {path}", hint):
        if refusal := _refusal(path, is_ours, foreign):
            raise CannotWrite(f"{path} {refusal}", hint)
        write(path, content)


def _refusal(path: Path, is_ours: Callable[[bytes], bool], foreign: str) -> str:
    if path.is_dir():
        return "is a folder, not a file"
    if not os.path.lexists(path):
        return ""
    if path.is_symlink() or not path.is_file():
        return "is a link or device, not a file"
    with path.open("rb") as stream:
        head = stream.read(_HEAD_BYTES)
    return f"{foreign}, so it is left unchanged" if head and not is_ours(head) else ""
