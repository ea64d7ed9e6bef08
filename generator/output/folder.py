"""Files to disk: the one place that writes a deployment folder, as a whole or not at all.

What happens to files that are not as they were built:
* a folder without our manifest is refused, and one with a file of the user's own where a file of ours comes;
* files of ours that a user edited are replaced only by force;
* files that a user added stay;
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
from ..errors import CannotWrite, ProblemsFound
from ..files.file import MANIFEST, Files
from .changes import Before, Changes, compare, everything_in, folders_of, scan


def check(folder: Path, files: Files) -> Changes:
    """What `write` would change; nothing is written. CannotWrite if the folder is not ours."""
    with _refusing(folder):
        return compare(folder, files, scan(folder))


def write(folder: Path, files: Files, *, force: bool = False) -> Changes:
    """Make the folder hold exactly these files (and the user's own). An error leaves the old folder whole.

    Raises CannotWrite, and ProblemsFound for files that a user edited, unless they are replaced by force.
    """
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
            before = scan(folder)
            changes = compare(folder, files, before)
            if changes.edited and not force:
                raise ProblemsFound(
                    f"{folder} was edited after it was built: {', '.join(changes.edited)}",
                    "bring the edits into the definition or copy the files out of the folder; then "
                    "`cycleforge build --force` replaces them",
                )
            if changes.any:
                folder_swap.replace(folder, lambda new: _fill(new, folder, files, before, changes))
            return changes


# ---------------------------------------------------------------- writing


def _fill(new: Path, folder: Path, files: Files, before: Before, changes: Changes) -> None:
    for place in sorted(folders_of(files) - {PurePosixPath()}):
        (new / place).mkdir()
        (new / place).chmod(0o755)
    unchanged = set(changes.unchanged)
    for path, file in files.items():
        if str(path) in unchanged and _link(folder / path, new / path):
            continue
        with created(new / path, file.mode) as stream:
            stream.write(file.content)
    empty = set(before.folders) - {parent for path in (*before.files, *before.folders) for parent in path.parents}
    for path in sorted(empty):
        if not any(place in files for place in (path, *path.parents)):
            _carried_folder(new, path, before)
    for path in map(PurePosixPath, changes.foreign):
        _carried_folder(new, path.parent, before)
        if not _link(folder / path, new / path):
            _copy(folder / path, new / path)
    new.chmod(before.mode)
    if os.path.lexists(folder) and _marks(everything_in(folder)[0]) != _marks(before.files):
        raise CannotWrite(f"{folder} changed while it was built; nothing was written", "run the same command again")


def _marks(files: dict[PurePosixPath, os.stat_result]) -> dict[PurePosixPath, tuple[int, int]]:
    """What tells a file that was replaced or written since; a second name for it does not."""
    return {path: (status.st_ino, status.st_mtime_ns) for path, status in files.items()}


def _carried_folder(new: Path, path: PurePosixPath, before: Before) -> None:
    """Create a folder of the user, with the mode that it had."""
    if (new / path).is_dir():
        return
    _carried_folder(new, path.parent, before)
    (new / path).mkdir()
    (new / path).chmod(before.folders[path] | stat.S_IRWXU)


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
        raise CannotWrite(f"{source} is neither a file nor a link, so it cannot be kept", "move it out of the folder")
    shutil.copy2(source, target, follow_symlinks=False)


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
