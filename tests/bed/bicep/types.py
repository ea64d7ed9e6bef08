"""Types of parameters and outputs: whether Azure takes a value.

Source: https://learn.microsoft.com/azure/azure-resource-manager/bicep/data-types
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .values import EvaluationError, Late

_PYTHON: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "int": int,
    "bool": bool,
    "object": dict,
    "array": list,
}


@dataclass(frozen=True)
class Type:
    """A type; `refusal` says why a value is not of it."""

    def refusal(self, value: Any, types: Mapping[str, Type]) -> str | None:
        """None for a value that fits. What is known only later is taken as it is."""
        raise NotImplementedError


@dataclass(frozen=True)
class Named(Type):
    """A type of Bicep, or one that the file declares."""

    name: str

    def refusal(self, value: Any, types: Mapping[str, Type]) -> str | None:
        if self.name in types:
            return types[self.name].refusal(value, types)
        if self.name == "any" or isinstance(value, Late):
            return None
        if self.name not in _PYTHON:
            raise EvaluationError(f"the type {self.name} is not known")
        fits = isinstance(value, _PYTHON[self.name]) and (self.name == "bool" or not isinstance(value, bool))
        return None if fits else f"{value!r} is not of the type {self.name}"


@dataclass(frozen=True)
class Only(Type):
    """One value, for example `'server'`."""

    content: Any

    def refusal(self, value: Any, types: Mapping[str, Type]) -> str | None:
        return None if isinstance(value, Late) or value == self.content else f"{value!r} is not {self.content!r}"


@dataclass(frozen=True)
class AnyOf(Type):
    """`a | b`."""

    options: tuple[Type, ...]

    def refusal(self, value: Any, types: Mapping[str, Type]) -> str | None:
        refusals = [option.refusal(value, types) for option in self.options]
        return None if None in refusals else "; ".join(each or "" for each in refusals)


@dataclass(frozen=True)
class Nullable(Type):
    """`type?`."""

    inner: Type

    def refusal(self, value: Any, types: Mapping[str, Type]) -> str | None:
        return None if value is None else self.inner.refusal(value, types)


@dataclass(frozen=True)
class ListOf(Type):
    """`type[]`."""

    inner: Type

    def refusal(self, value: Any, types: Mapping[str, Type]) -> str | None:
        if isinstance(value, Late):
            return None
        if not isinstance(value, list):
            return f"{value!r} is not a list"
        refusals = (self.inner.refusal(item, types) for item in value)
        return next((refusal for refusal in refusals if refusal), None)


@dataclass(frozen=True)
class Shape(Type):
    """`{ name: type }`; `others` is the type of further properties, None where there are none."""

    properties: tuple[tuple[str, Type], ...]
    others: Type | None

    def refusal(self, value: Any, types: Mapping[str, Type]) -> str | None:
        if isinstance(value, Late):
            return None
        if not isinstance(value, dict):
            return f"{value!r} is not an object"
        known = dict(self.properties)
        for name, expected in known.items():
            if refusal := expected.refusal(value.get(name), types):
                return f"{name}: {refusal}"
        for name in value.keys() - known.keys():
            if self.others is None:
                return f"{name!r} is not a property"
            if refusal := self.others.refusal(value[name], types):
                return f"{name}: {refusal}"
        return None
