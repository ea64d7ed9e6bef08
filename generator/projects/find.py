"""Which project a word on the command line means."""

from __future__ import annotations

from pathlib import Path

from ..errors import CannotRead
from ..files import assets
from ..records import record
from ..words.suggestions import suggestion

SHIPPED = ("misc_ndv4", "misc_ubuntu", "pyxis_enroot", "slurm_nhc", "slurm_policy")
"""The projects that CycleForge brings."""
HERE = Path("projects")
"""Where `cycleforge project new` puts projects, and where names are looked for."""


@record
class Located:
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
        raise CannotRead(f"{path} is not a project folder: it has no project.ini", "`cycleforge project new` makes one")
    known = [*SHIPPED, *(each.folder.name for each in projects_here())]
    raise CannotRead(f"there is no project '{word}'", suggestion(word, known) or f"projects: {', '.join(known)}")


def located(folder: Path) -> Located:
    """The folder, recognised as one that CycleForge brings when it is the very one."""
    real, root = folder.resolve(), assets.folder("projects").resolve()
    return Located(folder, real.parent == root and real.name in SHIPPED)


def all_shipped() -> list[Located]:
    """Every project that CycleForge brings."""
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
