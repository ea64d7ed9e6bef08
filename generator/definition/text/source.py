"""A definition's text as plain data, with line and column of every key and value.

Plain scalars follow the core schema of YAML 1.2: `no`, `on`, `12:30`, `0755`, `1_000` and dates stay text. Whatever is
wrong becomes a problem with a place; `load` raises nothing for bad input.
Source: https://yaml.org/spec/1.2.2/#103-core-schema
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ...problems.problem import KeyPath, Place, Problem
from .rules import EmptyFile, ForbiddenCharacter, NotAMapping, NotUtf8, TooLarge
from .tree import LINE_BREAK, place_at, read_tree
from .values import KINDS, MissingVariable, Reader, TooMuchError, VariableUse

__all__ = ["MAX_BYTES", "MissingVariable", "Source", "VariableUse", "load"]

MAX_BYTES = 1024 * 1024
_CONTROL = re.compile("[^\t\n\r\x20-\x7e]")
"""What YAML refuses within ASCII. The whole pattern takes longer to compile than a definition to be read."""
_FORBIDDEN = "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|\ufeff"


@dataclass(frozen=True)
class Source:
    """What was read. `data` is None when the file could not be understood at all."""

    filename: str
    lines: tuple[str, ...]
    """The text as it is in the file; variables are not filled in, so no secret of the environment is here."""
    data: dict[str, Any] | None
    problems: tuple[Problem, ...]
    variables: tuple[VariableUse, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Values that variables were filled in with, by name; may be secret, for `problems.sorting` only."""
    _keys: Mapping[KeyPath, Place] = field(default_factory=dict, repr=False)
    _values: Mapping[KeyPath, Place] = field(default_factory=dict, repr=False)
    _written: Mapping[KeyPath, str] = field(default_factory=dict, repr=False)
    _from_one_variable: Mapping[KeyPath, str] = field(default_factory=dict, repr=False)

    def position(self, path: KeyPath, *, on_key: bool = False) -> Place:
        """Where a value (or its key) stands; for what is not in the file, its nearest section."""
        if on_key and path in self._keys:
            return self._keys[path]
        if path in self._values:
            return self._values[path]
        while path:
            path = path[:-1]
            if path in self._keys:
                return self._keys[path]
            if path in self._values:
                return self._values[path]
        return Place(1, 1, 1)

    def written(self, path: KeyPath) -> str | None:
        """A single value as its author wrote it, without quotes and with `${NAME}` unfilled; None for the rest.

        Messages use this: it keeps `8.10` from becoming 8.1, and values of the environment out of sight.
        """
        return self._written.get(path)

    def from_one_variable(self, path: KeyPath) -> str | None:
        """The text of a value that is one variable and nothing else; the key decides whether it is text or a number."""
        return self._from_one_variable.get(path)

    def is_from_environment(self, path: KeyPath) -> bool:
        """Return True when a variable is part of the value, which then may be secret and must not be shown."""
        return path in self._filled_in

    def is_doubtful(self, path: KeyPath) -> bool:
        """Return True when this value already has a problem, which a second one would only repeat."""
        return bool(path) and path in self._doubtful

    @cached_property
    def _filled_in(self) -> frozenset[KeyPath]:
        return frozenset(use.path for use in self.variables)

    @cached_property
    def _doubtful(self) -> frozenset[KeyPath]:
        return frozenset(each.path for each in self.problems)


def load(text: str | bytes, filename: str, env: Mapping[str, str] | None) -> Source:
    """Read a definition. `env` fills in variables; None leaves `$` alone, for files that we wrote ourselves."""
    if len(text) > MAX_BYTES:
        message = f"the file is larger than {MAX_BYTES:,} bytes"
        return _refused(filename, (), TooLarge.problem((), message, place=Place(1, 1, 1)))
    if isinstance(text, bytes):
        try:
            decoded = text.decode("utf-8")
        except UnicodeDecodeError as error:
            return _not_utf8(text, error, filename)
    else:
        decoded = text
    return _load(decoded.removeprefix("\ufeff"), filename, env)


def _load(text: str, filename: str, env: Mapping[str, str] | None) -> Source:
    lines = tuple(LINE_BREAK.split(text))
    if lines[-1] == "":
        lines = lines[:-1]
    characters = tuple(_forbidden(text))
    if characters:
        return _refused(filename, lines, *characters)
    tree = read_tree(text, lines)
    if tree.is_empty:
        hint = "`cycleforge init` writes a commented definition"
        return _refused(
            filename, lines, EmptyFile.problem((), "the file holds no definition", hint, place=Place(1, 1, 1))
        )
    reader = Reader(text, env)
    if tree.root is None:
        return _refused(filename, lines, *tree.problems)
    try:
        data = reader.value(tree.root, ())
    except TooMuchError as error:
        return _refused(filename, lines, *tree.problems, *reader.problems, error.problem)
    problems = (*tree.problems, *reader.problems)
    if not isinstance(data, dict):
        message = f"the top of a definition is a mapping of keys to values, this is {KINDS.get(type(data), 'text')}"
        place = reader.values.get((), Place(1, 1, 1))
        return _refused(
            filename,
            lines,
            *problems,
            NotAMapping.problem((), message, "begin with `name: …`", place=place),
        )
    used = {use.name: value for use in reader.variables if (value := (env or {}).get(use.name))}
    return Source(
        filename, lines, data, problems, tuple(reader.variables), used, reader.keys, reader.values, reader.written,
        reader.from_one_variable,
    )  # fmt: skip


def _refused(filename: str, lines: tuple[str, ...], *problems: Problem) -> Source:
    return Source(filename, lines, None, problems)


def _not_utf8(text: bytes, error: UnicodeDecodeError, filename: str) -> Source:
    before = text[: error.start].decode("utf-8")
    lines = LINE_BREAK.split(before)
    place = Place(len(lines), len(lines[-1]) + 1, len(lines[-1]) + 2)
    is_wide = text.startswith((b"\xff\xfe", b"\xfe\xff"))
    message = "the file is UTF-16, not UTF-8" if is_wide else f"byte 0x{text[error.start]:02x} is not UTF-8 text"
    shown = tuple(LINE_BREAK.split(text.decode("utf-8", "replace")))
    return _refused(filename, shown, NotUtf8.problem((), message, "save the file as UTF-8", place=place))


def _forbidden(text: str) -> Iterator[Problem]:
    """Control characters, at most five: a binary file has thousands."""
    pattern = _CONTROL if text.isascii() else re.compile(_FORBIDDEN)
    for count, match in enumerate(pattern.finditer(text)):
        if count == 5:
            break
        message = f"the character U+{ord(match[0]):04X} is not allowed in YAML"
        yield ForbiddenCharacter.problem((), message, "delete it", place=place_at(text, match.start(), 1))
