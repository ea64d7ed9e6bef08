"""What changes between two effective plans, and what each change costs a running cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ..problems.problem import KeyPath
from ..words.terminal import NOTHING, columns
from .changes import Changes

BY_HAND = "by hand"
"""Azure refuses it as long as something is there that people have to change or delete first."""
COSTS = ("recreate", BY_HAND, "node restart", "in place")
"""Worst first."""
_VALUE_WIDTH = 40
"""Characters of a value in the table."""
_IDENTITIES = ("name", "path", "recipe", "rule", "file", "symbol")
"""Keys that tell the items of a list apart: partitions and projects, mounts, jobs without a name, silences, blobs, and
modules."""


class _Absent:
    """Stands for "there is none", which is not the same as null."""

    def __repr__(self) -> str:
        return NOTHING


ABSENT = _Absent()


class Change(Struct, frozen=True):
    """One value that differs; `old` or `new` is ABSENT for what was added or removed."""

    path: KeyPath
    """List items that have a name, or what takes its place, are named by it."""
    old: Any
    new: Any
    cost: str
    where: str
    """The path for people: `slurm.partitions[hpc].max_nodes`."""
    reaches: str | None = None
    """Where it arrives on a cluster that runs; None: nowhere, or not said."""

    def as_json(self) -> dict[str, object]:
        """Plain data; a value that is absent has no key."""
        row: dict[str, object] = {"path": list(self.path), "where": self.where, "cost": self.cost}
        row |= {name: value for name, value in (("old", self.old), ("new", self.new)) if value is not ABSENT}
        row |= {"reaches": self.reaches} if self.reaches else {}
        return row


def compare(old: Mapping[str, Any], new: Mapping[str, Any], cost_of: Callable[[KeyPath], str]) -> tuple[Change, ...]:
    """All differences, in the order of the new plan, what was removed last in its section.

    Items of a list are matched by their `name`, or what takes its place, where all have one that is unique, so that
    moving a partition does not change every other. `cost_of` gets the path with list indexes.
    """
    comparison = _Comparison(cost_of)
    comparison.values(old, new, (), (), "")
    return tuple(comparison.changes)


class _Comparison:
    def __init__(self, cost_of: Callable[[KeyPath], str]) -> None:
        self.changes: list[Change] = []
        self._cost_of = cost_of

    def values(self, old: Any, new: Any, path: KeyPath, indexed: KeyPath, where: str) -> None:
        """Compare two values; `indexed` is the path with list indexes instead of names."""
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            for key in (*new, *(key for key in old if key not in new)):
                below = f"{where}.{key}" if where else str(key)
                self.values(old.get(key, ABSENT), new.get(key, ABSENT), (*path, key), (*indexed, key), below)
        elif (names := _names(old, new)) is not None:
            self._named(old, new, names, path, indexed, where)
        elif not _same(old, new):
            self.changes.append(Change(path, old, new, self._cost_of(indexed), where))

    def _named(
        self, old: Any, new: Any, names: tuple[list[str], list[str]], path: KeyPath, indexed: KeyPath, where: str
    ) -> None:
        before, after = names
        for index, name in enumerate(after):
            former = old[before.index(name)] if name in before else ABSENT
            self.values(former, new[index], (*path, name), (*indexed, index), f"{where}[{name}]")
        for index, name in enumerate(before):
            if name not in after:
                self.values(old[index], ABSENT, (*path, name), (*indexed, index), f"{where}[{name}]")
        common = [name for name in after if name in before]
        former_order = [name for name in before if name in after]
        if common != former_order:
            self.changes.append(Change(path, former_order, common, self._cost_of(indexed), f"{where} (order)"))


def _names(old: Any, new: Any) -> tuple[list[str], list[str]] | None:
    """What tells the items of both lists apart, if all have it and no two are equal; None otherwise."""
    if not (isinstance(old, list) and isinstance(new, list)) or not (old or new):
        return None
    for key in _IDENTITIES:
        found = [
            [item[key] for item in value if isinstance(item, Mapping) and isinstance(item.get(key), str)]
            for value in (old, new)
        ]
        if all(len(set(names)) == len(value) for names, value in zip(found, (old, new), strict=True)):
            return found[0], found[1]
    return None


def _same(old: Any, new: Any) -> bool:
    """Equality that tells true from 1, and 1 from 1.0 does not."""
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(_same, old, new))
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return list(old) == list(new) and all(_same(old[key], new[key]) for key in old)
    return isinstance(old, bool) == isinstance(new, bool) and bool(old == new)


def table(changes: Sequence[Change], title: str = "setting") -> str:
    """Aligned columns: where, old, new, cost, and what some of them reach; `title` heads the first one."""
    reached = any(each.reaches for each in changes)
    rows = [(title, "old", "new", "cost", *(["reaches"] if reached else []))]
    rows += [
        (each.where, *_both_texts(each.old, each.new), each.cost, *([each.reaches or ""] if reached else []))
        for each in changes
    ]
    return columns(rows)


def _both_texts(old: Any, new: Any) -> tuple[str, str]:
    """Two values in one short line each; long texts from the word in which they begin to differ."""
    if isinstance(old, str) and isinstance(new, str) and max(len(old), len(new)) > _VALUE_WIDTH:
        differs = (place for place, (a, b) in enumerate(zip(old, new, strict=False)) if a != b)
        same = next(differs, min(len(old), len(new)))
        start = old.rfind(" ", 0, same) + 1
        if start:
            return value_text(f"…{old[start:]}"), value_text(f"…{new[start:]}")
    return value_text(old), value_text(new)


def value_text(value: Any, width: int = _VALUE_WIDTH) -> str:
    """A value in one short line, as YAML would write it."""
    if value is ABSENT:
        text = NOTHING
    elif isinstance(value, bool):
        text = "true" if value else "false"
    elif value is None:
        text = "null"
    elif isinstance(value, Mapping):
        text = "{" + ", ".join(f"{key}: {value_text(item, 10**6)}" for key, item in value.items()) + "}"
    elif isinstance(value, list):
        text = "[" + ", ".join(value_text(item, 10**6) for item in value) + "]"
    else:
        text = str(value).replace("\n", "⏎")
    return text if len(text) <= width else text[: width - 1] + "…"


def custom_data(changes: Changes, path: str) -> tuple[Change, ...]:
    """The file at a path, if it changes, as a change: Azure refuses other custom data for a VM that exists.

    Source: https://github.com/Azure/azure-sdk-for-java/issues/1912
    """
    if path not in changes.changed:
        return ()
    return (Change(("files", path), "as deployed", "another text", "recreate", path),)


def worst(changes: Sequence[Change]) -> str | None:
    costs = {each.cost for each in changes}
    return next((cost for cost in COSTS if cost in costs), None)


def files_text(changes: Changes) -> str:
    """For example `files: 1 added, 3 changed, 80 unchanged`."""
    counts = (
        (len(changes.added), "added"),
        (len(changes.changed), "changed"),
        (len(changes.removed), "removed"),
        (len(changes.unchanged), "unchanged"),
    )
    text = "files: " + (", ".join(f"{count} {word}" for count, word in counts if count) or "none")
    edited = ", ".join(changes.edited)
    return f"{text}\nedited after the build, so only `cycleforge build --force` replaces: {edited}" if edited else text
