"""Plain data as YAML text in block style: the bytes that PyYAML writes, in less than half its time.

Structure and simple words are written here. A value whose quoting needs YAML's rules is written by PyYAML, and so is
the whole text where a key or a value is out of the ordinary.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any

_PLAIN = re.compile(
    r"(?=[A-Za-z/]"  # as no number begins
    r"|[0-9].*[g-swyG-SWY/|=@,]"  # a sign that is in no number and no date
    r"|[0-9]+\.[0-9]+\.[0-9])"  # two dots, as in a version
    r"[!-~](?:[!-9;-~]| (?![# ])|:(?! |$))*"  # ASCII without `: ` and ` #`
)
"""Text that needs no quotes."""
_NUMBER = re.compile(r"0|[1-9][0-9]*")
_DECIMAL = re.compile(r"-?[0-9]+\.[0-9]+")
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,99}")
_LONGEST = 10_000
"""Characters of a value that PyYAML folds nowhere."""
_MEANS_SOMETHING = frozenset(
    spelling
    for word in ("yes", "no", "true", "false", "on", "off", "null")
    for spelling in (word, word.capitalize(), word.upper())
)
"""Words that YAML reads as a truth value or as nothing."""


class _OutOfTheOrdinaryError(Exception):
    """Not an error of the data: PyYAML writes it."""


def yaml_text(value: dict[str, Any]) -> str:
    """YAML without aliases and without line folding, so that a diff shows one line per changed value."""
    try:
        return "".join(_mapping(value, "", "")) if value else "{}\n"
    except _OutOfTheOrdinaryError:
        return _by_library(value)


def _mapping(value: dict[str, Any], first: str, indent: str) -> Iterator[str]:
    """Lines of a mapping; `first` is before its first key, `indent` before the others."""
    for key, item in value.items():
        yield f"{first}{_key(key)}:"
        first = indent
        if isinstance(item, dict) and item:
            yield "\n"
            yield from _mapping(item, f"{indent}  ", f"{indent}  ")
        elif isinstance(item, list) and item:
            yield "\n"
            yield from _sequence(item, indent, indent)
        else:
            yield f" {_scalar(item)}\n"


def _sequence(value: list[Any], first: str, indent: str) -> Iterator[str]:
    for item in value:
        if isinstance(item, dict) and item:
            yield from _mapping(item, f"{first}- ", f"{indent}  ")
        elif isinstance(item, list) and item:
            yield from _sequence(item, f"{first}- ", f"{indent}  ")
        else:
            yield f"{first}- {_scalar(item)}\n"
        first = indent


def _key(key: object) -> str:
    if isinstance(key, str) and _KEY.fullmatch(key) and key not in _MEANS_SOMETHING:
        return key
    raise _OutOfTheOrdinaryError


def _scalar(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float):
        written = repr(value)
        return written if _DECIMAL.fullmatch(written) else _quoted(value)
    if value in ({}, []):
        return "{}" if value == {} else "[]"
    raise _OutOfTheOrdinaryError


def _text(value: str) -> str:
    if len(value) > _LONGEST:
        raise _OutOfTheOrdinaryError
    if _PLAIN.fullmatch(value) and not value.endswith(" ") and value not in _MEANS_SOMETHING:
        return value
    if not value or _NUMBER.fullmatch(value):
        return f"'{value}'"
    if value.isprintable():
        return _quoted(value)
    raise _OutOfTheOrdinaryError


@lru_cache(maxsize=4096)
def _quoted(value: str | float) -> str:
    """One value as PyYAML writes it behind a key."""
    return _by_library({"k": value}).removeprefix("k: ").removesuffix("\n")


def _by_library(value: dict[str, Any]) -> str:
    import yaml

    text: str = yaml.dump(
        value, Dumper=_dumper(), sort_keys=False, allow_unicode=True, width=100000, default_flow_style=False
    )
    return text


@cache
def _dumper() -> Any:
    import yaml

    dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

    class WithoutAliases(dumper):  # type: ignore[misc]
        def ignore_aliases(self, data: Any) -> bool:
            return True

    return WithoutAliases
