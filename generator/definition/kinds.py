"""What a key accepts, read once from the annotation of its field: for reading, messages, schema and reference."""

from __future__ import annotations

import types
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin

from .model.fields import Section, Setting
from .text.source import MissingVariable

_WORDS = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}


class Scalar:
    """A single value of one of these types, without conversion; a whole number is a number, too.

    `askable`: a variable that is not set is a value as well.
    """

    def __init__(self, types: tuple[type, ...], *, askable: bool) -> None:
        self.types = types
        self.accepted = frozenset((*types, int) if float in types else types)
        self.askable = askable
        *first, last = (_WORDS[each] for each in types)
        self.wanted = f"{', '.join(first)}, or {last}" if first else last


class Choice:
    """One of these values. A text of digits, such as a zone, may as well be written as the number."""

    wanted = "one of the allowed values"

    def __init__(self, options: tuple[Any, ...]) -> None:
        self.options = options
        self.numbers = tuple(int(option) for option in options if isinstance(option, str) and option.isdecimal())
        self._meant = {(type(option), option): option for option in options}
        self._meant |= {(int, number): str(number) for number in self.numbers}

    def meant(self, value: Any) -> Any:
        """The option that a value stands for, of the same type but for such numbers; neither true nor 1.0 is 1.

        None: none of them.
        """
        return self._meant.get((type(value), value)) if type(value) in (str, int) else None


class ListOf:
    wanted = "a list"

    def __init__(self, item: Kind) -> None:
        self.item = item


class MappingOf:
    """A mapping whose keys the user chooses."""

    wanted = "a mapping"

    def __init__(self, value: Kind) -> None:
        self.value = value


class OneSection:
    """A section; where there are several, its key `type` says which. `or_text`: a text will do as well."""

    def __init__(self, classes: tuple[type[Section], ...], *, or_text: bool = False) -> None:
        self.classes = classes
        self.or_text = or_text
        self.by_type = {tag: section for section in classes for tag in type_tags(section)} if len(classes) > 1 else {}
        self.wanted = "a text or a mapping" if self.may_be_text else "a mapping"

    @property
    def may_be_text(self) -> bool:
        """True when a text is accepted: as the value itself, or as the short form of the section."""
        return self.or_text or self.classes[0].short_form is not None

    def chosen(self, value: Any) -> type[Section] | None:
        """The section that a mapping selects by its `type`; the only one, or None when nothing decides."""
        if len(self.classes) == 1:
            return self.classes[0]
        tag = value.get("type") if isinstance(value, Mapping) else None
        return self.by_type.get(tag) if isinstance(tag, str) else None


Kind: TypeAlias = Scalar | Choice | ListOf | MappingOf | OneSection


@cache
def kind_of(declared: Setting) -> Kind:
    """Return what a key accepts. TypeError for an annotation without a kind."""
    return _kind(declared.annotation)


def sections(kind: Kind | None) -> tuple[type[Section], ...]:
    """The section classes that a value may be, or that the items of a list may be."""
    if isinstance(kind, ListOf):
        kind = kind.item
    return kind.classes if isinstance(kind, OneSection) else ()


def type_tags(section: type[Section]) -> tuple[str, ...]:
    """The values of the key `type` that select this section; empty when it has none."""
    declared = section.declared_keys.get("type")
    return get_args(declared.annotation) if declared is not None else ()


def _kind(annotation: Any) -> Kind:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return Choice(arguments)
    if origin is list:
        return ListOf(_kind(arguments[0]))
    if origin is dict:
        return MappingOf(_kind(arguments[1]))
    parts = arguments if origin in (Union, types.UnionType) else (annotation,)
    parts = tuple(part for part in parts if part is not type(None))
    if len(parts) == 1 and parts != (annotation,):
        return _kind(parts[0])
    classes = tuple(part for part in parts if isinstance(part, type) and issubclass(part, Section))
    if classes and {*parts} - {*classes} <= {str}:
        return OneSection(classes, or_text=str in parts)
    scalars = tuple(part for part in parts if part is not MissingVariable)
    if not scalars or any(part not in _WORDS for part in scalars):
        raise TypeError(f"no kind of value stands for the annotation {annotation}")
    return Scalar(scalars, askable=scalars != parts)
