"""Frozen dataclasses that share their methods instead of compiling them for each class.

`dataclass(frozen=True)` generates and compiles six functions per class, about a millisecond; for more than a hundred
classes that was a sixth of `cycleforge build`. A record behaves the same: `dataclasses.fields`, `replace` and `asdict`
work, two records are equal when their class and their fields are, and nothing can be assigned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
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
        cls.__doc__ = cls.__name__  # otherwise dataclass generates it from the signature, which doubles the time
    made: Any = dataclass(init=False, repr=False, eq=False)(cls)
    declared = fields(made)
    made._record_fields = tuple(each.name for each in declared)
    made._record_names = frozenset(made._record_fields)
    made._record_defaults = {each.name: each.default for each in declared if each.default is not MISSING}
    made._record_factories = {
        each.name: each.default_factory for each in declared if each.default_factory is not MISSING
    }
    made._record_required = made._record_names - made._record_defaults.keys() - made._record_factories.keys()
    compared = [each.name for each in declared if each.compare]
    made._record_value = attrgetter(*compared) if compared else type
    for name, method in _METHODS.items():
        if name not in cls.__dict__:
            setattr(made, name, method)
    return cls


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def named_record(cls: type[Class]) -> type[Class]:
    """Make a class a record whose values are given by name, so that a subclass may add required fields."""
    return record(cls)


def computed_once(function: Callable[[Given], Result]) -> Callable[[Given], Result]:
    """Keep the result for the last argument, for callers that pass the same object one after the other.

    The argument is compared by identity, because comparing or hashing a whole definition takes longer than most
    results. Neither the argument nor the result may be changed.
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
