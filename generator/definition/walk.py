"""Finds the declaration that belongs to a path of the definition: for costs and messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .kinds import Kind, ListOf, OneSection, kind_of
from .model.fields import Section, Setting

Path = tuple[str | int, ...]


def setting_at(root: type[Section], path: Path, data: Any) -> Setting | None:
    """The innermost declared key on the way along `path`, or None for the root itself.

    Where `data` does not decide between the alternatives of a section, the first one that has the key is taken.
    """
    candidates: tuple[type[Section], ...] = (root,)
    found: Setting | None = None
    for step in path:
        data = descend(data, step)
        if isinstance(step, str):
            section = next((candidate for candidate in candidates if step in candidate.declared_keys), None)
            if section is None:
                return found
            found = section.declared_keys[step]
        kind: Kind | None = kind_of(found) if found is not None else None
        if isinstance(step, int):
            kind = kind.item if isinstance(kind, ListOf) else None
        candidates = ()
        if isinstance(kind, OneSection):
            chosen = kind.chosen(data)
            candidates = (chosen,) if chosen else kind.classes
    return found


def descend(data: Any, step: str | int) -> Any:
    """The value below a key or index; None where there is none."""
    if isinstance(data, Mapping):
        return data.get(step)
    if isinstance(data, list) and isinstance(step, int) and 0 <= step < len(data):
        return data[step]
    return None
