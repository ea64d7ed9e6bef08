"""The files that a project uploads, complete: its own and the shared library.

Shipped projects are the same for every definition. The library has one source, `projects/_lib`, and is placed into
each spec: `cycleforge.sh` always, another file of it where a script sources that file. It counts in the digest, so a
changed library function is a changed project. VM sizes do not: nodes are told about theirs by node attributes.

Third-party files are not in the source tree. The digest counts their pinned sha256, so it is the same whether
they were fetched or not; `generator.render.projects` puts the bytes in their place.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import cache
from pathlib import PurePosixPath

from ..blobs.pins import pinned_of
from ..catalog.pinned_files import Blob
from ..files import assets
from ..files.file import File, Files
from .ini import Project, ProjectUnreadable, read_project
from .tree import Tree

BLOBS = PurePosixPath("blobs")
BUILT = PurePosixPath("build")
"""Where `cyclecloud project build` and ours write; never part of a project."""
_LIBRARY = "cycleforge.sh"
_SOURCED = re.compile(rb'^[ \t]*(?:\.|source)[ \t]+"?[^"\s]*/([a-z0-9_-]+\.sh)"?[ \t]*$', re.MULTILINE)
"""A line of Bash that sources a file beside or below something."""


class Missing(ProjectUnreadable):
    """A file that the project lists is missing."""


@cache
def shipped_project(name: str) -> tuple[Project, Files]:
    """A shipped project and all its files, read once: plan, lock and rendering ask for them."""
    project = read_project(assets.folder("projects") / name)
    return project, contents(project, shipped=True)


def contents(project: Project, *, shipped: bool) -> Files:
    """Every file, by path inside the project. `shipped` projects get the library, and their pins stand for blobs."""
    files = _own_files(project)
    if shipped:
        pins = pinned_of(project.name)
        files |= {BLOBS / name: _pin(pins[name]) for name in project.blobs if name in pins}
    for blob in project.blobs:
        if not is_pattern(blob) and BLOBS / blob not in files:
            raise Missing(project.folder / "project.ini", None, f"[blobs] lists '{blob}', which is not in blobs/")
    if shipped:
        for spec in project.specs:
            files |= _library(PurePosixPath("specs") / spec / "cluster-init", files)
    return dict(sorted(files.items(), key=lambda item: item[0].as_posix()))


def is_pattern(entry: str) -> bool:
    """Whether an entry of `[blobs]` is a pattern rather than a name."""
    return any(character in entry for character in "*?[")


def _pin(blob: Blob) -> File:
    """What stands for a third-party blob until its bytes are there."""
    return File(f"sha256 {blob.sha256}\n".encode("ascii"))


def _library(folder: PurePosixPath, files: Files) -> Files:
    """The files of the library that the scripts below a folder source, for its `files/`."""
    sources = {path.name: path for path in (assets.folder("projects") / "_lib").glob("*.sh")}
    scripts = [file.content for path, file in files.items() if path.suffix == ".sh" and path.is_relative_to(folder)]
    wanted = {name.decode("ascii") for content in scripts for name in _SOURCED.findall(content)}
    return {
        folder / "files" / name: _file(path.read_bytes())
        for name, path in sorted(sources.items())
        if name == _LIBRARY or name in wanted
    }


def digest(files: Mapping[PurePosixPath, File]) -> str:
    """sha256 (hex) over paths and contents in the order of the paths; modes, times and listing order do not count."""
    total = hashlib.sha256()
    for path, content in sorted(
        (path.as_posix().encode("utf-8", "surrogateescape"), file.content) for path, file in files.items()
    ):
        # Lengths first, so that no two sets of files can run together to the same bytes.
        total.update(b"%d:%s\n%d:" % (len(path), path, len(content)))
        total.update(content)
    return total.hexdigest()


def _file(content: bytes) -> File:
    """Executable by what it is, not by the mode in someone's checkout: Windows and zip files lose modes."""
    return File(content, executable=content.startswith(b"#!"))


def _own_files(project: Project) -> Files:
    found = Tree(project.folder).files(PurePosixPath(), without=BUILT)
    return {path: _file(file.read_bytes()) for path, file in found.items()}
