"""Definitions as they are here, and as what is deployed was built.

A deployment whose definition has another `name` by now, or is gone, has a built folder, and may cost money.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from ..errors import CannotRead, ProblemsFound
from ..files.file import MANIFEST
from . import definitions

if TYPE_CHECKING:
    from ..definition.text.source import Source
    from ..pipeline import Checked
    from ..plan.deployment import Plan


class Target(Struct, frozen=True):
    """What a verb is about."""

    name: str
    """Name of a definition or of a deployment, path of a YAML file, or - for standard input."""
    out: Path = definitions.OUT
    subscription: str | None = None
    """Its id; without it the definition's, AZURE_SUBSCRIPTION_ID, or what `az account set` chose."""
    deployment: str | None = None
    """The deployment's name where it is known already; the definition may have another one by now."""


class HasErrors(ProblemsFound):
    """A definition has no plan; `definition.checked.problems` says why."""

    is_told = True

    def __init__(self, definition: Definition) -> None:
        super().__init__(f"{definition.filename} has errors", f"cycleforge validate {definition.filename}")
        self.definition = definition
        if definition.checked.source.data is None:
            self.exit_code = CannotRead.exit_code


class Definition(Struct, frozen=True):
    """A definition that was read and checked; `filename` is how the user would call it."""

    filename: str
    folder: Path
    checked: Checked
    note: str | None = None
    """What the user should know of where it is from."""

    @property
    def plan(self) -> Plan:
        """What it results in. Raises HasErrors."""
        if self.checked.plan is None:
            raise HasErrors(self)
        return self.checked.plan


def read(names: Sequence[str], environment: Mapping[str, str] = os.environ) -> list[Definition]:
    """Read and check the named definitions, or all of this folder."""
    from ..definition.text.source import MAX_BYTES
    from ..pipeline import check, check_together

    paths = [definitions.find(name) for name in names] if names else definitions.here()
    found = []
    for path in dict.fromkeys(paths):
        if path is None:
            filename, folder = "<stdin>", Path()
        else:
            filename, folder = str(path), path.parent
        text = definitions.read_at_most(path or "-", MAX_BYTES)
        found.append(Definition(filename, folder, check(text, filename, environment, folder)))
    together = check_together([each.checked for each in found])
    return [replace(each, checked=checked) for each, checked in zip(found, together, strict=True)]


def deployed(target: Target, environment: Mapping[str, str] = os.environ) -> Definition:
    """Read a definition for a verb on what it has deployed.

    A word that no definition has as its name, and a built folder has, means that deployment, as it was built.
    """
    from ..pipeline import check_source

    name, word = target.deployment, target.name
    if name is None:
        file = None if word == "-" else definitions.look(word)
    else:
        file = Path(word) if Path(word).is_file() else None
    folder = folder_of(name or word, file, target.out)
    if folder is None:
        return read([word], environment)[0]
    source, place = as_built(folder)
    note = None
    if name is None:
        now = definitions.name_in(place / source.filename)
        says = f"has the name '{now}' by now" if now else "is not here any more"
        note = f"this is '{folder.name}' as {folder} was built; {source.filename} {says}"
    return Definition(str(place / source.filename), place, check_source(source, environment, place), note)


_DEFINITION = re.compile(rb"^derived:\n(?:  .*\n)*?  definition: ['\"]?(.+?)['\"]?$", re.MULTILINE)
_MOST_BYTES = 4 * 1024 * 1024
EFFECTIVE = "effective.yaml"
_PLACES = (Path(definitions.FOLDER), Path())


def built_from(folder: Path) -> str | None:
    """The name of the file that a folder was built from; None for a folder that CycleForge has not built."""
    match = _DEFINITION.search(_effective(folder)) if (folder / MANIFEST).is_file() else None
    try:
        name = "" if match is None else match[1].decode()
    except UnicodeDecodeError:
        return None
    return name if name and Path(name).name == name else None


def folder_of(name: str, file: Path | None, out: Path) -> Path | None:
    """The built folder of the deployment with this name, where its file is gone or has another name by now."""
    folder = out / name
    if Path(name).name != name or built_from(folder) is None:
        return None
    return None if file is not None and definitions.name_in(file) in (name, None) else folder


def as_built(folder: Path) -> tuple[Source, Path]:
    """The definition of a folder as it was when it was built, with its defaults; and the folder of its file."""
    from ..definition.text.source import load

    name = built_from(folder)
    source = load(_effective(folder), str(folder / EFFECTIVE), None)
    data = (source.data or {}).get("definition")
    if name is None or not isinstance(data, dict):
        raise CannotRead(f"{folder / EFFECTIVE} is not what `cycleforge build` writes", f"follow {folder}/README.md")
    place = next((place for place in _PLACES if (place / name).is_file()), Path())
    return dataclasses.replace(source, filename=name, data=_asked(data)), place


def _asked(value: Any) -> Any:
    """Values that the deployment asks for are written as `ask: VARIABLE`."""
    from ..definition.text.source import MissingVariable

    if isinstance(value, dict):
        if set(value) == {"ask"} and isinstance(value["ask"], str):
            return MissingVariable(value["ask"])
        return {key: _asked(below) for key, below in value.items()}
    return [_asked(below) for below in value] if isinstance(value, list) else value


def notes(built: Mapping[str, str], out: Path, known: Iterable[str]) -> Iterator[str]:
    """Say which other deployments folders in `out` were built for that no definition has any more.

    `built`: names of the deployments that are built for the first time, and of their files. `known`: other names that
    are in use.
    """
    if not built:
        return
    names = {*built, *known, *definitions.names()}
    for folder in sorted(_folders(out)):
        file = built_from(folder)
        if file is None or folder.name in names:
            continue
        if file in built.values():
            why = f"a {file} too, with the name '{folder.name}'. If it was renamed"
        elif any((place / file).is_file() for place in _PLACES):
            continue
        else:
            why = f"{file}, which is not here any more. If it was deployed"
        options = "" if out == definitions.OUT else f" --out {out}"
        yield (
            f"note: {folder} was built from {why}, what is deployed as '{folder.name}' stays, and costs money.\n"
            f"  hint: to look at it, `cycleforge status {folder.name}{options}`; to end it, `cycleforge delete "
            f"{folder.name}{options}`, then remove {folder}"
        )


def _folders(out: Path) -> list[Path]:
    try:
        return [folder for folder in out.iterdir() if folder.is_dir() and not folder.is_symlink()]
    except OSError:
        return []


def _effective(folder: Path) -> bytes:
    return definitions.content_of(folder / EFFECTIVE, _MOST_BYTES)
