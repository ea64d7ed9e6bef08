"""Tokens → declarations. What is not known here raises `EvaluationError` with its line."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

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
from .lexer import Token, tokens
from .types import AnyOf, ListOf, Named, Nullable, Only, Shape, Type
from .values import EvaluationError

Decorators = tuple[tuple[str, tuple[Node, ...]], ...]
_LEVELS = (("??",), ("||",), ("&&",), ("==", "!="), ("<", "<=", ">", ">="), ("+", "-"), ("*", "/", "%"))
_CONSTANTS: dict[str, Any] = {"true": True, "false": False, "null": None}


@dataclass(frozen=True)
class Parameter:
    """`param name type = default`."""

    name: str
    type: Type
    default: Node | None
    decorators: Decorators


@dataclass(frozen=True)
class Output:
    """`output name type = value`."""

    name: str
    type: Type
    content: Node


@dataclass(frozen=True)
class Declared:
    """A resource or a module: `source` is `type@version` or the path of a file."""

    symbol: str
    source: str
    is_module: bool
    existing: bool
    body: Object
    loop: Loop | None
    condition: Node | None
    nested: tuple[Declared, ...] = ()


@dataclass
class BicepFile:
    """All declarations of one file."""

    target_scope: str
    parameters: dict[str, Parameter]
    variables: dict[str, Node]
    types: dict[str, Type]
    declared: dict[str, Declared]
    outputs: dict[str, Output]


@cache
def parse(text: str) -> BicepFile:
    """The declarations of a file."""
    return _Parser(tokens(text)).file()


class _Parser:
    def __init__(self, found: tuple[Token, ...]) -> None:
        self.tokens, self.place = found, 0

    # ---- tokens

    @property
    def now(self) -> Token:
        return self.tokens[self.place]

    def fail(self, wanted: str) -> EvaluationError:
        return EvaluationError(f"line {self.now.line}: {self.now.text or self.now.kind!r} instead of {wanted}")

    def next(self) -> Token:
        self.place += 1
        return self.tokens[self.place - 1]

    def sees(self, *marks: str) -> bool:
        return self.now.kind == "mark" and self.now.text in marks

    def word(self, *words: str) -> bool:
        return self.now.kind == "name" and self.now.text in words

    def takes(self, *texts: str) -> Token | None:
        found = self.now.kind in ("mark", "name") and self.now.text in texts
        return self.next() if found else None

    def needs(self, text: str) -> None:
        if not self.takes(text):
            raise self.fail(repr(text))

    def name(self) -> str:
        if self.now.kind != "name":
            raise self.fail("a name")
        return self.next().text

    def plain(self) -> str:
        """A text without interpolation."""
        content = self.string() if self.now.kind == "string" else None
        if not (isinstance(content, Literal) and isinstance(content.content, str)):
            raise self.fail("a text")
        return content.content

    def lines(self) -> None:
        while self.now.kind == "newline":
            self.next()

    def across(self, *marks: str) -> bool:
        """Whether one of the marks is next, line ends aside; then they are behind us."""
        place = self.place
        self.lines()
        if self.sees(*marks):
            return True
        self.place = place
        return False

    # ---- declarations

    def file(self) -> BicepFile:
        found = BicepFile("resourceGroup", {}, {}, {}, {}, {})
        self.lines()
        while self.now.kind != "end":
            self.statement(found)
            if self.now.kind not in ("newline", "end"):
                raise self.fail("the end of the line")
            self.lines()
        return found

    def statement(self, found: BicepFile) -> None:
        decorators = self.decorators()
        keyword = self.name()
        if keyword == "targetScope":
            self.needs("=")
            found.target_scope = self.plain()
        elif keyword == "metadata":
            self.name()
            self.needs("=")
            self.expression()
        elif keyword == "param":
            name, kind = self.name(), self.type()
            default = self.expression() if self.takes("=") else None
            found.parameters[name] = Parameter(name, kind, default, decorators)
        elif keyword == "var":
            name = self.name()
            self.needs("=")
            found.variables[name] = self.expression()
        elif keyword == "type":
            name = self.name()
            self.needs("=")
            found.types[name] = self.type()
        elif keyword == "output":
            name, kind = self.name(), self.type()
            self.needs("=")
            found.outputs[name] = Output(name, kind, self.expression())
        elif keyword in ("resource", "module"):
            declared = self.declared(is_module=keyword == "module")
            found.declared[declared.symbol] = declared
        else:
            raise EvaluationError(f"line {self.now.line}: the declaration {keyword} is not known")

    def decorators(self) -> Decorators:
        found = []
        while self.takes("@"):
            call = self.expression()
            if not isinstance(call, Call):
                raise self.fail("a decorator")
            found.append((call.function, call.arguments))
            self.lines()
        return tuple(found)

    def declared(self, *, is_module: bool) -> Declared:
        symbol, source = self.name(), self.plain()
        existing = bool(self.takes("existing"))
        self.needs("=")
        loop = condition = None
        nested: tuple[Declared, ...] = ()
        if self.sees("["):
            found = self.array_or_loop()
            if not isinstance(found, Loop):
                raise self.fail("a loop")
            if not isinstance(found.body, Object):
                raise self.fail("the body of a resource")
            loop, condition, body = found, found.condition, found.body
        else:
            condition = self.condition()
            body, nested = self.body()
        return Declared(symbol, source, is_module, existing, body, loop, condition, nested)

    def condition(self) -> Node | None:
        if not self.word("if"):
            return None
        self.next()
        self.needs("(")
        found = self.expression()
        self.needs(")")
        return found

    def body(self) -> tuple[Object, tuple[Declared, ...]]:
        """An object that may have resources in it."""
        nested: list[Declared] = []
        return self.object(nested), tuple(nested)

    # ---- types

    def type(self) -> Type:
        self.takes("|")
        options = [self.one_type()]
        while self.across("|"):
            self.next()
            self.lines()
            options.append(self.one_type())
        return options[0] if len(options) == 1 else AnyOf(tuple(options))

    def one_type(self) -> Type:
        found: Type
        if self.now.kind == "string":
            found = Only(self.plain())
        elif self.now.kind == "number":
            found = Only(int(self.next().text))
        elif self.takes("("):
            found = self.type()
            self.needs(")")
        elif self.sees("{"):
            found = self.shape()
        else:
            name = self.name()
            found = Only(_CONSTANTS[name]) if name in _CONSTANTS else Named(name)
        while self.sees("[", "?"):
            if self.takes("?"):
                found = Nullable(found)
            else:
                self.next()
                self.needs("]")
                found = ListOf(found)
        return found

    def shape(self) -> Shape:
        properties: dict[str, Type] = {}
        others: Type | None = None
        self.needs("{")
        self.separators()
        while not self.takes("}"):
            self.decorators()
            if self.takes("*"):
                self.needs(":")
                others = self.type()
            else:
                name = self.plain() if self.now.kind == "string" else self.name()
                self.needs(":")
                properties[name] = self.type()
            self.separators()
        return Shape(tuple(properties.items()), others)

    def separators(self) -> None:
        while self.now.kind == "newline" or self.sees(","):
            self.next()

    # ---- expressions

    def expression(self) -> Node:
        if parameters := self.lambda_parameters():
            self.lines()
            return Lambda(parameters, self.expression())
        condition = self.operation(0)
        if not self.across("?"):
            return condition
        self.next()
        self.lines()
        yes = self.expression()
        if not self.across(":"):
            raise self.fail("':'")
        self.next()
        self.lines()
        return Conditional(condition, yes, self.expression())

    def lambda_parameters(self) -> tuple[str, ...]:
        """The parameters of a lambda, which are behind us then; empty if there is none."""
        start, names = self.place, []
        if not self.takes("("):
            names = [self.next().text] if self.now.kind == "name" else []
        else:
            while self.now.kind == "name":
                names.append(self.next().text)
                self.takes(",")
            if not self.takes(")"):
                names = []
        if names and self.takes("=>"):
            return tuple(names)
        self.place = start
        return ()

    def operation(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self.unary()
        left = self.operation(level + 1)
        while self.sees(*_LEVELS[level]):
            operator = self.next().text
            self.lines()
            left = Operation(operator, left, self.operation(level + 1))
        return left

    def unary(self) -> Node:
        if found := self.takes("!", "-"):
            return Negation(found.text, self.unary())
        return self.members(self.primary())

    def members(self, owner: Node) -> Node:
        while self.sees(".", ".?", "::", "[", "[?", "!"):
            mark = self.next().text
            if mark == "!":
                continue  # Only tells the compiler that the value is not null.
            if mark in ("[", "[?"):
                owner = Member(owner, self.expression(), safe=mark == "[?")
                self.needs("]")
                continue
            name = self.name()
            called = self.takes("(")
            owner = Call(name, self.arguments()) if called else Member(owner, Literal(name), safe=mark == ".?")
        return owner

    def arguments(self) -> tuple[Node, ...]:
        found: list[Node] = []
        self.lines()
        while not self.takes(")"):
            found.append(self.expression())
            self.lines()
            if not self.sees(")"):
                self.needs(",")
                self.lines()
        return tuple(found)

    def primary(self) -> Node:
        if self.now.kind == "number":
            return Literal(int(self.next().text))
        if self.now.kind == "string":
            return self.string()
        if self.takes("("):
            self.lines()
            found = self.expression()
            self.lines()
            self.needs(")")
            return found
        if self.sees("["):
            return self.array_or_loop()
        if self.sees("{"):
            return self.object()
        name = self.name()
        if name in _CONSTANTS:
            return Literal(_CONSTANTS[name])
        return Call(name, self.arguments()) if self.takes("(") else Name(name)

    def string(self) -> Node:
        pieces: list[Node] = []
        for piece in self.next().pieces:
            if isinstance(piece, str):
                pieces.append(Literal(piece))
            else:
                inner = _Parser(piece)
                pieces.append(inner.expression())
                if inner.now.kind != "end":
                    raise inner.fail("the end of the interpolation")
        return pieces[0] if len(pieces) == 1 else Text(tuple(pieces))

    def array_or_loop(self) -> Node:
        self.needs("[")
        self.lines()
        if self.word("for"):
            return self.loop()
        items: list[Node] = []
        while not self.takes("]"):
            items.append(Spread(self.expression()) if self.takes("...") else self.expression())
            if not self.sees("]", ",") and self.now.kind != "newline":
                raise self.fail("the end of the item")
            self.separators()
        return Array(tuple(items))

    def loop(self) -> Loop:
        self.needs("for")
        index = None
        if self.takes("("):
            item = self.name()
            self.needs(",")
            index = self.name()
            self.needs(")")
        else:
            item = self.name()
        self.needs("in")
        values = self.expression()
        self.needs(":")
        self.lines()
        condition = self.condition()
        body = self.expression()
        self.lines()
        self.needs("]")
        return Loop(item, index, values, body, condition)

    def object(self, nested: list[Declared] | None = None) -> Object:
        entries: list[tuple[Node, Node]] = []
        self.needs("{")
        self.separators()
        while not self.takes("}"):
            if self.takes("..."):
                entries.append((Literal("..."), Spread(self.expression())))
            elif nested is not None and self.word("resource") and self.tokens[self.place + 1].kind == "name":
                self.next()
                nested.append(self.declared(is_module=False))
            else:
                key = self.string() if self.now.kind == "string" else Literal(self.name())
                self.needs(":")
                self.lines()
                entries.append((key, self.expression()))
            if not self.sees("}", ",") and self.now.kind != "newline":
                raise self.fail("the end of the property")
            self.separators()
        return Object(tuple(entries))
