"""`diff`: a definition beside the folder that was built from it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import Struct

from ..definition.pages.schema import cost_of
from ..definition.text.source import load
from ..errors import CannotRead
from ..output import diff, procedures, reach, refusals
from ..output import folder as output
from ..output.changes import Changes
from ..output.diff import Change
from ..pipeline import render
from ..render.bootstrap import CLOUD_INIT
from .reading import Definition


class Difference(Struct, frozen=True):
    """What building would change."""

    folder: Path
    files: Changes
    changes: tuple[Change, ...]
    """Settings and derived values; none where the folder is not there yet."""
    steps: tuple[procedures.Step, ...]
    """Sections of operations.md for changes that building and deploying again does not bring."""
    new: Mapping[str, Any]
    old: Mapping[str, Any] | None

    @property
    def worst(self) -> str | None:
        """What the dearest change costs a running cluster."""
        return diff.worst(self.changes)

    def procedure_of(self, change: Change) -> str | None:
        """The section for one change."""
        return procedures.procedure_of(change, self.new, self.old)


def difference(definition: Definition, out: Path) -> Difference:
    """Compare. Raises HasErrors, CannotRead."""
    plan = definition.plan
    folder = out / plan.name
    files = render(plan, definition.folder)
    changes = output.check(folder, files)
    # Both sides go through the same YAML, so that the way of writing cannot look like a change.
    new = _plain(files[PurePosixPath("effective.yaml")].content, "effective.yaml")
    old = None if changes.is_new else _plain(_read(folder / "effective.yaml"), str(folder / "effective.yaml"))
    values: tuple[Change, ...] = ()
    if old is not None:
        found = diff.compare(old, new, partial(cost_of, effective=new, before=old))
        values = reach.with_reach(refusals.refine(found, old, new), old, new)
        values += diff.custom_data(changes, str(CLOUD_INIT)) if plan.server is not None else ()
    return Difference(folder, changes, values, tuple(procedures.steps(values, new, old)), new, old)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        reason = (error.strerror or "error").lower()
        raise CannotRead(f"cannot read {path}: {reason}", "`cycleforge build` writes it again") from error


def _plain(content: bytes, filename: str) -> dict[str, Any]:
    source = load(content, filename, None)
    if source.data is None or source.problems:
        message = f"{filename} is damaged: {source.problems[0].message}"
        raise CannotRead(message, "`cycleforge build --force` writes it again")
    return source.data
