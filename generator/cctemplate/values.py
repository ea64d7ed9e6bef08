"""Values of attributes: how a template is read; `generator.cctemplate.writing` is the other way round.

`=` takes plain text, which CycleCloud types by its look: numbers, `true`, comma lists, `$Parameter`, `${expression}`.
`:=` takes a ClassAd expression as it stands, in which `$`, `#` and commas inside quotes mean nothing.
Source: https://learn.microsoft.com/azure/cyclecloud/cluster-references/special-parsing
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from msgspec import Struct

from .expressions import (
    Binary,
    Call,
    Conditional,
    Constant,
    Duration,
    EvaluationError,
    ExpressionError,
    Index,
    Items,
    Name,
    Record,
    Tree,
    Unary,
    integer,
    names,
    parse_expression,
)

_INTEGER = re.compile(r"[+-]?[0-9]+")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][+-]?[0-9]+)?")
_PARAMETER = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")


class Expression(Struct, frozen=True):
    """A value that is computed. `text` is what is in the file."""

    text: str
    tree: Tree


class Interpolation(Struct, frozen=True):
    """Text with expressions inside, for example `${ClusterName}-data`."""

    parts: tuple[str | Tree, ...]


class Listing(Struct, frozen=True):
    items: tuple[AttributeValue, ...]


AttributeValue = Constant | Duration | Expression | Interpolation | Listing


def references(value: AttributeValue) -> tuple[str, ...]:
    """Names that the value reads, in order, without repetition."""
    found: list[str] = []
    match value:
        case Expression(_, tree):
            found.extend(names(tree))
        case Interpolation(parts):
            for part in parts:
                found.extend(() if isinstance(part, str) else names(part))
        case Listing(items):
            for item in items:
                found.extend(references(item))
        case _:
            pass
    return tuple(dict.fromkeys(found))


def value_of(value: AttributeValue, variables: Mapping[str, Value]) -> Value:
    """The value for given parameters; EvaluationError where a name is unknown or operands do not fit."""
    match value:
        case Constant(constant):
            return constant
        case Duration(text):
            return text
        case Expression(_, tree):
            return evaluate(tree, variables)
        case Interpolation(parts):
            return "".join(part if isinstance(part, str) else _as_text(evaluate(part, variables)) for part in parts)
        case Listing(items):
            return [value_of(item, variables) for item in items]


def _as_text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def known_value(value: AttributeValue, variables: Mapping[str, Value]) -> Value:
    """The value; undefined where it has none with these variables, which other checks report."""
    try:
        return value_of(value, variables)
    except EvaluationError:
        return None


# ---------------------------------------------------------------- reading


def read_expression(text: str) -> AttributeValue:
    """Read what follows `:=`; a constant or a list of constants is returned as such."""
    tree = parse_expression(text)
    if isinstance(tree, Constant | Duration):
        return tree
    if isinstance(tree, Items) and all(isinstance(item, Constant) for item in tree.items):
        return Listing(tuple(item for item in tree.items if isinstance(item, Constant)))
    return Expression(text, tree)


def read_value(text: str) -> AttributeValue:
    """Read what follows `=` on one line, without surrounding spaces."""
    if text.startswith("="):
        return read_expression(text[1:].strip())
    pieces = _split(text)
    if len(pieces) > 1:
        return Listing(tuple(_scalar(piece.strip()) for piece in pieces))
    return _scalar(text)


def _scalar(text: str) -> AttributeValue:
    if len(text) > 1 and text[0] == text[-1] == '"' and '"' not in text[1:-1].replace('\\"', ""):
        return Constant(text[1:-1].replace('\\"', '"').replace("\\\\", "\\"))
    if len(text) > 1 and text[0] == text[-1] == "`":
        return Duration(text[1:-1])
    if _INTEGER.fullmatch(text):
        return Constant(integer(text))
    if _FLOAT.fullmatch(text):
        return Constant(float(text))
    if text.lower() in ("true", "false"):
        return Constant(text.lower() == "true")
    if (match := _PARAMETER.fullmatch(text)) is not None:
        return Expression(text, Name(match.group(1)))
    return _interpolated(text)


def _interpolated(text: str) -> AttributeValue:
    parts: list[str | Tree] = []
    at = plain_from = 0
    while (at := text.find("$", at)) >= 0:
        if text.startswith("${", at):
            end = _closing_brace(text, at + 2)
            tree = parse_expression(text[at + 2 : end])
            after = end + 1
        elif (match := _PARAMETER.match(text, at)) is not None:
            tree, after = Name(match.group(1)), match.end()
        else:
            at += 1
            continue
        parts += [text[plain_from:at], tree]
        at = plain_from = after
    if not parts:
        return Constant(text)
    parts.append(text[plain_from:])
    kept = tuple(part for part in parts if part != "")
    if len(kept) == 1 and not isinstance(kept[0], str):
        return Expression(text, kept[0])
    return Interpolation(kept)


def _closing_brace(text: str, start: int) -> int:
    """Index of the brace that ends `${` before `start`; braces of lists nest, quoted text does not count."""
    depth, at, quoted = 1, start, False
    while at < len(text):
        character = text[at]
        if quoted and character == "\\":
            at += 1
        elif character == '"':
            quoted = not quoted
        elif not quoted and character in "{}":
            depth += 1 if character == "{" else -1
            if depth == 0:
                return at
        at += 1
    raise ExpressionError("'${' is not closed")


def _split(text: str) -> list[str]:
    """Parts between commas that are neither quoted nor inside `${…}`."""
    pieces, start, at, quoted = [], 0, 0, False
    while at < len(text):
        character = text[at]
        if quoted and character == "\\":
            at += 1
        elif character == '"':
            quoted = not quoted
        elif not quoted and text.startswith("${", at):
            at = _closing_brace(text, at + 2)
        elif not quoted and character == ",":
            pieces.append(text[start:at])
            start = at + 1
        at += 1
    return [*pieces, text[start:]]


Value = None | bool | int | float | str | list["Value"] | dict[str, "Value"]


def evaluate(tree: Tree, variables: Mapping[str, Value]) -> Value:
    """The value; a name that is not among the variables raises EvaluationError."""
    try:
        return _evaluate(tree, variables)
    except RecursionError as error:
        raise EvaluationError("the expression is nested too deeply") from error


def _evaluate(tree: Tree, variables: Mapping[str, Value]) -> Value:
    match tree:
        case Constant(value):
            return value
        case Duration(text):
            return text
        case Name(text):
            if text not in variables:
                raise EvaluationError(f"nothing is known of {text!r}")
            return variables[text]
        case Items(items):
            return [_evaluate(item, variables) for item in items]
        case Record(fields):
            return {name: _evaluate(value, variables) for name, value in fields}
        case Unary(operator, operand):
            return _unary(operator, _evaluate(operand, variables))
        case Conditional(test, yes, no):
            chosen = _choose(_evaluate(test, variables), yes, no)
            return None if chosen is None else _evaluate(chosen, variables)
        case Index(holder, key):
            return _item(_evaluate(holder, variables), _evaluate(key, variables))
        case Binary(operator, left, right):
            return _binary(operator, _evaluate(left, variables), _evaluate(right, variables))
        case Call(function, arguments):
            return _call(function, arguments, variables)


def _choose(test: Value, yes: Tree, no: Tree) -> Tree | None:
    if test is None:
        return None
    if not isinstance(test, bool):
        raise EvaluationError(f"{test!r} is neither true nor false")
    return yes if test else no


def _item(holder: Value, key: Value) -> Value:
    """An item of a record or list; undefined where there is none."""
    if isinstance(holder, dict):
        return holder.get(key) if isinstance(key, str) else None
    if isinstance(holder, list) and isinstance(key, int) and not isinstance(key, bool):
        return holder[key] if 0 <= key < len(holder) else None
    if holder is None or key is None:
        return None
    raise EvaluationError(f"{holder!r} has no items")


def _unary(operator: str, value: Value) -> Value:
    if value is None:
        return None
    if operator == "!" and isinstance(value, bool):
        return not value
    if operator in "+-" and isinstance(value, int | float) and not isinstance(value, bool):
        return -value if operator == "-" else value
    raise EvaluationError(f"{operator} does not apply to {value!r}")


def _same(left: Value, right: Value) -> bool:
    """`is`: same type and value; texts with case."""
    return isinstance(left, bool) == isinstance(right, bool) and left == right


def _binary(operator: str, left: Value, right: Value) -> Value:
    if operator in ("is", "===", "=?="):
        return _same(left, right)
    if operator in ("isnt", "!==", "=!="):
        return not _same(left, right)
    if operator in ("&&", "||"):
        return _logic(decisive=operator == "||", left=left, right=right)
    if left is None or right is None:
        return None
    if operator == "in":
        return isinstance(right, list) and any(_same(left, item) for item in right)
    if operator in ("==", "!="):
        equal = left.lower() == right.lower() if isinstance(left, str) and isinstance(right, str) else left == right
        return equal == (operator == "==")
    if isinstance(left, int | float) and isinstance(right, int | float):
        return _numbers(operator, left, right)
    raise EvaluationError(f"{operator} does not apply to {left!r} and {right!r}")


def _logic(*, decisive: bool, left: Value, right: Value) -> Value:
    for side in (left, right):
        if not isinstance(side, bool | None):
            raise EvaluationError(f"{side!r} is neither true nor false")
    if decisive in (left, right):
        return decisive
    return None if None in (left, right) else not decisive


def _numbers(operator: str, left: float, right: float) -> Value:
    operations: dict[str, Callable[[], Value]] = {
        "<": lambda: left < right,
        "<=": lambda: left <= right,
        ">": lambda: left > right,
        ">=": lambda: left >= right,
        "+": lambda: left + right,
        "-": lambda: left - right,
        "*": lambda: left * right,
        "/": lambda: left / right if right else None,
        "%": lambda: left % right if right else None,
    }
    try:
        return operations[operator]()
    except OverflowError as error:
        raise EvaluationError(f"{operator} goes beyond the range of numbers") from error


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise EvaluationError(f"{value!r} is not text")


def _size(value: Value) -> Value:
    if isinstance(value, str | list):
        return len(value)
    raise EvaluationError(f"{value!r} has no size")


def _replace(pattern: Value, target: Value, substitution: Value) -> Value:
    return re.sub(_text(pattern), lambda _: _text(substitution), _text(target))


def _join(separator: Value, *parts: Value) -> Value:
    items = parts[0] if len(parts) == 1 and isinstance(parts[0], list) else parts
    return _text(separator).join(_text(item) for item in items)


def _slice(text: Value, start: Value, end: Value = None) -> Value:
    if not isinstance(start, int) or not isinstance(end, int | None):
        raise EvaluationError("substr needs whole numbers")
    return _text(text)[start:end]


# Apart from ifThenElse and ifUndefined, a function of something undefined is undefined.
_FUNCTIONS: dict[str, Callable[..., Value]] = {
    "strcat": lambda *parts: "".join(_text(part) for part in parts),
    "strjoin": _join,
    "tolower": lambda value: _text(value).lower(),
    "toupper": lambda value: _text(value).upper(),
    "startswith": lambda value, start: _text(value).startswith(_text(start)),
    "endswith": lambda value, end: _text(value).endswith(_text(end)),
    "trim": lambda value: _text(value).strip(),
    "size": _size,
    "regexp": lambda pattern, target: re.search(_text(pattern), _text(target)) is not None,
    "regexps": _replace,
    "substr": _slice,
}
KNOWN_FUNCTIONS = frozenset(_FUNCTIONS) | {"ifthenelse", "ifundefined"}


def _call(function: str, arguments: tuple[Tree, ...], variables: Mapping[str, Value]) -> Value:
    name = function.lower()
    if name == "ifthenelse" and len(arguments) == 3:
        test, yes, no = arguments
        return _evaluate(Conditional(test, yes, no), variables)
    values = [_evaluate(argument, variables) for argument in arguments]
    if name == "ifundefined" and len(values) == 2:
        return values[1] if values[0] is None else values[0]
    if name not in _FUNCTIONS:
        raise EvaluationError(f"function {function} is not known or takes other arguments")
    if None in values:
        return None
    try:
        return _FUNCTIONS[name](*values)
    except (TypeError, re.error) as error:
        raise EvaluationError(f"function {function} takes other arguments") from error
