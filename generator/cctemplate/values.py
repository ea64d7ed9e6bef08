"""Values of attributes: how a template is read; `generator.cctemplate.writing` is the other way round.

`=` takes plain text, which CycleCloud types by its look: numbers, `true`, comma lists, `$Parameter`, `${expression}`.
`:=` takes a ClassAd expression as it stands, in which `$`, `#` and commas inside quotes mean nothing.
Source: https://learn.microsoft.com/azure/cyclecloud/cluster-references/special-parsing
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..records import record
from .errors import ExpressionError
from .evaluate import Value, evaluate
from .expressions import Constant, Duration, Items, Name, Tree, integer, names, parse_expression

_INTEGER = re.compile(r"[+-]?[0-9]+")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][+-]?[0-9]+)?")
_PARAMETER = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")


@record
class Expression:
    """A value that is computed. `text` is what is in the file; `is_reference` marks a bare `$Parameter`."""

    text: str
    tree: Tree
    is_reference: bool = False


@record
class Interpolation:
    """Text with expressions inside, for example `${ClusterName}-data`."""

    parts: tuple[str | Tree, ...]


@record
class Listing:
    """Values separated by commas."""

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


def constant(value: AttributeValue) -> Value:
    """The value of something that reads no parameter; EvaluationError otherwise."""
    return value_of(value, {})


# ---------------------------------------------------------------- reading


def read_expression(text: str) -> AttributeValue:
    """What is after `:=`; a constant or a list of constants is returned as such."""
    tree = parse_expression(text)
    if isinstance(tree, Constant | Duration):
        return tree
    if isinstance(tree, Items) and all(isinstance(item, Constant) for item in tree.items):
        return Listing(tuple(item for item in tree.items if isinstance(item, Constant)))
    return Expression(text, tree)


def read_value(text: str) -> AttributeValue:
    """What is after `=` on one line, without surrounding blanks."""
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
        return Expression(text, Name(match.group(1)), is_reference=True)
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
