"""Reader of CycleCloud's template format: sections ranked by brackets, attributes, comments, with line numbers.

    [cluster NAME]
      [[nodearray NAME]]
      Attribute = value            # indentation is free
        [[[configuration prefix]]]
        key := expression

Names of sections and keys are compared without case.
Source: https://learn.microsoft.com/azure/cyclecloud/cluster-references/cluster-template-reference
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from msgspec import Struct

from ..problems.problem import Place, Problem
from .expressions import Constant, ExpressionError
from .rules import BadExpression, BracketsDoNotMatch, OpenText, OutsideOfSections, UnreadableLine, WrongRank
from .values import AttributeValue, read_expression, read_value

_HEADER = re.compile(r"(\[+)([^\[\]]*)(\]+)\s*(?:#.*)?")
_ATTRIBUTE = re.compile(r"([^\s:=\[\]\"'`#]+)\s*(:=|=)\s*(.*)", re.DOTALL)
_MULTILINE = "'''"
_BROKEN_HEADER = re.compile(r"(\[+)([^\[\]#]*)")
"""What can be told of a section whose brackets do not match."""
_SHOWN = 60
_DEEPEST = 8
"""Highest rank of a section that is read; CycleCloud has four."""


class Attribute(Struct, frozen=True):
    """`name = value` at a line; the places are those of the name and of the value's first line."""

    name: str
    value: AttributeValue
    place: Place
    value_place: Place

    @property
    def line(self) -> int:
        return self.place.line


class Section(Struct, frozen=True):
    """A section, what it sets and what is below it. `kind` is in lower case."""

    kind: str
    name: str
    rank: int
    place: Place
    """What is between the brackets."""
    attributes: tuple[Attribute, ...] = ()
    sections: tuple[Section, ...] = ()

    @property
    def line(self) -> int:
        return self.place.line

    def walk(self) -> Iterator[Section]:
        """This section and everything below it, in the order of the file."""
        yield self
        for section in self.sections:
            yield from section.walk()

    def attribute(self, name: str) -> Attribute | None:
        """The last attribute of that name, which is the one that counts."""
        wanted = name.lower()
        return next((found for found in reversed(self.attributes) if found.name.lower() == wanted), None)

    def of_kind(self, *kinds: str) -> tuple[Section, ...]:
        """Direct subsections of some kinds."""
        return tuple(section for section in self.sections if section.kind in kinds)


class Template(Struct, frozen=True):
    sections: tuple[Section, ...]

    def walk(self) -> Iterator[Section]:
        """Every section in the order of the file."""
        for section in self.sections:
            yield from section.walk()

    @property
    def clusters(self) -> tuple[Section, ...]:
        return tuple(section for section in self.sections if section.kind == "cluster")

    @property
    def parameters(self) -> tuple[Section, ...]:
        """`parameter` sections of any rank."""
        return tuple(section for section in self.walk() if section.kind == "parameter")


@dataclass
class _Open:
    kind: str
    name: str
    rank: int
    place: Place
    attributes: list[Attribute] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)

    def close(self) -> Section:
        attributes, sections = tuple(self.attributes), tuple(self.sections)
        return Section(self.kind, self.name, self.rank, self.place, attributes, sections)


def read(text: str) -> tuple[Template, tuple[Problem, ...]]:
    """A template and everything in it that cannot be read; reading continues in the next line."""
    reader = _Reader(text)
    return reader.read(), tuple(reader.problems)


