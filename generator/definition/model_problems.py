"""What can be wrong with keys and types of a definition: the rules E01xx, and what they say of a key or value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..problems.problem import Problem
from ..problems.rule import Rule
from ..words.suggestions import did_you_mean
from .kinds import Kind, ListOf, OneSection, Scalar
from .model.fields import Section, Setting
from .text.interpolation import one_variable
from .text.source import MissingVariable
from .walk import Path, key_of, subject

_FEW = 12
_YES_NO = {"yes": "true", "on": "true", "no": "false", "off": "false"}
LIMIT_WORDS = {"ge": "at least", "le": "at most", "gt": "more than"}

Written = Callable[[Path], str | None]
"""A single value as its author wrote it: messages neither reformat it nor print what came from the environment."""


def unknown_key(section: type[Section], path: Path, meant: str | None, data: Any) -> Problem:
    """A key that the section does not have; `meant` is the one that it was probably meant to be."""
    parent, key = path[:-1], str(path[-1])
    if key in section.removed_keys:
        text = f"{subject(parent, data)} has no key '{key}' any more"
        return UnknownKey.problem(path, text, hint=section.removed_keys[key], on_key=True)
    hint = f"did you mean '{meant}'?" if meant else None
    if hint is None and len(section.declared_keys) <= _FEW:
        hint = f"keys here: {', '.join(section.declared_keys)}"
    return UnknownKey.problem(path, f"{subject(parent, data)} has no key '{key}'", hint=hint, on_key=True)


def missing_key(declared: Setting, path: Path, data: Any) -> Problem:
    key, example = path[-1], declared.example
    hint = f"for example {key}: {example}" if isinstance(example, str | int) else None
    return _missing(path, hint, data)


def missing_type(kind: OneSection, path: Path, data: Any) -> Problem:
    """The section at `path` does not say which of several it is."""
    return _missing((*path, "type"), f"type: {' | '.join(kind.by_type)}", data)


def _missing(path: Path, hint: str | None, data: Any) -> Problem:
    return MissingKey.problem(path, f"{subject(path[:-1], data)} needs the key '{path[-1]}'", hint=hint, on_key=True)


def unset_variable(variable: MissingVariable, path: Path, data: Any) -> Problem:
    """A variable that is not set stands where the deployment cannot ask for a value."""
    return UnsetVariable.problem(
        path,
        f"{key_of(path, data)} reads the environment variable {variable.name}, which is not set",
        hint=f"export {variable.name}=…, or write ${{{variable.name}:-default}}",
    )


def not_allowed(options: tuple[Any, ...], value: Any, path: Path, data: Any, written: Written) -> Problem:
    allowed = [str(option) for option in options]
    close = did_you_mean(str(value), allowed)
    hint = f"did you mean '{close}'?" if close and close != str(value) else f"allowed: {', '.join(allowed)}"
    if str(value) in allowed:
        hint = f"write {value} without quotes" if isinstance(value, str) else f'write "{value}" in quotes'
    variable = _variable(path, written)
    what = f"what {variable} holds" if variable else shown(value, written(path))
    return NotAllowed.problem(path, f"{key_of(path, data)} cannot be {what}", hint=hint)


def out_of_range(limit: str, declared: Setting, value: Any, path: Path, data: Any, written: Written) -> Problem:
    """A value that passes the limit of this name."""
    if limit not in LIMIT_WORDS:
        return OutOfRange.problem(path, f"{key_of(path, data)} must not be empty")
    bound = f"{LIMIT_WORDS[limit]} {declared.limits[limit]}{_in_brackets(declared.unit)}"
    variable = _variable(path, written)
    what = f": {variable} holds another number" if variable else f", not {written(path) or value}"
    return OutOfRange.problem(path, f"{key_of(path, data)} must be {bound}{what}")


def wrong_type(kind: Kind, declared: Setting | None, value: Any, path: Path, data: Any, written: Written) -> Problem:
    """A value that is of another kind than the key wants."""
    types = kind.types if isinstance(kind, Scalar) else ()
    wanted = kind.wanted
    if declared is not None and types in ((int,), (float,)):
        wanted += _in_brackets(declared.unit)
    text = written(path)
    hint = None
    if isinstance(value, str) and text == value and _looks_like(value, types):
        hint = f"remove the quotes: {value}"
    elif str in types and isinstance(value, int | float) and text:
        hint = f'put it in quotes: "{text}"'
    elif types == (bool,) and isinstance(value, str) and value.lower() in _YES_NO:
        hint = f"write {_YES_NO[value.lower()]}"
    elif isinstance(kind, ListOf) and value is not None:
        hint = "write a list: [a, b], or one `- item` per line"
    variable = _variable(path, written)
    what = f": {variable} does not hold {kind.wanted}" if variable else f", not {shown(value, text)}"
    return WrongType.problem(path, f"{key_of(path, data)} must be {wanted}{what}", hint=hint)


def _variable(path: Path, written: Written) -> str | None:
    """Name the variable that the value consists of; the variable's own value is never printed."""
    text = written(path)
    return one_variable(text) if text else None


def _in_brackets(unit: str | None) -> str:
    return f" ({unit})" if unit else ""


def _looks_like(value: str, types: tuple[type, ...]) -> bool:
    """Return True when the text would have the type without its quotes."""
    if types == (bool,):
        return value in ("true", "false")
    if types not in ((int,), (float,)):
        return False
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


class ModelRule(Rule):
    """A rule whose problems the model finds while it reads."""

    stage = "model"
    source = "docs/definition.md"


class UnknownKey(ModelRule):
    id = "E0101"
    summary = "The definition has a key that CycleForge does not know."
    why = "An unknown key would be ignored; most often it is misspelt."
    fix = "Correct or remove the key; `cycleforge schema` and docs/definition.md list all keys."


class MissingKey(ModelRule):
    id = "E0102"
    summary = "A required key is missing."
    why = "There is no safe default for it."
    fix = "Add the key."


class UnsetVariable(ModelRule):
    id = "E0103"
    summary = "The definition reads an environment variable that is not set."
    why = "Only values that the deployment can ask for, such as the SSH key, can be left open."
    fix = "Set the variable, or give a default: ${NAME:-default}."


class WrongType(ModelRule):
    id = "E0104"
    summary = "A value has the wrong type."
    why = "Values are not converted silently: a quoted number is a text."
    fix = "Write the value in the type that the message names."


class NotAllowed(ModelRule):
    id = "E0105"
    summary = "A value is not one of the allowed values."
    why = "The key accepts a fixed set of values."
    fix = "Use one of the values that the message lists."


class OutOfRange(ModelRule):
    id = "E0106"
    summary = "A number, text or list is too small or too large."
    why = "Azure, CycleCloud or Slurm refuses values outside the limits."
    fix = "Choose a value within the limits that the message names."
