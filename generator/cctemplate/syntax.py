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

from .errors import ExpressionError, TemplateSyntaxError
from .expressions import Constant
from .values import AttributeValue, read_expression, read_value

_HEADER = re.compile(r"(\[+)([^\[\]]*)(\]+)\s*(?:#.*)?")
_ATTRIBUTE = re.compile(r"([^\s:=\[\]\"'`#]+)\s*(:=|=)\s*(.*)", re.DOTALL)
_MULTILINE = "'''"


@dataclass(frozen=True)
class Attribute:
    """`name = value` at a line."""

    name: str
    value: AttributeValue
    line: int


@dataclass(frozen=True)
class Section:
    """A section, what it sets and what lies below it. `kind` is in lower case."""

    kind: str
    name: str
    rank: int
    line: int
    attributes: tuple[Attribute, ...] = ()
    sections: tuple[Section, ...] = ()

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


@dataclass(frozen=True)
class Template:
    """A whole file."""

    sections: tuple[Section, ...]

    def walk(self) -> Iterator[Section]:
        """Every section in the order of the file."""
        for section in self.sections:
            yield from section.walk()

    @property
    def clusters(self) -> tuple[Section, ...]:
        """`[cluster …]` sections."""
        return tuple(section for section in self.sections if section.kind == "cluster")

    @property
    def parameters(self) -> tuple[Section, ...]:
        """`parameter` sections of any rank."""
        return tuple(section for section in self.walk() if section.kind == "parameter")


@dataclass
class _Open:
    """A section whose end is not yet reached."""

    kind: str
    name: str
    rank: int
    line: int
    attributes: list[Attribute] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)

    def close(self) -> Section:
        attributes, sections = tuple(self.attributes), tuple(self.sections)
        return Section(self.kind, self.name, self.rank, self.line, attributes, sections)


def parse(text: str) -> Template:
    """Read a template; TemplateSyntaxError names the line of the first thing that cannot be read."""
    reader = _Reader(text)
    return reader.read()


class _Reader:
    def __init__(self, text: str) -> None:
        # Only "\n" and "\r\n" end a line; splitlines() would also cut at characters that may stand in a value.
        self._lines = [line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n")]
        self._at = 0
        self._root = _Open("", "", 0, 0)
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

    def _open(self, line: str, number: int) -> None:
        match = _HEADER.fullmatch(line)
        if match is None or len(match.group(1)) != len(match.group(3)):
            raise TemplateSyntaxError(f"the brackets of {line!r} do not match", number)
        rank = len(match.group(1))
        kind, _, name = match.group(2).strip().partition(" ")
        if not kind:
            raise TemplateSyntaxError("a section needs a kind, as in [cluster NAME]", number)
        self._close_down_to(rank - 1)
        if self._stack[-1].rank != rank - 1:
            above = self._stack[-1].rank
            raise TemplateSyntaxError(f"a section of rank {rank} cannot lie in one of rank {above}", number)
        self._stack.append(_Open(kind.lower(), name.strip(), rank, number))

    def _assign(self, line: str, number: int) -> None:
        match = _ATTRIBUTE.fullmatch(line)
        if match is None:
            raise TemplateSyntaxError(f"expected a section or 'Attribute = value', found {line[:40]!r}", number)
        name, operator, text = match.groups()
        if self._stack[-1] is self._root:
            raise TemplateSyntaxError(f"attribute {name!r} stands outside of any section", number)
        try:
            if operator == ":=":
                value = read_expression(text)
            elif text.startswith(_MULTILINE):
                value = Constant(self._multiline(number))
            else:
                value = read_value(text)
        except ExpressionError as error:
            raise TemplateSyntaxError(f"attribute {name!r}: {error}", number) from error
        self._stack[-1].attributes.append(Attribute(name, value, number))

    def _multiline(self, number: int) -> str:
        """Text up to the closing quotes, which must end their line; the lines between are kept as they stand."""
        _, _, rest = self._lines[number - 1].partition(_MULTILINE)
        collected: list[str] = []
        while _MULTILINE not in rest:
            if self._at == len(self._lines):
                raise TemplateSyntaxError(f"the text that begins with {_MULTILINE} is not closed", number)
            collected.append(rest)
            rest = self._lines[self._at]
            self._at += 1
        last, _, after = rest.partition(_MULTILINE)
        if after.strip():
            raise TemplateSyntaxError(f"unexpected {after.strip()[:20]!r} after {_MULTILINE}", self._at)
        return "\n".join([*collected, last])
