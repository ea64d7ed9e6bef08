"""Expressions of Bicep and of ARM templates, and what they evaluate to in an environment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Protocol

from .functions import FUNCTIONS, decided, equal, joined, member, whole
from .values import EvaluationError, Late, UndecidedError


class Environment(Protocol):
    """What names and functions mean at one place."""

    def lookup(self, name: str) -> Any:
        """The value of a name."""

    def call(self, name: str, arguments: list[Any]) -> Any:
        """The result of a function that depends on the place."""


@dataclass(frozen=True)
class Local:
    """An environment with some names of its own: variables of a loop or parameters of a lambda."""

    outer: Environment
    names: Mapping[str, Any]

    def lookup(self, name: str) -> Any:
        return self.names[name] if name in self.names else self.outer.lookup(name)

    def call(self, name: str, arguments: list[Any]) -> Any:
        return self.outer.call(name, arguments)


@dataclass(frozen=True)
class Node:
    """An expression."""

    def value(self, at: Environment) -> Any:
        raise NotImplementedError

    def parts(self) -> Iterator[Node]:
        """The expressions that it directly consists of."""
        for one in fields(self):
            found = getattr(self, one.name)
            for each in found if isinstance(found, tuple) else (found,):
                for item in each if isinstance(each, tuple) else (each,):
                    if isinstance(item, Node):
                        yield item

    def names(self) -> set[str]:
        """All names in it, those of its lambdas included."""
        own = {self.name} if isinstance(self, Name) else set()
        return own.union(*(part.names() for part in self.parts()))


@dataclass(frozen=True)
class Literal(Node):
    """A number, a boolean, null or a text without interpolation."""

    content: str | int | bool | None

    def value(self, at: Environment) -> Any:
        return self.content


@dataclass(frozen=True)
class Text(Node):
    """An interpolated text."""

    pieces: tuple[Node, ...]

    def value(self, at: Environment) -> Any:
        return joined(*(piece.value(at) for piece in self.pieces))


@dataclass(frozen=True)
class Name(Node):
    """A parameter, a variable, a resource, a module, or a name of a loop or lambda."""

    name: str

    def value(self, at: Environment) -> Any:
        return at.lookup(self.name)


@dataclass(frozen=True)
class Call(Node):
    """A function."""

    function: str
    arguments: tuple[Node, ...]

    def value(self, at: Environment) -> Any:
        """Its result; `if` and `coalesce` of templates evaluate only what they need."""
        if self.function == "if":
            condition, yes, no = self.arguments
            return (yes if decided(condition.value(at)) else no).value(at)
        if self.function in ("and", "or"):
            stop = self.function == "or"
            return stop if any(decided(each.value(at)) is stop for each in self.arguments) else not stop
        arguments = [argument.value(at) for argument in self.arguments]
        pure = FUNCTIONS.get(self.function)
        return pure(*arguments) if pure else at.call(self.function, arguments)


@dataclass(frozen=True)
class Member(Node):
    """`owner.name`, `owner[key]`, `owner.?name` and `owner::name`."""

    owner: Node
    key: Node
    safe: bool = False

    def value(self, at: Environment) -> Any:
        """The property; with `?` null where it or its owner is missing."""
        owner, key = self.owner.value(at), self.key.value(at)
        if not isinstance(owner, dict | list | Late) and hasattr(owner, "member"):
            return owner.member(key)
        return FUNCTIONS["tryGet"](owner, key) if self.safe else member(owner, key)


@dataclass(frozen=True)
class Conditional(Node):
    """`condition ? yes : no`."""

    condition: Node
    yes: Node
    no: Node

    def value(self, at: Environment) -> Any:
        """Only the branch that is taken is evaluated."""
        return (self.yes if decided(self.condition.value(at)) else self.no).value(at)


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": equal,
    "!=": lambda left, right: not equal(left, right),
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
    "+": FUNCTIONS["add"],
    "-": FUNCTIONS["sub"],
    "*": FUNCTIONS["mul"],
    "/": FUNCTIONS["div"],
    "%": FUNCTIONS["mod"],
}


@dataclass(frozen=True)
class Operation(Node):
    """Two operands; `&&`, `||` and `??` evaluate the second only where it decides."""

    operator: str
    left: Node
    right: Node

    def value(self, at: Environment) -> Any:
        left = self.left.value(at)
        if self.operator == "??":
            return self.right.value(at) if left is None else left
        if self.operator == "&&":
            return decided(left) and decided(self.right.value(at))
        if self.operator == "||":
            return decided(left) or decided(self.right.value(at))
        return _OPERATORS[self.operator](left, self.right.value(at))


@dataclass(frozen=True)
class Negation(Node):
    """`!condition` or `-number`."""

    operator: str
    operand: Node

    def value(self, at: Environment) -> Any:
        value = self.operand.value(at)
        return not decided(value) if self.operator == "!" else -whole(value)


@dataclass(frozen=True)
class Lambda(Node):
    """`item => …` and `(item, index) => …`."""

    parameters: tuple[str, ...]
    body: Node

    def value(self, at: Environment) -> Any:
        """A function; arguments that it does not name are left out."""

        def called(*arguments: Any) -> Any:
            return self.body.value(Local(at, dict(zip(self.parameters, arguments, strict=False))))

        return called


@dataclass(frozen=True)
class Array(Node):
    """`[a, b]`."""

    items: tuple[Node, ...]

    def value(self, at: Environment) -> Any:
        values: list[Any] = []
        for item in self.items:
            if isinstance(item, Spread):
                values += item.value(at)
            else:
                values.append(item.value(at))
        return values


@dataclass(frozen=True)
class Spread(Node):
    """`...value` in an array or an object."""

    content: Node

    def value(self, at: Environment) -> Any:
        return self.content.value(at)


@dataclass(frozen=True)
class Object(Node):
    """`{ key: value }`."""

    entries: tuple[tuple[Node, Node], ...]

    def value(self, at: Environment) -> Any:
        """A mapping; a key must not be there twice."""
        found: dict[str, Any] = {}
        for key, content in self.entries:
            if isinstance(content, Spread):
                found |= content.value(at)
                continue
            name = key.value(at)
            if isinstance(name, Late):
                raise UndecidedError(f"a property is called {name!r}")
            if name in found:
                raise EvaluationError(f"the property {name!r} is there twice")
            found[name] = content.value(at)
        return found

    def entry(self, name: str) -> Node | None:
        """The expression of one property; None if it is not there."""
        return next((content for key, content in self.entries if key == Literal(name)), None)

    def without(self, *names: str) -> Object:
        """The object without some of its properties."""
        left_out = {Literal(name) for name in names}
        return Object(tuple(entry for entry in self.entries if entry[0] not in left_out))


@dataclass(frozen=True)
class Loop(Node):
    """`[for (item, index) in values: body]`; a resource's body may have a condition."""

    item: str
    index: str | None
    values: Node
    body: Node
    condition: Node | None = None

    def turns(self, at: Environment) -> Iterator[Local]:
        """An environment for each item."""
        values = self.values.value(at)
        if isinstance(values, Late):
            raise UndecidedError(f"a loop goes through {values!r}")
        for place, value in enumerate(values):
            yield Local(at, {self.item: value} | ({self.index: place} if self.index else {}))

    def value(self, at: Environment) -> Any:
        """A list, of those for which the condition holds."""
        return [
            self.body.value(turn)
            for turn in self.turns(at)
            if self.condition is None or decided(self.condition.value(turn))
        ]