def lines_of(text: str) -> list[str]:
    """Only "\\n" and "\\r\\n" end a line; splitlines() would also cut at characters that may be in a value."""
    return [line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n")]


class _Reader:
    def __init__(self, text: str) -> None:
        self.problems: list[Problem] = []
        self._lines = lines_of(text)
        self._at = 0
        self._root = _Open("", "", 0, Place(1, 1, 1))
        self._stack = [self._root]

    def read(self) -> Template:
        while self._at < len(self._lines):
            number, line = self._at + 1, self._lines[self._at].strip()
            self._at += 1
            if not line or line.startswith("#"):
                continue
            if line.startswith("["):
                self._open(line, number)
            else:
                self._assign(line, number)
        self._close_down_to(0)
        return Template(tuple(self._root.sections))

    def _close_down_to(self, rank: int) -> None:
        while self._stack[-1].rank > rank:
            closed = self._stack.pop().close()
            self._stack[-1].sections.append(closed)

    def _place(self, number: int, part: str, *, after: int = 0) -> Place:
        """Of a part of a line, looked for from a column on."""
        column = self._lines[number - 1].find(part, after) + 1
        return Place(number, max(column, 1), max(column, 1) + max(len(part), 1))

    def _open(self, line: str, number: int) -> None:
        match = _HEADER.fullmatch(line)
        place = self._place(number, line)
        if match is None or len(match.group(1)) != len(match.group(3)):
            shown = line if len(line) <= _SHOWN else line[:_SHOWN] + "…"
            self.problems.append(BracketsDoNotMatch.problem((), f"the brackets of {shown!r} do not match", place=place))
            match = _BROKEN_HEADER.match(line)
            if match is None:
                return
        rank = len(match.group(1))
        inside = match.group(2).strip()
        kind, _, name = inside.partition(" ")
        if not kind:
            text = "a section needs a kind, as in [cluster NAME]"
            self.problems.append(UnreadableLine.problem((), text, place=place))
            return
        if rank > _DEEPEST:
            text = f"a section of rank {rank}; there are none below rank {_DEEPEST}"
            self.problems.append(WrongRank.problem((), text, place=place))
            return
        self._close_down_to(rank - 1)
        if self._stack[-1].rank != rank - 1:
            above = self._stack[-1].rank
            where = f"one of rank {above}" if above else "none"
            text = f"a section of rank {rank} cannot be in {where}"
            self.problems.append(WrongRank.problem((), text, f"write {rank - 1} brackets above it", place=place))
        self._stack.append(_Open(kind.lower(), name.strip(), rank, self._place(number, inside)))

    def _assign(self, line: str, number: int) -> None:
        match = _ATTRIBUTE.fullmatch(line)
        if match is None:
            text = f"expected a section or 'Attribute = value', found {line[:40]!r}"
            self.problems.append(UnreadableLine.problem((), text, place=self._place(number, line)))
            return
        name, operator, text = match.groups()
        place = self._place(number, name)
        value_place = self._place(number, text, after=place.end_column - 1 + len(operator)) if text else place
        if self._stack[-1] is self._root:
            message = f"attribute {name!r} is outside of any section"
            self.problems.append(OutsideOfSections.problem((), message, place=place))
        try:
            if operator == ":=":
                value = read_expression(text)
            elif text.startswith(_MULTILINE):
                value = Constant(self._multiline(number, value_place))
            else:
                value = read_value(text)
        except ExpressionError as error:
            self.problems.append(BadExpression.problem((), f"attribute {name!r}: {error}", place=value_place))
            return
        if self._stack[-1] is not self._root:
            self._stack[-1].attributes.append(Attribute(name, value, place, value_place))

    def _multiline(self, number: int, place: Place) -> str:
        """Text up to the closing quotes, which must end their line; the lines between are kept as they stand."""
        _, _, rest = self._lines[number - 1].partition(_MULTILINE)
        collected: list[str] = []
        while _MULTILINE not in rest:
            if self._at == len(self._lines):
                text = f"the text that begins with {_MULTILINE} is not closed"
                self.problems.append(OpenText.problem((), text, f"end its last line with {_MULTILINE}", place=place))
                self._at = number
                return ""
            collected.append(rest)
            rest = self._lines[self._at]
            self._at += 1
        last, _, after = rest.partition(_MULTILINE)
        if after.strip():
            text = f"unexpected {after.strip()[:20]!r} after {_MULTILINE}"
            place = self._place(self._at, after.strip(), after=len(rest) - len(after))
            self.problems.append(UnreadableLine.problem((), text, place=place))
        return "\n".join([*collected, last])
