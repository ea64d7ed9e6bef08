"""pydantic's findings as problems in our words: what is wrong, with the value; how to mend it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, get_args

from ..problems.problem import Problem
from ..words.suggestions import did_you_mean
from .model.definition import Definition
from .model_rules import MissingKey, NotAllowed, OutOfRange, UnknownKey, UnsetVariable, WrongType
from .text.source import MissingVariable
from .walk import (
    Path,
    branches,
    descend,
    extra_of,
    field_annotation,
    field_at,
    is_free_mapping,
    section_at,
    sections,
    type_tags,
)
from .wording import key_of, subject

_TYPE_WORDS = {
    "string_type": "a text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}
_LIMIT_WORDS = {
    "greater_than_equal": ("ge", "at least"),
    "less_than_equal": ("le", "at most"),
    "greater_than": ("gt", "more than"),
    "less_than": ("lt", "less than"),
}
_FEW = 12
_YES_NO = {"yes": "true", "on": "true", "no": "false", "off": "false"}


Written = Callable[[Path], str | None]
"""A single value as its author wrote it: messages neither reformat it nor print what came from the environment."""


def problem_of(error: Mapping[str, Any], data: Any, written: Written) -> Problem:
    """One entry of `ValidationError.errors()` as a problem; `data` is the plain data that was read."""
    kind: str = error["type"]
    path = plain_path(error["loc"], data, keep_last=kind in ("missing", "extra_forbidden"))
    value = _value_at(path, data)
    if kind == "extra_forbidden":
        return _unknown_key(path, data)
    if kind in ("missing", "union_tag_not_found"):
        return _missing_key(
            (*path, "type") if kind == "union_tag_not_found" and isinstance(value, Mapping) else path, data
        )
    if isinstance(value, MissingVariable):
        return UnsetVariable.problem(
            path,
            f"{key_of(path, data)} reads the environment variable {value.name}, which is not set",
            hint=f"export {value.name}=…, or write ${{{value.name}:-default}}",
        )
    if kind in ("literal_error", "union_tag_invalid"):
        return _not_allowed(path, data, kind, written)
    if kind in _LIMIT_WORDS or kind in ("too_short", "string_too_short"):
        return _out_of_range(kind, error, path, data, written(path) or value)
    return _wrong_type(kind, path, data, value, written(path))


def is_of_other_branch(error: Mapping[str, Any], data: Any) -> bool:
    """Whether a mapping was tried as a text where both are possible; what is wrong in the mapping is said elsewhere."""
    if error["type"] != "string_type":
        return False
    path = plain_path(error["loc"], data, keep_last=False)
    annotation = field_annotation(Definition, path, data)
    return annotation is not None and bool(sections(annotation)) and isinstance(_value_at(path, data), Mapping)


def misspelt_for(problem: Problem) -> str | None:
    """The key that an unknown key was probably meant to be."""
    return (
        problem.hint.split("'")[1]
        if problem.rule_id == UnknownKey.id and problem.hint and problem.hint.startswith("did you mean")
        else None
    )


def plain_path(location: tuple[str | int, ...], data: Any, *, keep_last: bool) -> Path:
    """The path in the file that a pydantic location means: tags of unions are left out."""
    path: list[str | int] = []
    for depth, step in enumerate(location):
        last = depth == len(location) - 1
        if (
            (isinstance(data, Mapping) and step in data)
            or (isinstance(data, list) and isinstance(step, int))
            or (last and keep_last)
        ):
            path.append(step)
            data = descend(data, step)
    return tuple(path)


def _value_at(path: Path, data: Any) -> Any:
    for step in path:
        data = descend(data, step)
    return data


def _unknown_key(path: Path, data: Any) -> Problem:
    parent, key = path[:-1], str(path[-1])
    section = section_at(Definition, parent, data)
    allowed = tuple(section.model_fields) if section else ()
    close = did_you_mean(key, allowed)
    hint = f"did you mean '{close}'?" if close else None
    if hint is None and 0 < len(allowed) <= _FEW:
        hint = f"keys here: {', '.join(allowed)}"
    return UnknownKey.problem(path, f"{subject(parent, data)} has no key '{key}'", hint=hint, on_key=True)


def _missing_key(path: Path, data: Any) -> Problem:
    field = field_at(Definition, path, data)
    parent, key = path[:-1], str(path[-1])
    annotation = field_annotation(Definition, parent, data)
    hint: str | None
    if key == "type" and annotation is not None:
        tags = [str(tag) for section in sections(annotation) for tag in type_tags(section)]
        hint = f"type: {' | '.join(dict.fromkeys(tags))}"
    else:
        example = extra_of(field).get("example") if field else None
        hint = f"for example {key}: {example}" if isinstance(example, str | int) else None
    return MissingKey.problem(path, f"{subject(parent, data)} needs the key '{key}'", hint=hint, on_key=True)


def _not_allowed(path: Path, data: Any, kind: str, written: Written) -> Problem:
    annotation = field_annotation(Definition, path, data)
    if kind == "union_tag_invalid":
        allowed = [str(tag) for section in sections(annotation) for tag in type_tags(section)]
        value = _value_at(path, data)["type"]
        path = (*path, "type")
    else:
        allowed = [str(option) for part in branches(annotation) for option in get_args(part)]
        value = _value_at(path, data)
    allowed = list(dict.fromkeys(allowed))
    close = did_you_mean(str(value), allowed)
    hint = f"did you mean '{close}'?" if close and close != str(value) else f"allowed: {', '.join(allowed)}"
    if str(value) in allowed:
        quoted = isinstance(value, str)
        hint = f"write {value} without quotes" if quoted else f'write "{value}" in quotes'
    return NotAllowed.problem(path, f"{key_of(path, data)} cannot be {shown(value, written(path))}", hint=hint)


def _out_of_range(kind: str, error: Mapping[str, Any], path: Path, data: Any, value: Any) -> Problem:
    field = field_at(Definition, path, data)
    unit = extra_of(field).get("unit") if field else None
    if kind in _LIMIT_WORDS:
        key, words = _LIMIT_WORDS[kind]
        limit = f"{words} {error['ctx'][key]}{f' ({unit})' if unit else ''}"
        return OutOfRange.problem(path, f"{key_of(path, data)} must be {limit}, not {value}")
    return OutOfRange.problem(path, f"{key_of(path, data)} must not be empty")


def _wrong_type(kind: str, path: Path, data: Any, value: Any, written: str | None) -> Problem:
    field = field_at(Definition, path, data)
    unit = extra_of(field).get("unit") if field else None
    annotation = field_annotation(Definition, path, data)
    if annotation is None and field is not None and is_free_mapping(field.annotation):
        wanted = "a text" if kind == "string_type" else "a text, a whole number, or true or false"
    else:
        wanted = _TYPE_WORDS.get(kind, "another kind of value")
    if unit and wanted in ("a whole number", "a number"):
        wanted += f" ({unit})"
    hint = None
    if (
        isinstance(value, str)
        and written == value
        and kind in ("int_type", "float_type", "bool_type")
        and _looks_like(value, kind)
    ):
        hint = f"remove the quotes: {value}"
    elif kind == "string_type" and isinstance(value, int | float | bool) and written:
        hint = f'put it in quotes: "{written}"'
    elif kind == "bool_type" and isinstance(value, str) and value.lower() in _YES_NO:
        hint = f"write {_YES_NO[value.lower()]}"
    elif kind == "list_type" and value is not None:
        hint = "write a list: [a, b], or one `- item` per line"
    return WrongType.problem(path, f"{key_of(path, data)} must be {wanted}, not {shown(value, written)}", hint=hint)


def _looks_like(value: str, kind: str) -> bool:
    if kind == "bool_type":
        return value in ("true", "false")
    try:
        float(value)
    except ValueError:
        return False
    return True


def shown(value: Any, written: str | None) -> str:
    """A value as the user wrote it, short."""
    if value is None:
        return "empty"
    if isinstance(value, str):
        text = written or value
        return f"'{text if len(text) <= 60 else text[:57] + '…'}'"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return written if written else str(value)
