"""ClassAd expressions as templates use them: `:= expr`, `= =expr`, `${expr}`.

Source: https://learn.microsoft.com/azure/cyclecloud/cluster-references/special-parsing
Strings are in double quotes with backslash escapes; names in single quotes are attribute names, as in
`['slurm:default'=[Order=1000]]`. `$Name` inside an expression means the same as `Name`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

Scalar = None | bool | int | float | str


class Constant(Struct, frozen=True):
    """A value that is written out; None is `undefined`."""

    value: Scalar


class Duration(Struct, frozen=True):
    """Relative time, for example `10m` between back-ticks."""

    text: str


class Name(Struct, frozen=True):
    """A parameter, or an attribute of the record that a filter looks at."""

    text: str


class Call(Struct, frozen=True):
    function: str
    arguments: tuple[Tree, ...]


class Unary(Struct, frozen=True):
    """`!x` or `-x`."""

    operator: str
    operand: Tree


class Binary(Struct, frozen=True):
    operator: str
    left: Tree
    right: Tree


class Conditional(Struct, frozen=True):
    """`test ? yes : no`."""

    test: Tree
    yes: Tree
    no: Tree


class Index(Struct, frozen=True):
    """`record[name]` or `list[number]`."""

    holder: Tree
    key: Tree


class Items(Struct, frozen=True):
    """A list in braces."""

    items: tuple[Tree, ...]


class Record(Struct, frozen=True):
    """A record in brackets: `[Label="x"; Value=1]`."""

    fields: tuple[tuple[str, Tree], ...]


Tree = Constant | Duration | Name | Call | Unary | Binary | Conditional | Index | Items | Record

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
      | (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<quoted>'[^']*')
      | (?P<duration>`[^`]*`)
      | (?P<name>\$?[A-Za-z_][A-Za-z0-9_.]*)
      | (?P<operator>===|=!=|=\?=|!==|==|!=|<=|>=|&&|\|\||[-+*/%<>!?:(){}\[\],;=])
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_ESCAPE = re.compile(r"\\([0-3][0-7]{2}|.)", re.DOTALL)
_WORDS = {"true": True, "false": False, "undefined": None}
# Weakest first. The words bind like the comparisons they stand for.
_LEVELS = (
    frozenset({"||"}),
    frozenset({"&&"}),
    frozenset({"==", "!=", "===", "!==", "=!=", "=?=", "is", "isnt", "in"}),
    frozenset({"<", "<=", ">", ">="}),
    frozenset({"+", "-"}),
    frozenset({"*", "/", "%"}),
)


class _Token(Struct, frozen=True):
    kind: str
    text: str


def unescape(text: str) -> str:
    """The characters that a double-quoted literal stands for; octal escapes have three digits."""

    def one(match: re.Match[str]) -> str:
        code = match.group(1)
        return chr(int(code, 8)) if len(code) == 3 else _ESCAPES.get(code, code)

    return _ESCAPE.sub(one, text)


def integer(text: str) -> int:
    """A whole number; Python itself refuses to read more than some thousand digits."""
    try:
        return int(text)
    except ValueError as error:
        raise ExpressionError(f"the number {text[:20]}… has too many digits") from error


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise ExpressionError(f"cannot read {text[at:].strip()[:20]!r} in an expression")
        yield _Token(match.lastgroup, match.group(match.lastgroup))
        at = match.end()
    yield _Token("end", "")


class _Parser:
    """Recursive descent; one instance per expression."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._at = 0

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self) -> _Token:
        token = self._next
        self._at += 1
        return token

    def _accept(self, *texts: str) -> bool:
        if self._next.kind in ("operator", "name") and self._next.text in texts:
            self._at += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            found = repr(self._next.text) if self._next.kind != "end" else "the end"
            raise ExpressionError(f"expected {text!r} in an expression, found {found}")

    def whole(self) -> Tree:
        tree = self._conditional()
        if self._next.kind != "end":
            raise ExpressionError(f"unexpected {self._next.text!r} after an expression")
        return tree

    def _conditional(self) -> Tree:
        test = self._binary(0)
        if not self._accept("?"):
            return test
        yes = self._conditional()
        self._expect(":")
        return Conditional(test, yes, self._conditional())

    def _binary(self, level: int) -> Tree:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while self._next.kind in ("operator", "name") and self._next.text.lower() in _LEVELS[level]:
            operator = self._take().text.lower()
            left = Binary(operator, left, self._binary(level + 1))
        return left

    def _unary(self) -> Tree:
        if self._next.kind == "operator" and self._next.text in ("!", "-", "+"):
            return Unary(self._take().text, self._unary())
        tree = self._primary()
        while self._accept("["):
            tree = Index(tree, self._conditional())
            self._expect("]")
        return tree

    def _primary(self) -> Tree:
        token = self._take()
        if token.kind == "number":
            return Constant(float(token.text) if re.search(r"[.eE]", token.text) else integer(token.text))
        if token.kind == "string":
            return Constant(unescape(token.text[1:-1]))
        if token.kind == "duration":
            return Duration(token.text[1:-1])
        if token.kind == "quoted":
            return Name(token.text[1:-1])
        if token.kind == "name":
            return self._word(token.text)
        if token.text == "(":
            inner = self._conditional()
            self._expect(")")
            return inner
        if token.text == "{":
            return Items(self._list("}"))
        if token.text == "[":
            return self._record()
        found = repr(token.text) if token.kind != "end" else "the end"
        raise ExpressionError(f"expected a value in an expression, found {found}")

    def _word(self, text: str) -> Tree:
        if text.lower() in _WORDS:
            return Constant(_WORDS[text.lower()])
        if not text.startswith("$") and self._accept("("):
            return Call(text, self._list(")"))
        return Name(text.removeprefix("$"))

    def _list(self, close: str) -> tuple[Tree, ...]:
        items: list[Tree] = []
        while not self._accept(close):
            if items:
                self._expect(",")
                if self._accept(close):
                    break
            items.append(self._conditional())
        return tuple(items)

    def _record(self) -> Record:
        fields: list[tuple[str, Tree]] = []
        while not self._accept("]"):
            key = self._take()
            if key.kind not in ("name", "quoted"):
                raise ExpressionError(f"expected a field name in a record, found {key.text or 'the end'!r}")
            self._expect("=")
            fields.append((key.text.strip("'"), self._conditional()))
            if not self._accept(";"):
                self._expect("]")
                break
        return Record(tuple(fields))


def parse_expression(text: str) -> Tree:
    """The tree of one expression; ExpressionError if it is not one."""
    try:
        return _Parser(text).whole()
    except RecursionError as error:
        raise ExpressionError("the expression is nested too deeply") from error


def children(tree: Tree) -> tuple[Tree, ...]:
    """The direct parts of a tree."""
    match tree:
        case Call(_, arguments):
            return arguments
        case Unary(_, operand):
            return (operand,)
        case Binary(_, left, right):
            return (left, right)
        case Conditional(test, yes, no):
            return (test, yes, no)
        case Index(holder, key):
            return (holder, key)
        case Items(items):
            return items
        case Record(fields):
            return tuple(value for _, value in fields)
        case _:
            return ()


def walk(tree: Tree) -> Iterator[Tree]:
    """The tree and everything below it, left to right."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(children(node)))


def names(tree: Tree) -> tuple[str, ...]:
    """Names that the expression reads, in order, without repetition."""
    return tuple(dict.fromkeys(node.text for node in walk(tree) if isinstance(node, Name)))


class ExpressionError(ValueError):
    """The text is not a ClassAd expression; the reader of the template adds the line."""


class EvaluationError(ValueError):
    """A well-formed expression has no value here: an unknown function or name, or operands that do not fit."""
