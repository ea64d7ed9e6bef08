"""How a value is written into a template so that it is read back unchanged.

Apart from reading, because rendering needs no parser.
Source: https://learn.microsoft.com/azure/cyclecloud/cluster-references/special-parsing
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from msgspec import Struct

_BARE = re.compile(r"[A-Za-z_/~][A-Za-z0-9_./:@~+-]*")
_TYPED_WORDS = frozenset({"true", "false", "undefined", "error", "nan", "inf", "infinity"})


class Raw(Struct, frozen=True):
    """A ClassAd expression that is written as it stands, after `:=`."""

    text: str


class Verbatim(Struct, frozen=True):
    """A `$Parameter` or `${expression}` that is written as it stands, after `=`."""

    text: str


Writable = None | bool | int | float | str | Sequence["Writable"] | Raw | Verbatim


def classad(value: Writable) -> str:
    """A literal for use inside an expression."""
    if value is None:
        return "undefined"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return _number(value)
    if isinstance(value, str):
        return '"' + "".join(_escaped(character) for character in value) + '"'
    if isinstance(value, Raw | Verbatim):
        return value.text
    return "{" + ", ".join(classad(item) for item in value) + "}"


def assignment(value: Writable) -> str:
    """Operator and value, for example `= htc` or `:= "costs $5"`; what is read back equals what was given.

    Plain text stays plain. What CycleCloud would read as something else (a number, a word like `true`, a list, a
    parameter, a quote) is quoted, and what even quotes would not protect becomes an expression.
    """
    if isinstance(value, Verbatim):
        return f"= {value.text}"
    if isinstance(value, bool) or (isinstance(value, int | float) and not isinstance(value, bool)):
        return f"= {classad(value)}"
    if isinstance(value, str):
        if _BARE.fullmatch(value) and value.lower() not in _TYPED_WORDS:
            return f"= {value}"
        if value.isprintable() and not set(value) & set('"\\$`'):
            return f'= "{value}"'
    return f":= {classad(value)}"


def _number(value: float) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not allowed in a template")
    return repr(value)


_WRITTEN = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _escaped(character: str) -> str:
    if character in _WRITTEN:
        return _WRITTEN[character]
    return character if ord(character) >= 0x20 and character != "\x7f" else f"\\{ord(character):03o}"
