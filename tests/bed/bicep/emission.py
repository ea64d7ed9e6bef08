"""Expressions of Bicep as the text of expressions of a template, as the real compiler writes them.

Loops of values become `map`, and a spread becomes `shallowMerge` or `concat`; everything else has its own counterpart.
Source: https://learn.microsoft.com/azure/azure-resource-manager/templates/template-expressions and the templates that
the real compiler made, in tests/azure/compiled-f798d83.json
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from .expressions import (
    Array,
    Call,
    Conditional,
    Lambda,
    Literal,
    Loop,
    Member,
    Name,
    Negation,
    Node,
    Object,
    Operation,
    Spread,
    Text,
)
from .values import EvaluationError

_FUNCTIONS = {
    "==": "equals", "&&": "and", "||": "or", "??": "coalesce", "+": "add", "-": "sub", "*": "mul", "/": "div",
    "%": "mod", "<": "less", "<=": "lessOrEquals", ">": "greater", ">=": "greaterOrEquals",
}  # fmt: skip
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Symbol(Protocol):
    """A resource or a module."""

    def id_text(self, at: Emitter) -> str:
        """Its id."""

    def member_text(self, key: str, at: Emitter) -> str:
        """A property of it: `name`, `properties`, `outputs` …"""

    def child(self, key: str) -> Symbol | None:
        """A resource that is declared in it."""

    def turned(self, place: str) -> Symbol:
        """One of a loop."""


@dataclass(frozen=True)
class Emitter:
    """What names mean at one place of a file."""

    parameters: frozenset[str]
    variables: Mapping[str, Node]
    inlined: frozenset[str]
    """Variables that name resources; the real compiler writes them out, too."""
    symbols: Mapping[str, Symbol]
    load: Callable[[str, str], Any]
    """What a function such as `loadTextContent` returns while compiling, by name and path."""
    local: Mapping[str, str] = field(default_factory=dict)
    """Variables of lambdas and loops, as text."""

    def having(self, **local: str) -> Emitter:
        return replace(self, local={**self.local, **local})

    # ---- as JSON

    def json(self, node: Node) -> Any:
        """A value of the template: objects and arrays stay what they are, the rest is text in brackets."""
        if isinstance(node, Literal):
            text = node.content
            return f"[{text}" if isinstance(text, str) and text.startswith("[") else text
        if isinstance(node, Object) and all(
            isinstance(key, Literal) and not isinstance(value, Spread) for key, value in node.entries
        ):
            return self._properties(node)
        if isinstance(node, Array) and not any(isinstance(item, Spread) for item in node.items):
            return [self.json(item) for item in node.items]
        return f"[{self.text(node)}]"

    def _properties(self, node: Object) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in node.entries:
            assert isinstance(key, Literal)
            if isinstance(value, Loop) and value.condition is None:
                name = str(key.content)
                turn = self.turn(value, f"copyIndex('{name}')")
                count = f"[length({self.text(value.values)})]"
                found.setdefault("copy", []).append({"name": name, "count": count, "input": turn.json(value.body)})
            else:
                found[str(key.content)] = self.json(value)
        return found

    def turn(self, loop: Loop, place: str) -> Emitter:
        """The names of a loop, at a place that has this text."""
        names = {loop.item: f"{self.text(loop.values)}[{place}]"}
        return self.having(**(names | ({loop.index: place} if loop.index else {})))

    # ---- as text

    def text(self, node: Node) -> str:
        """The expression, without brackets."""
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            raise EvaluationError(f"cannot write {node}")
        return str(method(node))

    def _literal(self, node: Literal) -> str:
        return quoted(node.content)

    def _text(self, node: Text) -> str:
        pattern = ""
        arguments: list[str] = []
        for piece in node.pieces:
            if isinstance(piece, Literal):
                pattern += str(piece.content).replace("{", "{{").replace("}", "}}")
            else:
                pattern += "{" + str(len(arguments)) + "}"
                arguments.append(self.text(piece))
        return f"format({', '.join([quoted(pattern), *arguments])})"

    def _name(self, node: Name) -> str:
        name = node.name
        if name in self.local:
            return self.local[name]
        if name in self.parameters:
            return f"parameters({quoted(name)})"
        if name in self.inlined:
            return self.text(self.variables[name])
        if name in self.variables:
            return f"variables({quoted(name)})"
        raise EvaluationError(f"{name} has no text of its own")

    def _call(self, node: Call) -> str:
        if node.function in ("loadTextContent", "loadFileAsBase64", "loadJsonContent"):
            (path,) = node.arguments
            assert isinstance(path, Literal)
            loaded = self.load(node.function, str(path.content))
            return f"json({quoted(loaded)})" if node.function == "loadJsonContent" else quoted(loaded)
        return f"{node.function}({', '.join(self.text(each) for each in node.arguments)})"

    def _member(self, node: Member) -> str:
        symbol, keys = self._of_symbol(node)
        if symbol is not None:
            if not keys:
                raise EvaluationError("a resource has no text of its own")
            (first, _), *rest = keys
            assert isinstance(first, Literal)
            text = symbol.member_text(str(first.content), self)
            if first.content == "outputs":
                (output, _), *rest = rest
                assert isinstance(output, Literal)
                text = f"{text}.{output.content}.value"
        else:
            (key, safe), rest = (node.key, node.safe), []
            text = self._followed(self.text(node.owner), key, safe=safe)
        for key, safe in rest:
            text = self._followed(text, key, safe=safe)
        return text

    def _followed(self, text: str, key: Node, *, safe: bool) -> str:
        if safe:
            return f"tryGet({text}, {self.text(key)})"
        if isinstance(key, Literal) and isinstance(key.content, str) and _IDENTIFIER.fullmatch(key.content):
            return f"{text}.{key.content}"
        return f"{text}[{self.text(key)}]"

    def _of_symbol(self, node: Node) -> tuple[Symbol | None, list[tuple[Node, bool]]]:
        """The resource at the beginning of a chain, and what is asked of it."""
        if isinstance(node, Name) and node.name in self.symbols and node.name not in self.local:
            return self.symbols[node.name], []
        if not isinstance(node, Member):
            return None, []
        symbol, keys = self._of_symbol(node.owner)
        if symbol is None:
            return None, []
        if not keys:
            if isinstance(node.key, Literal) and isinstance(node.key.content, str):
                child = symbol.child(node.key.content)
                if child is not None:
                    return child, []
            else:
                return symbol.turned(self.text(node.key)), []
        return symbol, [*keys, (node.key, node.safe)]

    def symbol(self, node: Node) -> Symbol | None:
        """The resource that a scope or a parent names."""
        symbol, keys = self._of_symbol(node)
        return None if keys else symbol

    def _conditional(self, node: Conditional) -> str:
        return f"if({self.text(node.condition)}, {self.text(node.yes)}, {self.text(node.no)})"

    def _operation(self, node: Operation) -> str:
        left, right = self.text(node.left), self.text(node.right)
        if node.operator == "!=":
            return f"not(equals({left}, {right}))"
        return f"{_FUNCTIONS[node.operator]}({left}, {right})"

    def _negation(self, node: Negation) -> str:
        operand = self.text(node.operand)
        return f"not({operand})" if node.operator == "!" else f"sub(0, {operand})"

    def _lambda(self, node: Lambda) -> str:
        inner = self.having(**{name: f"lambdaVariables({quoted(name)})" for name in node.parameters})
        return f"lambda({', '.join([*map(quoted, node.parameters), inner.text(node.body)])})"

    def _loop(self, node: Loop) -> str:
        if node.condition is not None:
            raise EvaluationError("a loop of values has a condition")
        names = (node.item, node.index) if node.index else (node.item,)
        return f"map({self.text(node.values)}, {self._lambda(Lambda(names, node.body))})"

    def _array(self, node: Array) -> str:
        parts: list[str] = []
        plain: list[str] = []
        for item in node.items:
            if isinstance(item, Spread):
                parts += [f"createArray({', '.join(plain)})", self.text(item.content)]
                plain = []
            else:
                plain.append(self.text(item))
        rest = f"createArray({', '.join(plain)})"
        return f"concat({', '.join([*parts, rest])})" if parts else rest

    def _created(self, entries: list[tuple[Node, Node]]) -> str:
        return f"createObject({', '.join(self.text(part) for entry in entries for part in entry)})"

    def _object(self, node: Object) -> str:
        parts: list[str] = []
        plain: list[tuple[Node, Node]] = []
        for key, value in node.entries:
            if isinstance(value, Spread):
                parts += [self._created(plain), self.text(value.content)]
                plain = []
            else:
                plain.append((key, value))
        rest = self._created(plain)
        return f"shallowMerge(createArray({', '.join([*parts, rest])}))" if parts else rest


def quoted(value: object) -> str:
    if value is None:
        return "null()"
    if isinstance(value, bool):
        return f"{str(value).lower()}()"
    if isinstance(value, int):
        return str(value)
    text = str(value).replace("'", "''")
    return f"'{text}'"
