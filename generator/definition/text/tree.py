"""YAML text to a tree of nodes with their places, within limits; nothing is resolved or executed.

The tree is made from PyYAML's events, not by its composer: so depth and size are bounded while reading, every problem
is collected, and anchors cannot build a cycle.
"""

from __future__ import annotations

import re
from typing import Any

import yaml
from msgspec import Struct

from ...problems.problem import Place, Problem
from .rules import BadAlias, SecondDocument, TextRule, TooLarge
from .syntax import Mark, syntax_problem

LINE_BREAK = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
"""What the parser counts as one."""
_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*(?::-[^{}$\[\],\s]*)?)\}", re.ASCII)
"""What may stand between brackets without quotes: the default ends nothing there."""
_BRACES = "\ue000\ue001"
"""Stand for the braces of a variable while YAML is read, in which they would begin and end a mapping."""
_WRITTEN_BACK = str.maketrans(_BRACES, "{}")
MAX_DEPTH = 40
MAX_NODES = 100_000
"""Values of a document, aliases expanded."""


# A definition has thousands of nodes, and a dataclass with slots would be compiled at every start.
class Scalar:
    """A single value as written; `plain` means without quotes. `start`, `end`: character indexes into the text."""

    __slots__ = ("end", "place", "plain", "start", "tag", "value")

    def __init__(self, place: Place, start: int, end: int, value: str, tag: str | None, plain: bool) -> None:
        self.place, self.start, self.end = place, start, end
        self.value, self.tag, self.plain = value, tag, plain


class Sequence:
    __slots__ = ("is_open", "items", "place", "tag")

    def __init__(self, place: Place, tag: str | None) -> None:
        self.place, self.tag = place, tag
        self.items: list[Node] = []
        self.is_open = True


class Mapping:
    """A mapping; the pairs keep their order and their duplicates. `key` waits for its value while reading."""

    __slots__ = ("is_open", "key", "pairs", "place", "tag")

    def __init__(self, place: Place, tag: str | None) -> None:
        self.place, self.tag = place, tag
        self.pairs: list[tuple[Node, Node]] = []
        self.key: Node | None = None
        self.is_open = True


class Alias:
    """A use of an anchored node."""

    __slots__ = ("place", "target")

    def __init__(self, place: Place, target: Scalar | Mapping | Sequence) -> None:
        self.place, self.target = place, target


Node = Scalar | Mapping | Sequence | Alias


class Tree(Struct, frozen=True):
    """The document, or None when it could not be read to its end; `is_empty` when there is none."""

    root: Node | None
    problems: tuple[Problem, ...]
    is_empty: bool = False


def place_at(text: str, index: int, length: int) -> Place:
    """The place of `length` characters from an index into the text."""
    return place_after(text, index, length, 1, 0)


def place_after(text: str, index: int, length: int, line: int, start: int) -> Place:
    """The same, counted from a line above whose first character has the index `start`."""
    for match in LINE_BREAK.finditer(text, start, index):
        line, start = line + 1, match.end()
    return Place(line, index - start + 1, index - start + length + 1)


def read_tree(text: str, lines: tuple[str, ...]) -> Tree:
    """The first document of the text. Never raises for bad input."""
    builder = _Builder(lines, braces_stand_in=not any(sign in text for sign in _BRACES))
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    if builder.braces_stand_in:
        text = _VARIABLE.sub(rf"${_BRACES[0]}\1{_BRACES[1]}", text)
    try:
        for event in yaml.parse(text, Loader=loader):
            if not builder.take(event):
                return Tree(None, tuple(builder.problems))
    except (yaml.YAMLError, ValueError) as error:
        return Tree(None, (*builder.problems, syntax_problem(error, lines)))
    root = builder.root
    is_empty = root is None or (isinstance(root, Scalar) and root.start == root.end and root.tag is None)
    return Tree(None if is_empty else root, tuple(builder.problems), is_empty)


