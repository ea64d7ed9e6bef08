"""A package on disk, as `cyclecloud project build` leaves it: `<out>/<project>/manifest.json` beside the specs.

The folder is replaced as one step. It is ours alone: files that someone put into it go with the next build.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from pathlib import Path, PurePosixPath

from ..disk import swap as folder_swap
from ..disk.file import created
from ..disk.reasons import refusing
from ..errors import CannotRead, CannotWrite
from .package import MANIFEST, Package
from .payload import Payload, made, measured


def build(package: Package, out: Path) -> bool:
    """Write the build of a project into `out`; False when it was up to date. CannotWrite leaves the old one whole."""
    folder = out / package.project.name
    _demand_outside(folder, package.project.folder)
    files = {PurePosixPath(MANIFEST): made(package.manifest), **package.files}
    with refusing(f"cannot write {folder}", "free some space or get write permission, or choose another --out"):
        out.mkdir(parents=True, exist_ok=True)
        with folder_swap.locked(out) as has_lock:
            folder_swap.heal(folder, has_lock=has_lock)
            _demand_ours(folder, package.project.name)
            if _is_current(folder, files):
                return False
            folder_swap.replace(folder, lambda new: _fill(new, files))
    return True


def _demand_outside(folder: Path, project: Path) -> None:
    """A build inside what is uploaded would be part of the next upload."""
    place, root = folder.resolve(), project.resolve()
    if place == root or any(place.is_relative_to(root / part) for part in ("specs", "blobs")):
        raise CannotRead(f"{folder} would be inside the project itself", "choose another --out")


def _demand_ours(folder: Path, name: str) -> None:
    """Whether the folder may be replaced: it is not there, empty, or a build of this project."""
    if not os.path.lexists(folder):
        return
    if folder.is_symlink() or not folder.is_dir():
        kind = "a link" if folder.is_symlink() else "a file"
        raise CannotWrite(f"{folder} is {kind}, not a folder", "choose another --out, or move it away")
    names = sorted(os.listdir(folder))  # noqa: PTH208 - names are enough
    if names and not (_built_name(folder) == name and "project.ini" not in names):
        raise CannotWrite(
            f"{folder} is not a build of project '{name}': it holds {', '.join(names[:3])}, so it is left unchanged",
            "choose another --out, or move that folder away",
        )


def _built_name(folder: Path) -> object:
    file = folder / MANIFEST
    try:
        content = None if file.is_symlink() else json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return content.get("name") if isinstance(content, dict) and "blobs" in content and "version" in content else None


def _is_current(folder: Path, files: dict[PurePosixPath, Payload]) -> bool:
    """Whether the folder holds exactly these files with their modes."""
    if not folder.is_dir():
        return False
    found = {}
    for place, folders, names in os.walk(folder):
        if not folders and not names:
            return False
        for name in names:
            path = Path(place) / name
            found[PurePosixPath(path.relative_to(folder).as_posix())] = path
        if any((Path(place) / name).is_symlink() for name in folders):
            return False
    return found.keys() == files.keys() and all(_is_same(found[path], payload) for path, payload in files.items())


def _is_same(path: Path, payload: Payload) -> bool:
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode) or status.st_size != payload.size_bytes:
        return False
    return stat.S_IMODE(status.st_mode) == _mode(payload) and measured(path) == payload


def _fill(new: Path, files: dict[PurePosixPath, Payload]) -> None:
    for place in sorted({parent for path in files for parent in path.parents} - {PurePosixPath()}):
        (new / place).mkdir()
        (new / place).chmod(0o755)
    for path, payload in files.items():
        _write(new / path, payload)
    new.chmod(0o755)


def _write(path: Path, payload: Payload) -> None:
    """Copy in pieces; what changed since it was measured would not agree with the manifest any more."""
    md5, size_bytes = hashlib.md5(usedforsecurity=False), 0
    with created(path, _mode(payload)) as target:
        for piece in payload.pieces():
            target.write(piece)
            md5.update(piece)
            size_bytes += len(piece)
    if (size_bytes, md5.digest()) != (payload.size_bytes, payload.md5):
        raise CannotRead(f"{payload.path or path} changed while it was being copied", "run the command again")


def _mode(payload: Payload) -> int:
    return 0o755 if payload.executable else 0o644
