"""The projects that a definition or a command can name: the shipped ones, and the folders beside the definition.

Whether a blob travels depends on this machine's store, so that is asked anew for every plan.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from ..blobs import pinned_of, store_of
from ..definition.model.definition import Definition, Project
from ..errors import CannotRead
from ..files import assets
from ..words.suggestions import suggestion
from .content import contents, digest, shipped_project
from .ini import read_project


class LocalProject(Struct, frozen=True):
    """A project folder that the definition names, already read: its facts, or what is wrong with it."""

    name: str
    version: str | None
    specs: tuple[str, ...]
    size_bytes: int
    problem: str | None


class CarriedBlob(Struct, frozen=True):
    """A third-party file that a shipped project uses, and whether this machine's store has it (`present`)."""

    file: str
    version: str
    sha256: str
    size_bytes: int
    state: Literal["present", "missing", "damaged"]


class AvailableProject(Struct, frozen=True):
    """A project that roles may name; `generator.plan.projects.ProjectPlan` has the meaning of its fields."""

    name: str
    version: str
    source: PurePosixPath
    is_local: bool
    specs: tuple[str, ...]
    digest: str
    blobs: tuple[CarriedBlob, ...] = ()


def available_projects(definition: Definition, folder: Path) -> Mapping[str, AvailableProject]:
    """Shipped and local projects by name; raises CannotRead for a local one that cannot be read."""
    local = {entry.name: _available(entry, folder) for entry in _with_path(definition)}
    return {name: replace(shipped(name), blobs=_blobs(name)) for name in SHIPPED} | local


@cache
def shipped(name: str) -> AvailableProject:
    """A shipped project, without what the store of this machine holds of its blobs."""
    project, files = shipped_project(name)
    return AvailableProject(
        name, project.version, PurePosixPath("projects") / name, False, project.specs, digest(files)
    )


def _blobs(name: str) -> tuple[CarriedBlob, ...]:
    """The pinned blobs that a shipped project lists, with what the store of this machine holds."""
    listed, pins = shipped_project(name)[0].blobs, pinned_of(name)
    blobs = [pins[file] for file in listed if file in pins]
    if not blobs:
        return ()
    try:
        store = store_of(os.environ)
    except CannotRead:  # no home folder: `cycleforge blobs` says so, a build continues without
        store = None
    return tuple(
        CarriedBlob(
            blob.file, blob.version, blob.sha256, blob.size_bytes, store.look(blob).state if store else "missing"
        )
        for blob in blobs
    )


def local_projects(definition: Definition, folder: Path) -> Mapping[str, LocalProject]:
    """What the rules may know of the local project folders, readable or not."""
    return {entry.name: _facts(entry, folder) for entry in _with_path(definition)}


def _facts(entry: Project, folder: Path) -> LocalProject:
    try:
        project = read_project(folder / str(entry.path))
        files = contents(project, shipped=False)
    except CannotRead as error:
        problem = error.message if error.hint is None else f"{error.message}; {error.hint}"
        return LocalProject(entry.name, None, (), 0, problem)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "bad path"
        return LocalProject(entry.name, None, (), 0, f"the folder cannot be read: {reason}")
    if project.name != entry.name:
        problem = f"its project.ini names it '{project.name}'"
        return LocalProject(entry.name, project.version, project.specs, 0, problem)
    size = sum(len(file.content) for file in files.values())
    return LocalProject(entry.name, project.version, project.specs, size, None)


def _available(entry: Project, folder: Path) -> AvailableProject:
    source = PurePosixPath(str(entry.path))
    project = read_project(folder / source)
    return AvailableProject(
        entry.name, project.version, source, True, project.specs, digest(contents(project, shipped=False))
    )


def _with_path(definition: Definition) -> Iterator[Project]:
    return (entry for entry in definition.projects if entry.path is not None)


SHIPPED = ("misc_ndv4", "misc_ubuntu", "pyxis_enroot", "slurm_nhc", "slurm_policy")
"""The projects that CycleForge brings."""
HERE = Path("projects")
"""Where `cycleforge project new` puts projects, and where names are looked for."""


class Located(Struct, frozen=True):
    """A project folder. `is_shipped`: CycleForge brings it, so the library and pinned blobs belong to it."""

    folder: Path
    is_shipped: bool


def find_project(word: str) -> Located:
    """A project that CycleForge brings, one in `projects/` here, or a path; raises CannotRead."""
    if word in SHIPPED:
        return _shipped(word)
    path = Path(word)
    places = [path, HERE / word] if len(path.parts) == 1 else [path]
    for place in places:
        if _is_there(place / "project.ini"):
            return located(place)
    if _is_there(path):
        raise CannotRead(
            f"{path} is not a project folder: it has no project.ini", "`cycleforge project new` creates one"
        )
    known = [*SHIPPED, *(each.folder.name for each in projects_here())]
    raise CannotRead(f"there is no project '{word}'", suggestion(word, known) or f"projects: {', '.join(known)}")


def located(folder: Path) -> Located:
    """The folder, recognised as one that CycleForge brings when it is the very one."""
    real, root = folder.resolve(), assets.folder("projects").resolve()
    return Located(folder, real.parent == root and real.name in SHIPPED)


def all_shipped() -> list[Located]:
    return [_shipped(name) for name in SHIPPED]


def projects_here() -> list[Located]:
    """The projects in `projects/` that CycleForge does not bring."""
    found = (located(file.parent) for file in sorted(HERE.glob("*/project.ini")))
    return [each for each in found if not each.is_shipped]


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name that no file can have
        return False


def _shipped(name: str) -> Located:
    return Located(assets.folder("projects") / name, is_shipped=True)
