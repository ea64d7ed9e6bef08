"""Files to disk: the one place that writes a deployment folder, as a whole or not at all.

What happens to files that are not ours:
* a folder without our manifest is refused;
* files that a user added are carried over;
* files of ours that a user edited are replaced, and the edited version stays beside as `<file>.orig`;
* a folder that is already what it should be is not touched.
"""

from __future__ import annotations

import os
import stat
from contextlib import AbstractContextManager
from pathlib import Path, PurePosixPath

from ..disk import swap as folder_swap
from ..disk.file import created
from ..disk.reasons import refusing
from ..errors import CannotWrite
from ..files.file import Files
from ..files.manifest import MANIFEST, OWNER
from .changes import Before, Changes, Work, compare, everything_in, folders_of, scan

def check(folder: Path, files: Files, *, owner: str = OWNER) -> Changes:
    """What `write` would change; nothing is written. CannotWrite if the folder is not ours."""
    with _refusing(folder):
        return compare(folder, files, scan(folder, owner)).changes


def write(folder: Path, files: Files, *, owner: str = OWNER) -> Changes:
    """Make the folder hold exactly these files (and the user's own). CannotWrite leaves the old folder whole."""
    if folder.name in ("", ".."):
        folder = folder.resolve()  # the temporary folder needs a name to be beside
    _check_paths(files)
    with _refusing(folder):
        if os.path.lexists(folder) and (folder.is_symlink() or not folder.is_dir()):
            kind = "a link" if folder.is_symlink() else "a file"
            raise CannotWrite(f"{folder} is {kind}, not a folder", "choose another --out, or move it away")
        folder.parent.mkdir(parents=True, exist_ok=True)
        with folder_swap.locked(folder.parent) as has_lock:
            folder_swap.heal(folder, has_lock=has_lock)
            before = scan(folder, owner)
            work = compare(folder, files, before)
            if work.changes.any:
                folder_swap.replace(
                    folder,
                    lambda new: _fill(new, folder, files, before, work),
                    save=lambda old: _bring_late_files(old, folder, before),
                )
            return work.changes


# ---------------------------------------------------------------- writing


def _fill(new: Path, folder: Path, files: Files, before: Before, work: Work) -> None:
    for place in sorted(folders_of(files) - {PurePosixPath()}):
        (new / place).mkdir()
        (new / place).chmod(0o755)
    unchanged = set(work.changes.unchanged)
    for path, file in files.items():
        if str(path) in unchanged and _link(folder / path, new / path):
            continue
        with created(new / path, file.mode) as stream:
            stream.write(file.content)
    empty = set(before.folders) - {parent for path in (*before.files, *before.folders) for parent in path.parents}
    for path in sorted(empty):
        if path not in files and not (new / path).exists() and not any(parent in files for parent in path.parents):
            _carried_folder(new, path, path, before)
    for source, target in sorted(work.carried.items()):
        _carried_folder(new, target.parent, source.parent, before)
        if not _link(folder / source, new / target):
            _copy(folder / source, new / target)
    new.chmod(before.mode)


def _carried_folder(new: Path, target: PurePosixPath, source: PurePosixPath, before: Before) -> None:
    """Create a folder of the user, with the mode that it had."""
    if (new / target).is_dir():
        return
    _carried_folder(new, target.parent, source.parent, before)
    (new / target).mkdir()
    (new / target).chmod(before.folders.get(source, 0o755) | stat.S_IRWXU)


def _link(source: Path, target: Path) -> bool:
    """A second name for the same file: its times, owner and mode stay. False where the system refuses."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        return False
    return True


def _copy(source: Path, target: Path) -> None:
    import shutil  # rarely needed

    if not (source.is_symlink() or source.is_file()):
        raise CannotWrite(
            f"{source} is neither a file nor a link, so it cannot be kept", "move it out of the folder"
        )
    shutil.copy2(source, target, follow_symlinks=False)


def _bring_late_files(old: Path, folder: Path, before: Before) -> None:
    """What a user added between our look and the swap is in the old folder; it must not go with it."""
    for path in sorted(set(everything_in(old)[0]) - set(before.files)):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        if not os.path.lexists(folder / path):
            (old / path).rename(folder / path)


def _check_paths(files: Files) -> None:
    """A path that leaves the folder, or a file where a folder is needed, is a bug of a renderer."""
    parents = {parent for path in files for parent in path.parents}
    for path in files:
        if path.is_absolute() or ".." in path.parts or not path.parts or path in parents:
            raise ValueError(f"not a path of a deployment folder: {path}")
    if MANIFEST not in files:
        raise ValueError("a deployment folder needs manifest.json")


def _refusing(folder: Path) -> AbstractContextManager[None]:
    return refusing(f"cannot write {folder}", "free some space or get write permission, or choose another --out")
