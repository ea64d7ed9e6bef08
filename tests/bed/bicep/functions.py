"""Functions of Bicep and ARM templates whose results follow from their arguments.

Source: https://learn.microsoft.com/azure/azure-resource-manager/bicep/bicep-functions
`uniqueString` and `guid` are one-way functions of Azure's own; here they have the documented form, not its values.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import uuid
from collections.abc import Callable
from functools import reduce
from ipaddress import IPv4Network
from itertools import zip_longest
from typing import Any

from .values import EvaluationError, Late, UndecidedError, is_late

_BASE32 = "abcdefghijklmnopqrstuvwxyz234567"
_NAMESPACE = uuid.UUID("11fb06fb-712d-4ddd-98c7-e71bbd588830")
_LIMIT = 2**63


def _text(value: Any) -> str:
    """A value in a text, as `format` writes it."""
    if isinstance(value, bool):
        return "True" if value else "False"
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return str(value)
    raise EvaluationError(f"not a text, a number or a boolean in a text: {value!r}")


def joined(*parts: Any) -> str:
    """The parts of an interpolated text."""
    text = "".join(_text(part) for part in parts)
    return Late(text) if any(is_late(part) for part in parts) else text


def _format(pattern: str, *arguments: Any) -> str:
    pieces: list[Any] = []
    rest = pattern
    while rest:
        before, brace, after = rest.partition("{")
        if "}" in before.replace("}}", ""):
            raise EvaluationError(f"a single }} in {pattern!r}")
        pieces.append(before.replace("}}", "}"))
        if not brace:
            break
        if after.startswith("{"):
            pieces.append("{")
            rest = after[1:]
            continue
        number, _, rest = after.partition("}")
        pieces.append(arguments[int(number)])
    return joined(*pieces)


def _known(*values: Any) -> None:
    if any(isinstance(value, Late) for value in values):
        raise UndecidedError(f"depends on {next(value for value in values if isinstance(value, Late))!r}")


def _length(value: Any) -> int:
    _known(value)
    return len(value)


def _empty(value: Any) -> bool:
    _known(value)
    return value is None or len(value) == 0


def _contains(container: Any, wanted: Any) -> bool:
    _known(container)
    if isinstance(container, dict):
        return str(wanted).lower() in {key.lower() for key in container}
    if isinstance(container, str):
        return _text(wanted) in container
    return wanted in container


def _concat(*values: Any) -> Any:
    if all(isinstance(value, list) for value in values):
        return [item for value in values for item in value]
    return joined(*values)


def _union(first: Any, *others: Any) -> Any:
    if isinstance(first, list):
        return _distinct([item for value in (first, *others) for item in value])
    merged = dict(first)
    for other in others:
        for key, value in other.items():
            both = isinstance(value, dict) and isinstance(merged.get(key), dict)
            merged[key] = _union(merged[key], value) if both else value
    return merged


def _distinct(values: list[Any]) -> list[Any]:
    return [value for place, value in enumerate(values) if value not in values[:place]]


def _split(text: Any, delimiters: Any) -> Any:
    marks = [delimiters] if isinstance(delimiters, str) else delimiters
    if isinstance(text, Late):
        return text.part(f".split({delimiters!r})")
    pieces = [text]
    for mark in marks:
        pieces = [piece for each in pieces for piece in each.split(mark)]
    return pieces


def _join(values: Any, delimiter: str) -> Any:
    if isinstance(values, Late):
        return values.part(f".join({delimiter!r})")
    text = delimiter.join(_text(value) for value in values)
    return Late(text) if is_late(values) else text


def _of_text(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of texts: late if an argument is."""

    def called(*arguments: Any) -> Any:
        if not isinstance(arguments[0], str):
            raise EvaluationError(f"not a text: {arguments[0]!r}")
        result = function(*arguments)
        if not is_late(list(arguments)):
            return result
        if isinstance(result, str):
            return Late(result)
        raise UndecidedError(f"depends on {arguments[0]!r}")

    return called


def _unique_string(*parts: str) -> str:
    digest = int.from_bytes(hashlib.sha256("-".join(parts).encode()).digest(), "big")
    text = "".join(_BASE32[digest >> 5 * place & 31] for place in range(13))
    return Late(text) if is_late(list(parts)) else text


def _guid(*parts: str) -> str:
    text = str(uuid.uuid5(_NAMESPACE, "-".join(parts)))
    return Late(text) if is_late(list(parts)) else text


