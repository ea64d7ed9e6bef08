"""The files that a project uploads, complete: its own and the shared library.

Shipped projects are the same for every definition. The library has one source, `projects/_lib`, and is placed into
each spec that has scripts. It counts in the digest, so a changed library function is a changed project. So do the
figures of all VM sizes, which `generator.projects.figures` writes into the projects that read them (`make reference`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import PurePosixPath

from generator import assets
from generator.projects.ini import Project, ProjectUnreadable, read_project
from generator.render.files import File, Files

LIBRARY = PurePosixPath("cycleforge.sh")
_IGNORED_NAMES = {".git", ".DS_Store", "__pycache__", ".shellcheckrc"}
_IGNORED_SUFFIXES = (".pyc", ".swp", "~")


class Missing(ProjectUnreadable):
    """A file that the project promises is not there."""


@cache
def shipped_project(name: str) -> tuple[Project, Files]:
    """A shipped project and all its files, read once: plan, lock and rendering ask for them."""
    project = read_project(assets.folder("projects") / name)
    return project, contents(project, shipped=True)


def contents(project: Project, *, shipped: bool) -> Files:
    """Every file, by path inside the project. `shipped` projects get the library."""
    files = _own_files(project)
    for blob in project.blobs:
        if not any(character in blob for character in "*?[") and PurePosixPath("blobs") / blob not in files:
            raise Missing(project.folder / "project.ini", None, f"[blobs] lists '{blob}', which is not in blobs/")
    if shipped:
        for spec in project.specs:
            folder = PurePosixPath("specs") / spec / "cluster-init" / "files"
            files[folder / LIBRARY] = _file((assets.folder("projects") / "_lib" / LIBRARY).read_bytes())
    return dict(sorted(files.items(), key=lambda item: item[0].as_posix()))


def digest(files: Mapping[PurePosixPath, File]) -> str:
    """sha256 (hex) over paths and contents in the order of the paths; modes, times and listing order do not count."""
    total = hashlib.sha256()
    for path, content in sorted((path.as_posix().encode(), file.content) for path, file in files.items()):
        # Lengths first, so that no two sets of files can run together to the same bytes.
        total.update(b"%d:%s\n%d:" % (len(path), path, len(content)))
        total.update(content)
    return total.hexdigest()


def _file(content: bytes) -> File:
    """Executable by what it is, not by the mode in somebody's checkout: Windows and zip files lose modes."""
    return File(content, executable=content.startswith(b"#!"))


def _own_files(project: Project) -> Files:
    files: Files = {}
    root = project.folder.resolve()
    pending = [project.folder]
    while pending:
        for path in pending.pop().iterdir():
            name = path.name
            is_build = path.parent == project.folder and name == "build"
            if name in _IGNORED_NAMES or name.endswith(_IGNORED_SUFFIXES) or is_build:
                continue
            if path.is_symlink() and not path.resolve().is_relative_to(root):
                raise ProjectUnreadable(
                    path, None, "the link leads out of the project", "Put a copy of the file in its place."
                )
            if path.is_dir():
                if path.is_symlink():
                    raise ProjectUnreadable(
                        path, None, "a linked folder is not uploaded", "Put the files in its place."
                    )
                pending.append(path)
            elif path.is_file():
                relative = PurePosixPath(path.relative_to(project.folder).as_posix())
                files[relative] = _file(path.read_bytes())
            else:
                raise ProjectUnreadable(path, None, "is neither a file nor a folder")
    return files