class _Builder:
    def __init__(self, lines: tuple[str, ...], *, braces_stand_in: bool) -> None:
        self.lines, self.braces_stand_in = lines, braces_stand_in
        self.problems: list[Problem] = []
        self.root: Node | None = None
        self._stack: list[Mapping | Sequence] = []
        self._anchors: dict[str, Scalar | Mapping | Sequence | Alias] = {}
        self._count = 0
        self._documents = 0

    def take(self, event: Any) -> bool:
        """Add one event; False when reading has to stop here."""
        # The marks of events are optional in the type stubs only; a parser always sets them.
        start: Mark = event.start_mark
        end: Mark = event.end_mark
        match event:
            case yaml.DocumentStartEvent():
                self._documents += 1
                if self._documents > 1:
                    place = self._place(start, end)
                    self._problem(
                        SecondDocument,
                        place,
                        "a second YAML document begins here",
                        "one file describes one deployment",
                    )
                    return False
            case yaml.ScalarEvent():
                plain = event.style in (None, "") and event.implicit[0]
                place = self._place(start, end)
                value = event.value.translate(_WRITTEN_BACK) if self.braces_stand_in else event.value
                return self._add(Scalar(place, start.index, end.index, value, event.tag, plain), event)
            case yaml.AliasEvent():
                return self._add(self._alias(event), None)
            case yaml.SequenceStartEvent():
                return self._open(Sequence(self._collection_place(event), event.tag), event)
            case yaml.MappingStartEvent():
                return self._open(Mapping(self._collection_place(event), event.tag), event)
            case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                self._close(event)
        return True

    def _open(self, node: Mapping | Sequence, event: Any) -> bool:
        if len(self._stack) >= MAX_DEPTH:
            self._problem(TooLarge, node.place, f"the file is nested deeper than {MAX_DEPTH} levels", None)
            return False
        goes_on = self._add(node, event)
        self._stack.append(node)
        return goes_on

    def _close(self, event: Any) -> None:
        node = self._stack.pop()
        node.is_open = False
        end = event.end_mark
        if end.index > event.start_mark.index and end.line + 1 == node.place.line:
            # The closing bracket of a flow collection in one line.
            node.place = Place(node.place.line, node.place.column, end.column + 1)
        elif isinstance(node, Mapping) and node.pairs and event.end_mark.index == event.start_mark.index:
            # A block mapping is pointed at by its first key.
            node.place = node.pairs[0][0].place

    def _add(self, node: Node, event: Any) -> bool:
        self._count += 1
        if self._count > MAX_NODES:
            self._problem(TooLarge, node.place, f"the file has more than {MAX_NODES:,} values", None)
            return False
        if event is not None and event.anchor:
            self._anchors[event.anchor] = node
        if not self._stack:
            self.root = node
            return True
        parent = self._stack[-1]
        if isinstance(parent, Sequence):
            parent.items.append(node)
        elif parent.key is None:
            parent.key = node
        else:
            parent.pairs.append((parent.key, node))
            parent.key = None
        return True

    def _alias(self, event: Any) -> Node:
        place = self._place(event.start_mark, event.end_mark)
        target = self._anchors.get(event.anchor)
        if isinstance(target, Mapping | Sequence) and target.is_open:
            self._problem(
                BadAlias, place, f"the alias '*{event.anchor}' is inside its own anchor '&{event.anchor}'", None
            )
            target = None
        elif target is None:
            hint = "put the value into quotes if '*' belongs to it"
            self._problem(BadAlias, place, f"there is no anchor '&{event.anchor}' above this alias", hint)
        if target is None:
            return Scalar(place, event.start_mark.index, event.start_mark.index, "", None, plain=True)
        return Alias(place, target.target if isinstance(target, Alias) else target)

    def _problem(self, rule: type[TextRule], place: Place, message: str, hint: str | None) -> None:
        self.problems.append(rule.problem((), message, hint, place=place))

    def _place(self, start: Mark, end: Mark) -> Place:
        """From the start to the end mark, or to the end of the first line."""
        line = self.lines[start.line] if start.line < len(self.lines) else ""
        stop = end.column if end.line == start.line else len(line.rstrip())
        return Place(start.line + 1, start.column + 1, max(stop, start.column) + 1)

    def _collection_place(self, event: Any) -> Place:
        if event.flow_style:
            return self._place(event.start_mark, _NextLine(event.start_mark))
        return Place(event.start_mark.line + 1, event.start_mark.column + 1, event.start_mark.column + 2)


class _NextLine:
    """A mark beyond the line, so that a place runs to the end of its line until the closing bracket is known."""

    def __init__(self, mark: Mark) -> None:
        self.line = mark.line + 1
        self.column = 0
        self.index = mark.index
