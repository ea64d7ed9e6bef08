"""One file to a record: bounded reading, strict JSON, validation; whatever is wrong is an `Unusable`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ..results import strict_json
from ..results.problems import Unusable
from ..results.walk import regular_bytes
from ..words.suggestions import suggestion
from .record import FORMAT, RECORD_KEYS, Fault, InvalidRecordError, Run, key_count, validated
from .verdicts import VERDICTS

MAX_RECORD_BYTES = 2**26
"""The pairs of a thousand nodes have some 40 MiB."""
_FEW = 3


def read_value(path: str) -> Any:
    """The JSON of a file. Unusable, or OSError."""
    content = regular_bytes(path, MAX_RECORD_BYTES)
    value = strict_json.parsed_large(content, key_count)
    if b"\\" in content:
        _refuse_half_characters(value)
    return value


def run_of(value: Any, shown: str) -> Run:
    """The record that a value is. Unusable."""
    if not isinstance(value, dict) or not RECORD_KEYS & value.keys():
        raise Unusable("foreign", "it is JSON, but not the record of a run")
    refuse_other_formats(value, FORMAT)
    try:
        return validated(value, shown)
    except InvalidRecordError as error:
        raise Unusable("invalid", "; ".join(_sentences(error.faults))) from None


def refuse_other_formats(value: dict[str, Any], known: int) -> None:
    """Unusable for a form that this version does not read."""
    found = value.get("format")
    if type(found) is not int:
        raise Unusable(
            "invalid", "'format' is missing" if found is None else f"'format' is {_short(found)}, not a number"
        )
    if found > known:
        raise Unusable("future_format", f"it has format {found}; this CycleForge reads format {known}")
    if found != known:
        raise Unusable("invalid", f"'format' is {found}, not {known}")


def _refuse_half_characters(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise Unusable("encoding", "it escapes half a character, which no text can hold") from None


def _sentences(faults: list[Fault]) -> Iterator[str]:
    for fault in faults[:_FEW]:
        yield _sentence(fault)
    if len(faults) > _FEW:
        yield f"and {len(faults) - _FEW} more"


def _sentence(fault: Fault) -> str:
    if not fault.wanted:
        return f"{fault.where} is missing"
    words = f"{fault.where} is {_short(fault.found)}, not {fault.wanted}"
    if fault.where.endswith("'verdict'") and isinstance(fault.found, str):
        near = suggestion(fault.found, VERDICTS)
        words += f" ({near})" if near else ""
    return words


def _short(value: object) -> str:
    shown = json.dumps(value)
    return shown if len(shown) <= 60 else f"{shown[:59]}…"
