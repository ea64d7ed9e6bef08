"""Reading Azure's answers: what has another form than is documented is not known, rather than not there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..refusals import NotAsked
from .seen import Thing


def text(answer: Mapping[str, Any], *path: str) -> str:
    """A text in an answer; raises NotAsked where it is not one."""
    value = value_at(answer, *path)
    if not isinstance(value, str) or not value:
        raise NotAsked(f"an answer of Azure has no {'.'.join(path)}")
    return value


def value_at(answer: Mapping[str, Any], *path: str) -> Any:
    """A part of an answer, None where it is not there."""
    value: Any = answer
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def thing(row: Mapping[str, Any]) -> Thing:
    """One resource of a list."""
    tags = row.get("tags")
    return Thing(
        text(row, "id"),
        text(row, "type"),
        text(row, "name"),
        {str(key): str(value) for key, value in tags.items()} if isinstance(tags, dict) else {},
        str(row.get("location") or ""),
        str(row.get("managedBy") or ""),
    )
