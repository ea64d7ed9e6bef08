"""The built folder that a verb deploys, as it was built: what Azure gets is what was reviewed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from .. import pipeline
from ..errors import CannotRead, ProblemsFound
from ..output import folder as output
from ..output.changes import Changes
from ..plan.deployment import Plan
from ..words.counts import counted, first
from . import definitions, reading
from .reading import Definition, Target, deployed

_ASKED = re.compile(r"readEnvironmentVariable\('(\w+)'\)")
"""A value without a default, which the deployment asks for."""
_SHOWN = 3

Tell = Callable[[Definition], None]
"""Shows the problems of a definition; the verb goes on where they leave a plan."""


class Built(Struct, frozen=True):
    """A definition, its plan, and the folder that holds what they say, or should."""

    definition: Definition
    plan: Plan
    folder: Path


def built(target: Target, tell: Tell = lambda _: None) -> Built:
    """The built folder of a definition.

    Raises HasErrors, CannotRead where nothing is built, ProblemsFound where it is not what the definition says now.
    """
    must_be_one_name(target)
    found = looked_for(target, tell)
    if not found.folder.exists():
        raise CannotRead(f"{found.folder} is not built yet", f"cycleforge build {target.name}")
    must_be_current(found, f"`cycleforge build {target.name}` brings it up to date", target.name)
    return found


def build(definition: Definition, out: Path = definitions.OUT, *, check: bool = False, force: bool = False) -> Changes:
    """Render the folder of a definition below `out`; `check` only compares, `force` replaces what was edited.

    Raises HasErrors, CannotWrite, ProblemsFound.
    """
    plan = definition.plan
    files = pipeline.render(plan, definition.folder)
    folder = out / plan.name
    return output.check(folder, files) if check else output.write(folder, files, force=force)


def must_be_one_name(target: Target) -> None:
    """Raise CannotRead where the word is the name of an earlier deployment and that of a file with a new one."""
    word = target.name
    file = None if word == "-" else definitions.look(word)
    if file is not None and reading.folder_of(word, file, target.out) is not None:
        now = definitions.name_in(file)
        text = f"'{word}' is a deployment that was built before, and the name of {file}, which now says '{now}'"
        raise CannotRead(text, f"use '{now}' for what the file says now, or write `name: {word}` again")


def looked_for(target: Target, tell: Tell = lambda _: None) -> Built:
    """The same, whether or not anything is built. Raises HasErrors."""
    definition = deployed(target)
    tell(definition)
    plan = definition.plan
    folder = target.out / plan.name
    answered = _answered_later(folder, plan)
    if answered:
        # `source .envrc` sets for the deployment what the build left open, and must not make another build of it.
        definition = deployed(target, {name: value for name, value in os.environ.items() if name not in answered})
        plan = definition.checked.plan or plan
    return Built(definition, plan, folder)


def difference(found: Built) -> str | None:
    """In which way the folder is not what the definition says now; None where it is, or is not there at all."""
    changes = output.check(found.folder, pipeline.render(found.plan, found.definition.folder))
    if changes.is_new or not changes.any:
        return None
    different = [str(each) for each in (*changes.changed, *changes.added, *changes.removed)]
    text = f"{found.folder} is not what {found.plan.definition} says now"
    edited = f"; edited after the build: {', '.join(changes.edited)}" if changes.edited else ""
    return f"{text}: {counted(len(different), 'file')} would change ({first(different, _SHOWN)}){edited}"


def must_be_current(found: Built, otherwise: str, name: str) -> None:
    """Raise ProblemsFound where the folder is not what the definition says now; `otherwise` is the way out."""
    different = difference(found)
    if different is not None:
        raise ProblemsFound(different, f"`cycleforge diff {name}` shows what, {otherwise}")


def _answered_later(folder: Path, plan: Plan) -> set[str]:
    """Variables that the folder asks for at deployment, and that the environment has by now."""
    try:
        text = (folder / "main.bicepparam").read_text(encoding="utf-8")
    except (OSError, ValueError):
        return set()
    known = {*plan.asked_variables, *(secret.variable for secret in plan.secrets)}
    return {name for name in _ASKED.findall(text) if name in os.environ} - known
