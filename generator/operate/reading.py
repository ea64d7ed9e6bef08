"""Definitions as they are here, and as what is deployed was built."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import CannotRead, ProblemsFound
from ..records import record
from . import definitions, renamed

if TYPE_CHECKING:
    from ..pipeline import Checked
    from ..plan.deployment import Plan


@record
class Target:
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


@record
class Definition:
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
    folder = renamed.folder_of(name or word, file, target.out)
    if folder is None:
        return read([word], environment)[0]
    source, place = renamed.as_built(folder)
    note = None
    if name is None:
        now = definitions.name_in(place / source.filename)
        says = f"has the name '{now}' by now" if now else "is not here any more"
        note = f"this is '{folder.name}' as {folder} was built; {source.filename} {says}"
    return Definition(str(place / source.filename), place, check_source(source, environment, place), note)
