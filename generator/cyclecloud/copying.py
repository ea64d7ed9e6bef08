"""Files and folders through a pipe to a host and back, as a whole or not at all.

`tar` and not `scp`, which follows links, quotes paths in another way with each release, and leaves half a copy where
the connection is lost. What arrives is first unpacked beside its place, a mark at its end says that all of it came, and
then it takes its place. A connection that is lost leaves what was there.
"""

from __future__ import annotations

import os
import secrets
import tarfile
from errno import EISDIR, ENOTDIR
from pathlib import Path, PurePosixPath
from shlex import quote
from typing import IO

from . import unpack

_CONTENT = "content"


def new_mark() -> str:
    """A name that no file has by chance."""
    return f"complete-{secrets.token_hex(8)}"


def receive(remote: str, mark: str, *, is_folder: bool) -> str:
    """The command that takes what `write` sends; it sweeps what a host that died has left."""
    path = PurePosixPath(remote)
    part = _plain(path.parent / f".{path.name}.part-{mark}")
    content, target = quote(f"{part}/{_CONTENT}"), quote(_plain(path))
    if is_folder:
        # Hard links: whoever reads a file of the old folder, such as a script that runs, goes on reading the old one.
        merge = f"cp -aflT --remove-destination {content} {target}"
        placed = f"if [ -d {target} ]; then {merge}; else mv -T {content} {target}; fi"
    else:
        placed = f"mv -fT {content} {target}"
    parent, stale = quote(_plain(path.parent)), quote(f".{path.name}.part-*")
    steps = (
        "set -e",
        f"mkdir -p {parent}",
        f"find {parent} -maxdepth 1 -type d -name {stale} -mmin +1440 -exec rm -rf {{}} +",
        f"mkdir -m 700 {quote(part)}",
        f"trap {quote('rm -rf ' + quote(part))} EXIT",
        "trap 'exit 1' HUP INT TERM",
        f"tar -x --no-same-owner -f - -C {quote(part)}",
        f"[ -e {quote(f'{part}/{mark}')} ] || {{ echo 'not all of it arrived' >&2; exit 1; }}",
        placed,
    )
    return "; ".join(steps)


def write(local: Path, mark: str, stream: IO[bytes]) -> None:
    """Send the content and the mark behind it. Raises OSError for what cannot be read; then there is no mark."""
    with tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        archive.add(local.resolve(), _CONTENT)
        archive.addfile(tarfile.TarInfo(mark))


def give(remote: str) -> str:
    """The command that sends a file or folder. A log that grows while it is read is no failure (tar's status 1).

    In GNU's own format, which is all that `unpack` reads; a file with several names is sent as often as it has names.
    """
    path = PurePosixPath(remote)
    return (
        f"tar -c --format=gnu --hard-dereference -f - -C {quote(_plain(path.parent))} "
        f"--transform {quote(f's,^[^/]*,{_CONTENT},rSh')} -- {quote(path.name)} || [ $? -eq 1 ]"
    )


def read(stream: IO[bytes], folder: Path) -> list[str]:
    """Unpack what `give` sends into an empty folder; a line for each reason why something was left behind.

    Raises unpack.CutOff, unpack.Refused, and OSError for what cannot be written here.
    """
    return unpack.unpack(stream, folder, _CONTENT)


def place(folder: Path, local: Path) -> None:
    """Put the content at its place. Raises OSError, before anything is changed where a link would lead elsewhere."""
    content = folder / _CONTENT
    if not (content.is_dir() and local.is_dir()):
        content.replace(local)
        return
    # `local` itself may be a link: that is where its owner wants it. In it none is followed.
    root = local.resolve()
    walked = [(Path(parent), root / Path(parent).relative_to(content), files) for parent, _, files in os.walk(content)]
    for _, target, files in walked:
        _no_clash(target, files)
    for parent, target, files in walked:
        target.mkdir(exist_ok=True)
        for name in files:
            (parent / name).replace(target / name)


def _no_clash(target: Path, files: list[str]) -> None:
    """Raises OSError where a folder is to go to a place that has no folder, or a file to one that has a folder."""
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise NotADirectoryError(ENOTDIR, "a link or file is where a folder has to go", str(target))
    for name in files:
        if (target / name).is_dir() and not (target / name).is_symlink():
            raise IsADirectoryError(EISDIR, "a folder is where a file has to go", str(target / name))


def _plain(path: PurePosixPath) -> str:
    """A path that no program takes for an option."""
    return str(path) if path.is_absolute() else f"./{path}"
