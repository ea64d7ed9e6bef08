"""Deployments whose definition has another `name` by now: their folder is built, and they may run and cost money."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ..files.manifest import MANIFEST

if TYPE_CHECKING:
    from ..definition.text.source import Source

_DEFINITION = re.compile(rb"^derived:\n(?:  .*\n)*?  definition: ['\"]?(.+?)['\"]?$", re.MULTILINE)
_MOST_BYTES = 4 * 1024 * 1024


def built_from(folder: Path) -> str | None:
    """The name of the file that a folder was built from; None for a folder that CycleForge has not built."""
    if not (folder / MANIFEST).is_file():
        return None
    try:
        with (folder / "effective.yaml").open("rb") as file:
            match = _DEFINITION.search(file.read(_MOST_BYTES))
        name = "" if match is None else match[1].decode()
    except (OSError, UnicodeDecodeError):
        return None
    return name if name and Path(name).name == name else None


def earlier_name(word: str, source: Source, out: Path) -> str | None:
    """The word, where it is the name under which the definition was built, and the definition has another one now.

    A name from the environment means several deployments from one file, and none of them is an earlier one.
    """
    if source.data is None or source.is_from_environment(("name",)) or source.data.get("name") == word:
        return None
    return word if "/" not in word and built_from(out / word) == Path(source.filename).name else None


def other_names(source: Source, out: Path) -> Iterator[str]:
    """Names under which the definition was built before."""
    if source.data is None or source.is_from_environment(("name",)):
        return
    try:
        folders = sorted(folder for folder in out.iterdir() if folder.is_dir() and not folder.is_symlink())
    except OSError:
        return
    for folder in folders:
        if folder.name != source.data.get("name") and built_from(folder) == Path(source.filename).name:
            yield folder.name


def notes(source: Source, name: str, out: Path) -> Iterator[str]:
    """Say for each such name what has become of that deployment, and what to do."""
    file = Path(source.filename).name
    for each in other_names(source, out):
        yield (
            f"note: {out / each} was built from {file} when its name was '{each}'; that deployment stays in Azure, and "
            f"costs money, beside '{name}'\n"
            f"  hint: to keep it, write `name: {each}` again; to look at it, `cycleforge status {each}`; to end it, "
            f"`cycleforge delete {each}`, then remove {out / each}"
        )
