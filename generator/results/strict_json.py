"""Bytes of a file to plain data, strictly: UTF-8, one JSON value, no key twice, no NaN."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any, NoReturn

from .problems import Unusable

_BOM = b"\xef\xbb\xbf"
_CONTROL = bytes(byte for byte in range(32) if byte not in b"\t\n\f\r")
_BROKEN_OFF = re.compile(r"|t|tr|tru|f|fa|fal|fals|n|nu|nul|-|\.|[eE][+-]?|\\?u?[0-9a-fA-F]{0,4}")
"""What is left from where JSON cannot go on to the end of a file that only ends too early."""
_SPACE = b" \t\n\r"
_LOOK = 4096
"""Bytes that decide whether a file is text."""


def parsed(text: str) -> Any:
    """The value that a text is. Unusable says what is wrong, and where JSON tells it."""
    return _value(text, _PLAIN, lambda value: _keys(value) == "".join(text.split()).count('":'))


def parsed_large(content: bytes, keys: Callable[[Any], int]) -> Any:
    """The same for a large file with very many numbers: the caller looks for numbers that are too large.

    `keys` counts the keys of all objects of a usual value, and gives -1 for another one, which is read key by key.
    """
    return _value(text_of(content), _FAST, lambda value: keys(value) == content.translate(None, _SPACE).count(b'":'))


def _value(text: str, decoder: json.JSONDecoder, has_each_key_once: Callable[[Any], bool]) -> Any:
    if text.lstrip()[:1] not in ("{", "["):
        raise Unusable("foreign", "it is text, but not a JSON object")
    try:
        value = decoder.decode(text)
        if not has_each_key_once(value):
            value = _STRICT.decode(text)
    except json.JSONDecodeError as error:
        raise _syntax(error, text) from None
    except RecursionError:
        raise Unusable("damaged", "its brackets are nested too deeply") from None
    except ValueError:  # Python refuses thousands of digits
        raise Unusable("not_a_number", "it holds a number of thousands of digits") from None
    return value


def text_of(content: bytes) -> str:
    """The text that a file is. Unusable says why it is none."""
    content = content.removeprefix(_BOM)
    if not content.strip():
        raise Unusable("empty", "the file is empty")
    if not content.strip(b"\0"):
        raise Unusable("empty", f"the file holds {len(content)} zero bytes and nothing else")
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise Unusable("encoding", "it is UTF-16, not UTF-8")
    head = content[:_LOOK]
    if len(head.translate(None, _CONTROL)) != len(head):
        raise Unusable("binary", "it is binary, not text")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - content.rfind(b"\n", 0, error.start)
        message = f"it is not UTF-8: byte 0x{content[error.start]:02x}"
        raise Unusable("encoding", message, line, column) from None


def _syntax(error: json.JSONDecodeError, text: str) -> Unusable:
    end = len(text.rstrip())
    rest = text[error.pos : end]
    if _BROKEN_OFF.fullmatch(rest) or error.msg.startswith("Unterminated string"):
        line, column = text.count("\n", 0, end) + 1, end - text.rfind("\n", 0, end)
        return Unusable("truncated", f"the file ends in the middle, after {len(text.encode())} bytes", line, column)
    message = error.msg[0].lower() + error.msg[1:]
    return Unusable("damaged", f"it is not JSON: {message}", error.lineno, error.colno)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise Unusable("duplicate_key", f"key '{twice[:80]}' occurs twice in one object")
    return result


def _no_number(word: str) -> NoReturn:
    raise Unusable("not_a_number", f"it holds {word}")


def _finite(word: str) -> float:
    value = float(word)
    if not math.isfinite(value):
        raise Unusable("not_a_number", f"it holds {word[:40]}, which is too large")
    return value


def _integer(word: str) -> int:
    if len(word) > 300:  # Python refuses thousands of digits with an error of its own
        raise Unusable("not_a_number", f"it holds a number of {len(word)} digits")
    return int(word)


_OBJECTS = frozenset({dict})


def _keys(value: Any) -> int:
    """The keys of a result: those of its own, and of the objects in its lists; -1 for anything nested deeper.

    Without blanks, every key of the file ends in `":`, and some texts have that inside. A file that has as many of them
    as keys holds no key twice; only the others are read key by key.
    """
    if type(value) is not dict:
        return -1
    count = len(value)
    for member in value.values():
        if type(member) is list:
            if not _OBJECTS.issuperset(map(type, member)):
                return -1
            count += sum(map(len, member))
        elif type(member) is dict:
            return -1
    return count


_NUMBERS: dict[str, Any] = {"parse_constant": _no_number, "parse_float": _finite, "parse_int": _integer}
_PLAIN, _STRICT = json.JSONDecoder(**_NUMBERS), json.JSONDecoder(object_pairs_hook=_object, **_NUMBERS)
_FAST = json.JSONDecoder(parse_constant=_no_number)
