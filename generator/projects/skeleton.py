"""A new project folder that works, with the folders that `cyclecloud project init` makes.

The texts are in `skeleton/`. Folders: https://learn.microsoft.com/azure/cyclecloud/how-to/projects.
"""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

from ..disk import swap as folder_swap
from ..disk.file import created
from ..disk.reasons import refusing
from ..errors import CannotRead, CannotWrite
from .ini import NAME

_SOURCE = Path(__file__).resolve().parent / "skeleton"
_SPEC = PurePosixPath("specs/@SPEC@/cluster-init")
_FILES = {
    PurePosixPath("project.ini"): "project.ini",
    PurePosixPath(".gitattributes"): "gitattributes",
    PurePosixPath("blobs/README.txt"): "blobs.txt",
    PurePosixPath("templates/README.txt"): "templates.txt",
    _SPEC / "scripts/README.txt": "scripts.txt",
    _SPEC / "scripts/10-example.sh": "10-example.sh",
    _SPEC / "files/README.txt": "files.txt",
    _SPEC / "files/motd.txt": "motd.txt",
    _SPEC / "tests/README.txt": "tests.txt",
}


def skeleton(name: str, spec: str) -> dict[PurePosixPath, bytes]:
    """The files of a new project; raises CannotRead for a name that CycleCloud or the locker would not take."""
    _demand_name(name, "project")
    _demand_name(spec, "spec")
    return {
        PurePosixPath(_filled(path.as_posix(), name, spec)): _filled(
            (_SOURCE / source).read_text(encoding="ascii"), name, spec
        ).encode("ascii")
        for path, source in _FILES.items()
    }


def create(name: str, spec: str, parent: Path) -> Path:
    """Write a new project into `parent` as one step; CannotWrite when the folder exists."""
    files = skeleton(name, spec)
    folder = parent / name
    with refusing(
        f"cannot write {folder}", "free some space or get write permission, or choose another --in", unchanged=False
    ):
        parent.mkdir(parents=True, exist_ok=True)
        with folder_swap.locked(parent) as has_lock:
            if os.path.lexists(folder):
                raise CannotWrite(f"{folder} already exists", "choose another name, or another --in")
            folder_swap.heal(folder, has_lock=has_lock)
            folder_swap.replace(folder, lambda new: _fill(new, files))
    return folder


def _demand_name(word: str, kind: str) -> None:
    if not NAME.fullmatch(word) or word.endswith(".") or (kind == "project" and word.lower() == "cyclecloud"):
        hint = "use letters, digits, '.', '_' and '-', beginning with a letter or digit and not ending with '.'"
        raise CannotRead(
            f"'{word}' is not a valid {kind} name", f"{hint}; not 'cyclecloud'" if kind == "project" else hint
        )


def _filled(text: str, name: str, spec: str) -> str:
    return text.replace("@NAME@", name).replace("@SPEC@", spec)


def _fill(new: Path, files: dict[PurePosixPath, bytes]) -> None:
    for path, content in files.items():
        (new / path).parent.mkdir(parents=True, exist_ok=True)
        with created(new / path, 0o755 if content.startswith(b"#!") else 0o644) as stream:
            stream.write(content)
    new.chmod(0o755)
