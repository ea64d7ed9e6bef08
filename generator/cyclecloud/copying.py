"""Files and folders through a pipe to a host and back, as a whole or not at all.

`tar` and not `rsync`: what arrives is first unpacked beside its place, a mark at its end says that all of it came, and
then it takes its place. A connection that is lost leaves what was there.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tarfile
from pathlib import Path, PurePosixPath
from shlex import quote
from typing import IO

_CONTENT = "content"
_ENDS = (tarfile.ReadError, EOFError)


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
    """The command that sends a file or folder. A log that grows while it is read is no failure (tar's status 1)."""
    path = PurePosixPath(remote)
    return (
        f"tar -c -f - -C {quote(_plain(path.parent))} --transform {quote(f's,^[^/]*,{_CONTENT},rSh')} "
        f"-- {quote(path.name)} || [ $? -eq 1 ]"
    )


def read(stream: IO[bytes], folder: Path) -> bool:
    """Unpack what `give` sends into an empty folder; whether there was something, and its end."""
    try:
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            archive.extractall(folder, filter=_inside)  # noqa: S202 - the filter keeps it inside
    except _ENDS:
        return False
    return (folder / _CONTENT).exists()


def place(folder: Path, local: Path) -> None:
    """Put the content at its place."""
    content = folder / _CONTENT
    if not (content.is_dir() and local.is_dir()):
        content.replace(local)
        return
    for parent, folders, files in os.walk(content):
        target = local / Path(parent).relative_to(content)
        target.mkdir(exist_ok=True)
        for name in [*files, *(each for each in folders if Path(parent, each).is_symlink())]:
            Path(parent, name).replace(target / name)
    shutil.copystat(content, local)


def _inside(member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo | None:
    """What may be unpacked here: nothing that leaves the folder, no devices."""
    try:
        return tarfile.data_filter(member, folder)
    except tarfile.FilterError:
        return None


def _plain(path: PurePosixPath) -> str:
    """A path that no program takes for an option."""
    return str(path) if path.is_absolute() else f"./{path}"
