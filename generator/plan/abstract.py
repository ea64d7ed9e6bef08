"""Declared types with abstract methods, of which each kind is a class."""

from __future__ import annotations

from abc import ABCMeta
from typing import Any

from msgspec import StructMeta


class AbstractStruct(StructMeta, ABCMeta):
    """The metaclass of such a Struct."""

    def default(cls, name: str) -> Any:
        """Return the default of a field, which is no attribute of the class."""
        return dict(zip(reversed(cls.__struct_fields__), reversed(cls.__struct_defaults__), strict=False))[name]
