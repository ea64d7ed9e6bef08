"""Plain data to the typed definition, reporting every problem and repairing what it can so that the rules run too."""

from __future__ import annotations

import copy
from collections.abc import Container, Mapping
from typing import Any

from pydantic import ValidationError

from ..problems.problem import Problem
from ..records import record
from .model.definition import Definition
from .model.fields import Section
from .model_problems import Written, is_of_other_branch, misspelt_for, problem_of
from .model_rules import MissingKey
from .walk import (
    Path,
    branches,
    choose,
    descend,
    extra_of,
    field_annotation,
    field_at,
    item_annotation,
    sections,
)

_ROUNDS = 6
"""Repairs uncover further errors at most a few levels deep; after that the file is left to its author."""


@record
class Reading:
    """What was read.

    With problems, `definition` is the repaired file (or None when no repair helps): unknown keys are gone, invalid
    values are replaced. `replaced` holds the repaired paths; what rules say about them is not the user's doing.
    """

    definition: Definition | None
    problems: tuple[Problem, ...]
    replaced: tuple[Path, ...]


def _unwritten(_: Path) -> None:
    return None


def read_model(data: Any, written: Written = _unwritten) -> Reading:
    """Validate plain data; never raises for bad input. `written` gives a value as its author wrote it."""
    data = _without_empty_sections(Definition, data)
    problems: dict[tuple[str, Path], Problem] = {}
    replaced: dict[Path, None] = {}
    """In the order of the repairs; a dictionary, because every problem asks whether it is below one."""
    explained: set[Path] = set()
    """Missing keys that a misspelt one beside them explains."""
    repaired = data
    for _ in range(_ROUNDS):
        try:
            return Reading(Definition.model_validate(repaired), tuple(problems.values()), tuple(replaced))
        except ValidationError as error:
            if repaired is data:
                repaired = copy.deepcopy(data)
            found = [
                problem_of(entry, repaired, written)
                for entry in error.errors(include_url=False, include_context=True)
                if not is_of_other_branch(entry, repaired)
            ]
            explained |= {(*each.path[:-1], meant) for each in found if (meant := misspelt_for(each)) is not None}
            earlier, now = set(replaced), set[Path]()
            for problem in _outermost(found):
                is_new = not _is_below(problem.path, earlier) and not _is_below(problem.path, now)
                if is_new and not (problem.rule_id == MissingKey.id and problem.path in explained):
                    problems.setdefault((problem.rule_id, problem.path), problem)
                if not _is_below(problem.path, now):
                    path = _repair(repaired, problem.path)
                    now.add(path)
                    replaced[path] = None
    return Reading(None, tuple(problems.values()), tuple(replaced))


def _outermost(problems: list[Problem]) -> list[Problem]:
    """Unions report one finding per branch; keep one per path."""
    unique: dict[Path, Problem] = {}
    for problem in problems:
        unique.setdefault(problem.path, problem)
    return sorted(unique.values(), key=_removal_order)


def _removal_order(problem: Problem) -> tuple[Any, ...]:
    """Items of one list from the back, so that removing one does not move the others."""
    return tuple((0, -step, "") if isinstance(step, int) else (1, 0, step) for step in problem.path)


def _is_below(path: Path, ancestors: Container[Path]) -> bool:
    """Whether the path or one of its sections is among the ancestors."""
    return any(path[:length] in ancestors for length in range(len(path) + 1))


def _repair(data: Any, path: Path) -> Path:
    """Delete an unknown or invalid value; put the declared example where a required one is missing or invalid.

    Returns the path that was replaced.
    """
    if not path:
        return path
    if path[-1] == "type" and field_annotation(Definition, path, data) is None:
        path = path[:-1]  # without its type a section is nothing; its default or example takes the place
    parent: Any = data
    for step in path[:-1]:
        parent = descend(parent, step)
    last = path[-1]
    field = field_at(Definition, path, data)
    annotation = field_annotation(Definition, path, data)
    declared = field is not None and annotation is not None and not isinstance(last, int)
    if isinstance(parent, dict):
        parent.pop(last, None)
        if declared and field is not None and field.is_required():
            parent[last] = copy.deepcopy(_stand_in(field, annotation))
    elif isinstance(parent, list) and isinstance(last, int) and last < len(parent):
        parent[last] = copy.deepcopy(_item_stand_in(data, path))
    return path


def _stand_in(field: Any, annotation: Any) -> Any:
    example = extra_of(field).get("example")
    if example is None:
        return next((branch.__args__[0] for branch in branches(annotation) if hasattr(branch, "__args__")), "example")
    return example


def _item_stand_in(data: Any, path: Path) -> Any:
    annotation = field_annotation(Definition, path[:-1], data)
    item = item_annotation(annotation) if annotation is not None else None
    candidates = sections(item) if item is not None else ()
    if not candidates:
        return "example"
    return {
        name: copy.deepcopy(_stand_in(field, field.annotation))
        for name, field in candidates[0].model_fields.items()
        if field.is_required()
    }


def _without_empty_sections(section: type[Section], data: Any) -> Any:
    """`network:` with nothing below it means the default, as when the key is left out."""
    if not isinstance(data, Mapping):
        return data
    result: dict[Any, Any] = {}
    for key, value in data.items():
        field = section.model_fields.get(key)
        if field is None:
            result[key] = value
        elif value is None and not field.is_required():
            continue
        elif isinstance(value, list):
            inner = sections(item_annotation(field.annotation) or Any)
            chosen = [(choose(inner, item), item) for item in value]
            result[key] = [_without_empty_sections(cls, item) if cls else item for cls, item in chosen]
        else:
            cls = choose(sections(field.annotation), value)
            result[key] = _without_empty_sections(cls, value) if cls else value
    return result
