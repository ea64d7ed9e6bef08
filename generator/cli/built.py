"""The built folder that a verb deploys, as it was built: what Azure gets is what was reviewed."""

from __future__ import annotations

import os
import re
from argparse import Namespace
from pathlib import Path

from ..errors import CannotRead, ProblemsFound
from ..plan.types import Plan
from ..records import record
from ..words.counts import counted, first
from . import common, definitions, renamed

_ASKED = re.compile(r"readEnvironmentVariable\('(\w+)'\)")
"""A value without a default, which the deployment asks for."""
_SHOWN = 3


@record
class Built:
    """A definition, its plan, and the folder that holds what they say, or should."""

    definition: common.Definition
    plan: Plan
    folder: Path


def built(args: Namespace) -> Built | int:
    """The folder of the definition that `args.name` names, or the exit code of a definition with errors.

    Raises CannotRead where nothing is built, ProblemsFound where the folder is not what the definition says now.
    """
    must_be_one_name(args)
    found = looked_for(args)
    if isinstance(found, Built):
        _must_be_current(args.name, found)
    return found


def must_be_one_name(args: Namespace) -> None:
    """Raise CannotRead where the word is the name of an earlier deployment and that of a file with a new one."""
    file = None if args.name == "-" else definitions.look(args.name)
    if file is not None and renamed.folder_of(args.name, file, args.out) is not None:
        now = definitions.name_in(file)
        text = f"'{args.name}' is a deployment that was built before, and the name of {file}, which now says '{now}'"
        raise CannotRead(text, f"use '{now}' for what the file says now, or write `name: {args.name}` again")


def looked_for(args: Namespace, *, quietly: bool = False) -> Built | int:
    """The same, whether or not anything is built; quietly, only problems that leave no plan are shown."""
    definition = common.deployed(args.name, args) if quietly else common.read_one(args, is_deployed=True)
    if quietly and definition.checked.plan is None:
        common.print_problems([definition], args)
    plan = definition.checked.plan
    if plan is None:
        return common.exit_code([definition])
    folder: Path = args.out / plan.name
    answered = _answered_later(folder, plan)
    if answered:
        # `source .envrc` sets for the deployment what the build left open, and must not make another build of it.
        environment = {name: value for name, value in os.environ.items() if name not in answered}
        definition = common.deployed(args.name, args, environment)
        plan = definition.checked.plan or plan
    return Built(definition, plan, folder)


def difference(found: Built) -> str | None:
    """In which way the folder is not what the definition says now; None where it is, or is not there at all."""
    from .. import pipeline
    from ..output import folder as output

    changes = output.check(found.folder, pipeline.render(found.plan, found.definition.folder))
    if changes.is_new or not changes.any:
        return None
    different = [str(each) for each in (*changes.changed, *changes.added, *changes.removed)]
    text = f"{found.folder} is not what {found.plan.definition} says now"
    return f"{text}: {counted(len(different), 'file')} would change ({first(different, _SHOWN)})"


def _answered_later(folder: Path, plan: Plan) -> set[str]:
    """Variables that the folder asks for at deployment, and that the environment has by now."""
    try:
        text = (folder / "main.bicepparam").read_text(encoding="utf-8")
    except (OSError, ValueError):
        return set()
    known = {*plan.asked_variables, *(secret.variable for secret in plan.secrets)}
    return {name for name in _ASKED.findall(text) if name in os.environ} - known


def _must_be_current(name: str, found: Built) -> None:
    if not found.folder.exists():
        raise CannotRead(f"{found.folder} is not built yet", f"cycleforge build {name}")
    different = difference(found)
    if different is not None:
        raise ProblemsFound(
            different, f"`cycleforge diff {name}` shows what, `cycleforge build {name}` brings it up to date"
        )
