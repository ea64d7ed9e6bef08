"""How messages name a place of the definition: the partition by its name, not by its index."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .walk import Path, descend

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
