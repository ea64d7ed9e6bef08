"""Plain data to the typed definition, reporting every problem and repairing what it can so that the rules run too."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from ..problems.problem import Problem
from ..words.suggestions import did_you_mean
from . import model_problems
from .kinds import Choice, Kind, ListOf, MappingOf, OneSection, Scalar, kind_of
from .model.definition import Definition
from .model.fields import Section, Setting
from .model_problems import Written
from .text.source import MissingVariable
from .text.values import resolve
from .walk import Path

_WITHIN = {"ge": operator.ge, "le": operator.le, "gt": operator.gt}


class Reading(Struct, frozen=True):
    """What was read.

    With problems, `definition` is the repaired file (or None when the file is no mapping): unknown keys are gone,
    invalid values are replaced. `replaced` holds the repaired paths; what rules say about them is not the user's doing.
    """

    definition: Definition | None
    problems: tuple[Problem, ...]
    replaced: tuple[Path, ...]


def _nothing(_: Path) -> None:
    return None


def read_model(data: Any, written: Written = _nothing, from_one_variable: Written = _nothing) -> Reading:
    """Validate plain data; never raises for bad input.

    `written` gives a value as its author wrote it, `from_one_variable` the text of one that is a variable and nothing
    else: its key says what that text means, whatever quotes are around it.
    """
    reader = _Reader(data, written, from_one_variable)
    definition = reader.value(OneSection((Definition,)), None, data, ())
    return Reading(
        definition if isinstance(definition, Definition) else None, tuple(reader.problems), tuple(reader.replaced)
    )


class _Invalid:
    """Marks a value that was reported and has to be replaced."""


_INVALID: Final = _Invalid()


class _Reader:
    """Goes through the data once: what is valid becomes the model, the rest a problem and a repair."""

    def __init__(self, data: Any, written: Written, from_one_variable: Written) -> None:
        self.problems: list[Problem] = []
        self.replaced: list[Path] = []
        self._data, self._written, self._from_one_variable = data, written, from_one_variable

    def value(self, kind: Kind, declared: Setting | None, value: Any, path: Path) -> Any:
        """The value as the model has it, or `_INVALID`. `declared` is the key that it is, or is in."""
        if isinstance(kind, Scalar):
            return self._scalar(kind, declared, value, path)
        if isinstance(value, MissingVariable):
            return self._invalid(model_problems.unset_variable(value, path, self._data))
        if isinstance(kind, Choice):
            meant = (kind.meant(each) for each in self._readings(value, path))
            option = next((each for each in meant if each is not None), None)
            return option if option is not None else self._not_allowed(kind.options, value, path)
        if isinstance(kind, ListOf) and isinstance(value, list):
            return [self._item(kind.item, declared, item, (*path, index)) for index, item in enumerate(value)]
        if isinstance(kind, MappingOf) and isinstance(value, Mapping):
            return self._entries(kind.value, declared, value, path)
        if isinstance(kind, OneSection):
            if isinstance(value, str) and kind.or_text:
                return value
            if isinstance(value, str) and (short := kind.classes[0].short_form) is not None:
                value = {short: value}
            if isinstance(value, Mapping):
                return self._one_section(kind, value, path)
        return self._wrong_type(kind, declared, value, path)

    # ------------------------------------------------------------ by kind

    def _scalar(self, kind: Scalar, declared: Setting | None, value: Any, path: Path) -> Any:
        value = next((each for each in self._readings(value, path) if type(each) in kind.accepted), value)
        if type(value) in kind.accepted:
            return value if kind.types != (float,) else self._number(kind, declared, value, path)
        if isinstance(value, MissingVariable):
            return value if kind.askable else self._invalid(model_problems.unset_variable(value, path, self._data))
        return self._wrong_type(kind, declared, value, path)

    def _readings(self, value: Any, path: Path) -> tuple[Any, ...]:
        """The value, and what else the variable may mean that it consists of."""
        text = self._from_one_variable(path)
        return (value,) if text is None else (value, text, resolve(text))

    def _number(self, kind: Scalar, declared: Setting | None, value: float, path: Path) -> Any:
        try:
            return float(value)
        except OverflowError:
            return self._wrong_type(kind, declared, value, path)

    def _item(self, kind: Kind, declared: Setting | None, item: Any, path: Path) -> Any:
        value = self.value(kind, declared, item, path)
        if value is not _INVALID:
            return value
        self.replaced.append(path)
        return _repaired(kind, _example_item(kind))

    def _entries(self, kind: Kind, declared: Setting | None, entries: Mapping[str, Any], path: Path) -> dict[str, Any]:
        read = {name: self.value(kind, declared, entry, (*path, name)) for name, entry in entries.items()}
        self.replaced += [(*path, name) for name, entry in read.items() if entry is _INVALID]
        return {name: entry for name, entry in read.items() if entry is not _INVALID}

    def _one_section(self, kind: OneSection, value: Mapping[Any, Any], path: Path) -> Any:
        section = kind.chosen(value)
        if section is not None:
            return self._section(section, value, path)
        if "type" not in value:
            return self._invalid(model_problems.missing_type(kind, path, self._data))
        tag, below = value["type"], (*path, "type")
        if isinstance(tag, MissingVariable):
            return self._invalid(model_problems.unset_variable(tag, below, self._data))
        return self._not_allowed(tuple(kind.by_type), tag, below)

    def _section(self, section: type[Section], written: Mapping[Any, Any], path: Path) -> Section:
        keys = section.declared_keys
        values: dict[str, Any] = {}
        explained = set()
        """Missing keys that a misspelt one beside them explains."""
        for key, value in written.items():
            declared = keys.get(key)
            if declared is None:
                explained.add(self._unknown_key(section, (*path, key)))
            elif value is not None or declared.is_required:  # `network:` with nothing below it is a key left out
                found = self._key(declared, value, (*path, key))
                if found is not _INVALID:
                    values[key] = found
        for key in section.required_keys:
            if key not in values:
                below = (*path, key)
                if key not in written and key not in explained:
                    self.problems.append(model_problems.missing_key(keys[key], below, self._data))
                self.replaced.append(below)
                values[key] = _repaired(kind_of(keys[key]), keys[key].example)
        return section(**values)

    def _key(self, declared: Setting, value: Any, path: Path) -> Any:
        kind = kind_of(declared)
        found = self.value(kind, declared, value, path)
        if found is not _INVALID and declared.limits:
            found = self._within_limits(declared, found, path)
        if found is _INVALID and not declared.is_required:
            self.replaced.append(path)
        return found

    # ------------------------------------------------------------ problems

    def _within_limits(self, declared: Setting, value: Any, path: Path) -> Any:
        for name, bound in declared.limits.items():
            if not (len(value) >= bound if name == "min_length" else _WITHIN[name](value, bound)):
                problem = model_problems.out_of_range(name, declared, value, path, self._data, self._written)
                return self._invalid(problem)
        return value

    def _unknown_key(self, section: type[Section], path: Path) -> str | None:
        """The key that was probably meant."""
        meant = None if path[-1] in section.removed_keys else did_you_mean(str(path[-1]), section.declared_keys)
        self.problems.append(model_problems.unknown_key(section, path, meant, self._data))
        self.replaced.append(path)
        return meant

    def _not_allowed(self, options: tuple[Any, ...], value: Any, path: Path) -> _Invalid:
        return self._invalid(model_problems.not_allowed(options, value, path, self._data, self._written))

    def _wrong_type(self, kind: Kind, declared: Setting | None, value: Any, path: Path) -> _Invalid:
        return self._invalid(model_problems.wrong_type(kind, declared, value, path, self._data, self._written))

    def _invalid(self, problem: Problem) -> _Invalid:
        self.problems.append(problem)
        return _INVALID


def _repaired(kind: Kind, example: Any) -> Any:
    """A declared example as the model has it; what it leaves open is repaired in turn."""
    if example is None:
        example = kind.options[0] if isinstance(kind, Choice) else "example"
    return _Reader(example, _nothing, _nothing).value(kind, None, example, ())


def _example_item(kind: Kind) -> Any:
    if not isinstance(kind, OneSection):
        return None
    section = kind.classes[0]
    return {name: section.declared_keys[name].example for name in section.required_keys}
