"""The catalogue's data files, each of a declared type; nothing outside this package opens them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar

import msgspec

FOLDER = Path(__file__).resolve().parent
Content = TypeVar("Content")
Figure: TypeAlias = int | float
"""A number as the file writes it: 460 is printed as 460."""


class Fact(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Figures that stand together, and what is said of them to readers."""

    note: str | None = None
    meaning: str | None = None
    unit: str | None = None


class Row(Fact, frozen=True, kw_only=True):
    """Figures whose sources are keys of `sources.json`, or addresses."""

    source: tuple[str, ...] = ()


class Cited(Fact, frozen=True, kw_only=True):
    """Figures whose source is said in words or by an address."""

    source: str = ""


class Single(Fact, frozen=True, kw_only=True):
    """Base of groups that hold one thing; their sources are in either form."""

    source: tuple[str, ...] | str = ()


class Value(Single, Generic[Content], frozen=True, kw_only=True):
    value: Content


class Values(Single, Generic[Content], frozen=True, kw_only=True):
    values: Content


class Rows(Single, Generic[Content], frozen=True, kw_only=True):
    rows: Content


class Keys(Single, Generic[Content], frozen=True, kw_only=True):
    keys: Content


def read(name: str, kind: type[Content]) -> Content:
    """The content of one file, for example `limits.json`."""
    return msgspec.json.decode((FOLDER / name).read_bytes(), type=kind)


def table(name: str, kind: type[Content]) -> Callable[[], Content]:
    """What reads `<name>.json`, once."""

    @cache
    def content() -> Content:
        return read(f"{name}.json", kind)

    return content
