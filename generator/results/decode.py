"""JSON of other machines to declared types: a good file in one pass; for any other, what is wrong in words and where.

Unknown keys are refused, so a new key needs a new format. A key that occurs twice in one object is not noticed: the
last one counts.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, NoReturn

import msgspec
from msgspec import Meta, inspect

from ..words.suggestions import suggestion
from .hostlist import NODE_NAME
from .problems import Unusable

NodeName = Annotated[str, Meta(pattern=rf"^(?:{NODE_NAME})\Z", description="the name of a node")]
Moment = Annotated[
    str,
    Meta(
        pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z\Z",
        description="a UTC time such as 2026-11-23T06:30:00Z",
    ),
]

_BOM = b"\xef\xbb\xbf"
_CONTROL = bytes(byte for byte in range(32) if byte not in b"\t\n\f\r")
_BROKEN_OFF = re.compile(r"|t|tr|tru|f|fa|fal|fals|n|nu|nul|-|\.|[eE][+-]?|\\?u?[0-9a-fA-F]{0,4}")
"""The rest, from the place of the error, of a file that was only cut off."""
_LOOK = 4096
"""Bytes that are examined to tell whether a file is text."""


def decoded(
    content: bytes, usual: msgspec.json.Decoder[Any], decoder_of: Callable[[Any], msgspec.json.Decoder[Any]]
) -> Any:
    """Return what a file holds, as the type of the decoder. Raise Unusable.

    For JSON that the usual decoder refuses, `decoder_of` returns the decoder to use, or raises.
    """
    try:
        return usual.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        text = _text_of(content)
        value = _parsed(text)
    decoder = decoder_of(value)
    try:
        return decoder.decode(text)
    except msgspec.ValidationError as error:
        raise Unusable("invalid", _sentence(str(error), value, decoder.type)) from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise Unusable("damaged", f"it is not usable JSON: {str(error)[:200]}") from None


def refuse_no_moment(name: str, text: str) -> None:
    """Raise ValueError, from a `__post_init__`, for an invalid date and time, or one without a zone."""
    try:
        zone = datetime.fromisoformat(text).tzinfo
    except ValueError:
        raise ValueError(f"'{name}' is {json.dumps(text[:40])}, not a valid date and time") from None
    if zone is None:
        raise ValueError(f"'{name}' has no time zone")


def refuse_newer(value: Any, known: int) -> None:
    """Raise Unusable for a newer format."""
    found = value.get("format")
    if type(found) is int and found > known:
        raise Unusable("future_format", f"it has format {found}; this CycleForge reads format {known}")


# ---------------------------------------------------------------- what is no JSON


def _text_of(content: bytes) -> str:
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


def _parsed(text: str) -> Any:
    """Parse with Python's own parser, whose errors tell line and column."""
    if text.lstrip()[:1] not in ("{", "["):
        raise Unusable("foreign", "it is text, but not a JSON object")
    try:
        value = json.loads(text, parse_constant=_no_number, parse_float=_finite)
        json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise _syntax(error, text) from None
    except UnicodeEncodeError:
        raise Unusable("encoding", "it escapes half a character, which no text can hold") from None
    except RecursionError:
        raise Unusable("damaged", "its brackets are nested too deeply") from None
    except ValueError:  # Python refuses thousands of digits
        raise Unusable("not_a_number", "it holds a number of thousands of digits") from None
    return value


def _syntax(error: json.JSONDecodeError, text: str) -> Unusable:
    end = len(text.rstrip())
    rest = text[error.pos : end]
    if _BROKEN_OFF.fullmatch(rest) or error.msg.startswith("Unterminated string"):
        line, column = text.count("\n", 0, end) + 1, end - text.rfind("\n", 0, end)
        return Unusable("truncated", f"the file ends in the middle, after {len(text.encode())} bytes", line, column)
    message = error.msg[0].lower() + error.msg[1:]
    return Unusable("damaged", f"it is not JSON: {message}", error.lineno, error.colno)


def _no_number(word: str) -> NoReturn:
    raise Unusable("not_a_number", f"it holds {word}")


def _finite(word: str) -> float:
    value = float(word)
    if not math.isfinite(value):
        raise Unusable("not_a_number", f"it holds {word[:40]}, which is too large")
    return value


# ---------------------------------------------------------------- what has another type

_STEP = re.compile(r"\.(\w+)|\[(\d+)\]|\[\.\.\.\]")
_MISSING = re.compile(r"Object missing required field `(.*)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_OF_TYPE = ("Expected ", "Invalid enum value", "Integer value out of range", "Number out of range")


def _sentence(error: str, value: Any, declared: Any) -> str:
    """Rephrase an error of msgspec, with the value and what the declaration wants in its place."""
    message, _, path = error.partition(" - at `$")
    place = path.removesuffix("`").removeprefix(".")
    below = f"{place}." if place else ""
    if found := _MISSING.fullmatch(message):
        return f"'{below}{found[1]}' is missing"
    if found := _UNKNOWN.fullmatch(message):
        return f"'{below}{found[1][:80]}' is not a key of this format"
    if not message.startswith(_OF_TYPE):
        return message  # a declaration's own words
    kind: Any = inspect.type_info(declared)
    for name, index in _STEP.findall(path):
        kind = _plain(kind)
        if name:
            kind, value = next(field.type for field in kind.fields if field.encode_name == name), value[name]
        elif index:
            kind = kind.item_types[int(index)] if isinstance(kind, inspect.TupleType) else kind.item_type
            value = value[int(index)]
        else:  # some value of an object
            kind = kind.value_type
            value = next((each for each in value.values() if type(each) is not str), value)
    shown = json.dumps(value)
    where = f"'{place}'" if place else "it"
    return f"{where} is {shown if len(shown) <= 60 else f'{shown[:59]}…'}, not {_wanted(kind, value)}"


def _plain(kind: Any) -> Any:
    return kind.type if isinstance(kind, inspect.Metadata) else kind


def _wanted(kind: Any, value: Any) -> str:
    """Describe the values of a type; `value` is what was found instead."""
    match kind:
        case inspect.Metadata():
            return str((kind.extra_json_schema or {}).get("description") or _wanted(kind.type, value))
        case inspect.LiteralType():
            words = [str(word) for word in kind.values if word != ""]
            near = suggestion(value, words) if isinstance(value, str) and value else None
            return f"{'one of ' if len(words) > 1 else ''}{', '.join(words)}{f' ({near})' if near else ''}"
        case inspect.StrType():
            if not isinstance(value, str):
                return "a text"
            return f"a text of at most {kind.max_length} characters" if value else "a text with characters"
        case inspect.IntType():
            return f"a whole number from {kind.ge}" if type(value) is int else "a whole number"
        case inspect.ListType():
            return f"a list of at most {kind.max_length}" if isinstance(value, list) else "a list"
        case inspect.UnionType():
            return " or ".join(dict.fromkeys(_wanted(each, value) for each in kind.types))
        case inspect.NoneType():
            return "null"
        case inspect.BoolType():
            return "true or false"
        case inspect.FloatType():
            return f"a number within ±{kind.lt:g}" if kind.lt else "a number"
    return "an object"
