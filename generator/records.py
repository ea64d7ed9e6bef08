"""Frozen dataclasses whose methods are shared instead of compiled anew for each class.

`dataclass(frozen=True)` writes and compiles six functions per class, about a millisecond; with more than a hundred
classes that was a sixth of `cycleforge build`. A record behaves the same: `dataclasses.fields`, `replace` and `asdict`
work, two records are equal when their class and their fields are, and nothing can be assigned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from functools import wraps
from operator import attrgetter
from typing import Any, NoReturn, TypeVar, dataclass_transform

Class = TypeVar("Class")
Given = TypeVar("Given")
Result = TypeVar("Result")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[Class]) -> type[Class]:
    """Make a class a frozen dataclass: annotated names are its fields, in order."""
    if cls.__doc__ is None:
        cls.__doc__ = cls.__name__  # otherwise dataclass writes down the signature, which takes as long as the rest
    made: Any = dataclass(init=False, repr=False, eq=False)(cls)
    declared = fields(made)
    made._record_fields = tuple(each.name for each in declared)
    made._record_names = frozenset(made._record_fields)
    made._record_required = frozenset(each.name for each in declared if _is_required(each))
    made._record_defaults = {each.name: each.default for each in declared if each.default is not MISSING}
    made._record_factories = {
        each.name: each.default_factory for each in declared if each.default_factory is not MISSING
    }
    compared = [each.name for each in declared if each.compare]
    made._record_value = attrgetter(*compared) if compared else type
    for name, method in _METHODS.items():
        if name not in cls.__dict__:
            setattr(made, name, method)
    return cls


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def named_record(cls: type[Class]) -> type[Class]:
    """A record whose values are given by name, so that a class below it may add what is required."""
    return record(cls)


def computed_once(function: Callable[[Given], Result]) -> Callable[[Given], Result]:
    """Keep the result for the last object that the function was asked about, for callers that ask one after the other.

    The object is compared by identity, because to compare or hash a whole definition takes longer than most answers.
    Neither the object nor the result may be changed.
    """
    last: tuple[Given, Result] | None = None

    @wraps(function)
    def kept(about: Given) -> Result:
        nonlocal last
        known = last
        if known is None or known[0] is not about:
            last = known = (about, function(about))
        return known[1]

    return kept


def _is_required(declared: Field[Any]) -> bool:
    return declared.default is MISSING and declared.default_factory is MISSING


def _initialise(self: Any, *values: Any, **named: Any) -> None:
    cls = type(self)
    given = named
    if values:
        given = dict(zip(cls._record_fields, values, strict=False))
        given.update(named)
    # A value too many, or a name given twice, makes fewer names than values.
    if len(given) != len(values) + len(named) or not cls._record_names.issuperset(given):
        raise TypeError(f"{cls.__name__}() takes each of {', '.join(cls._record_fields)} once, and nothing else")
    if not given.keys() >= cls._record_required:
        raise TypeError(f"{cls.__name__}() lacks {', '.join(sorted(cls._record_required - given.keys()))}")
    for name, make in cls._record_factories.items():
        if name not in given:
            given[name] = make()
    mine = self.__dict__
    mine.update(cls._record_defaults)
    mine.update(given)


def _represented(self: Any) -> str:
    shown = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({shown})"


def _is_equal(self: Any, other: Any) -> Any:
    if type(self) is not type(other):
        return NotImplemented
    value = self._record_value
    return value(self) == value(other)


def _hashed(self: Any) -> int:
    return hash((type(self), self._record_value(self)))


def _refuse_assignment(_: Any, name: str, __: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(_: Any, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


_METHODS = {
    "__init__": _initialise,
    "__repr__": _represented,
    "__eq__": _is_equal,
    "__hash__": _hashed,
    "__setattr__": _refuse_assignment,
    "__delattr__": _refuse_deletion,
}
