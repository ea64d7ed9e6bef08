"""Places of a definition: the declaration that belongs to a path, and how messages name it."""

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


ITEM_NOUNS = {
    "partitions": ("partition", "name"),
    "mounts": ("mount", "path"),
    "projects": ("project", "name"),
    "training": ("training job", "recipe"),
    "validation": ("validation job", "recipe"),
    "add_validation": ("validation job", "recipe"),
    "silence": ("silence entry", "rule"),
    "custom_vm_sizes": ("custom VM size", "name"),
}


def subject(path: Path, data: Any) -> str:
    """`partition 'gpu'`, `mount '/data'`, `slurm.scheduler`; `the definition` for the root."""
    name = ""
    for depth, step in enumerate(path):
        data = descend(data, step)
        if isinstance(step, int):
            name = _item(str(path[depth - 1]) if depth else "", step, data, name)
        elif (name and not name[0].islower()) or " " in name:
            name = f"{step} of {name}"
        else:
            name = f"{name}.{step}" if name else step
    return name or "the definition"


def key_of(path: Path, data: Any) -> str:
    """`max_nodes of partition 'gpu'` for the value at `path`."""
    if not path:
        return "the definition"
    parent, last = path[:-1], path[-1]
    if isinstance(last, int):
        return subject(path, data)
    if not parent:
        return last
    owner = subject(parent, data)
    return f"{last} of {owner}" if " " in owner else f"{owner}.{last}"


def _item(collection: str, index: int, item: Any, prefix: str) -> str:
    noun, key = ITEM_NOUNS.get(collection, ("", ""))
    if noun and isinstance(item, Mapping) and isinstance(item.get(key), str):
        return f"{noun} '{item[key]}'"
    if noun:
        return f"{noun} {index + 1}"
    return f"item {index + 1} of {prefix}"