def _string(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    return Late(text) if is_late(value) else text


def _base64(value: str) -> str:
    text = base64.b64encode(value.encode()).decode()
    return Late(text) if is_late(value) else text


def _map(values: list[Any], function: Callable[..., Any]) -> list[Any]:
    return [function(value, index) for index, value in enumerate(values)]


def _filter(values: list[Any], function: Callable[..., Any]) -> list[Any]:
    return [value for index, value in enumerate(values) if decided(function(value, index))]


def _reduce(values: list[Any], initial: Any, function: Callable[..., Any]) -> Any:
    return reduce(lambda held, item: function(held, item), values, initial)


def _parse_cidr(text: str) -> dict[str, Any]:
    """Host bits are cut off: https://learn.microsoft.com/azure/azure-resource-manager/bicep/bicep-functions-cidr"""
    try:
        block = IPv4Network(text, strict=False)
    except ValueError as error:
        raise EvaluationError(f"parseCidr: {error}") from None
    usable = (block[0], block[-1]) if block.prefixlen >= 31 else (block[1], block[-2])
    return {
        "network": str(block.network_address),
        "netmask": str(block.netmask),
        "broadcast": str(block.broadcast_address),
        "firstUsable": str(usable[0]),
        "lastUsable": str(usable[1]),
        "cidr": block.prefixlen,
    }


def _map_values(value: Any, function: Callable[..., Any]) -> Any:
    if isinstance(value, Late):
        return value.part(".mapValues()")
    return {key: function(item) for key, item in value.items()}


def _to_object(values: list[Any], key: Callable[..., Any], item: Callable[..., Any] = lambda value: value) -> Any:
    keys = [key(value) for value in values]
    if len(set(keys)) != len(keys):
        raise EvaluationError(f"toObject has a key twice: {keys}")
    return {name: item(value) for name, value in zip(keys, values, strict=True)}


def _create_object(*pairs: Any) -> dict[str, Any]:
    return dict(zip_longest(pairs[::2], pairs[1::2]))


def _items(value: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": value[key]} for key in sorted(value)]


def decided(value: Any) -> bool:
    """A condition: true or false, and nothing else."""
    if isinstance(value, Late):
        raise UndecidedError(f"depends on {value!r}")
    if not isinstance(value, bool):
        raise EvaluationError(f"not a boolean: {value!r}")
    return value


def equal(left: Any, right: Any) -> bool:
    """`==`: whether something late is equal to anything, null included, only the running deployment knows."""
    if is_late(left) or is_late(right):
        raise UndecidedError(f"compares {left!r} with {right!r}")
    return type(left) is type(right) and bool(left == right)


def whole(value: int) -> int:
    """A result within 64 bits, which is all that Azure has."""
    if isinstance(value, bool) or not isinstance(value, int) or not -_LIMIT <= value < _LIMIT:
        raise EvaluationError(f"not an integer of 64 bits: {value!r}")
    return value


def _int(value: Any) -> int:
    if not re.fullmatch(r"-?\d+", str(value)):
        raise EvaluationError(f"int: not a number: {value!r}")
    return whole(int(value))


def _div(left: int, right: int) -> int:
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": lambda left, right: whole(whole(left) + whole(right)),
    "base64": _base64,
    "coalesce": lambda *values: next((value for value in values if value is not None), None),
    "concat": _concat,
    "contains": _contains,
    "createArray": lambda *values: list(values),
    "createObject": _create_object,
    "div": lambda left, right: _div(whole(left), whole(right)),
    "empty": _empty,
    "equals": equal,
    "filter": _filter,
    "format": _format,
    "greater": lambda left, right: left > right,
    "greaterOrEquals": lambda left, right: left >= right,
    "guid": _guid,
    "int": _int,
    "items": _items,
    "join": _join,
    "json": json.loads,
    "length": _length,
    "less": lambda left, right: left < right,
    "lessOrEquals": lambda left, right: left <= right,
    "map": _map,
    "mapValues": _map_values,
    "max": lambda *values: max(values[0] if isinstance(values[0], list) else values),
    "min": lambda *values: min(values[0] if isinstance(values[0], list) else values),
    "mod": lambda left, right: left - right * _div(whole(left), whole(right)),
    "mul": lambda left, right: whole(whole(left) * whole(right)),
    "not": lambda value: not decided(value),
    "null": lambda: None,
    "parseCidr": _parse_cidr,
    "range": lambda start, count: list(range(start, start + count)),
    "reduce": _reduce,
    "replace": _of_text(lambda text, old, new: text.replace(old, new)),
    "split": _split,
    "startsWith": _of_text(lambda text, start: text.lower().startswith(start.lower())),
    "string": _string,
    "sub": lambda left, right: whole(whole(left) - whole(right)),
    "toObject": _to_object,
    "tryGet": lambda value, *path: _try_get(value, *path),
    "union": _union,
    "uniqueString": _unique_string,
}


def _try_get(value: Any, *path: Any) -> Any:
    for part in path:
        if isinstance(value, Late):
            value = value.part(f".{part}")
        else:
            try:
                value = value[part]
            except (KeyError, IndexError, TypeError):
                return None
    return value


def member(value: Any, key: Any) -> Any:
    """`value.key` and `value[key]`; what is not there stops the deployment."""
    if isinstance(value, Late):
        return value.part(f"[{key}]" if isinstance(key, int) else f".{key}")
    if isinstance(key, Late):
        raise UndecidedError(f"depends on {key!r}")
    try:
        return value[key]
    except (KeyError, IndexError, TypeError):
        raise EvaluationError(f"{key!r} is not in {_short(value)}") from None


def _short(value: object) -> str:
    return repr(value)[:200]
