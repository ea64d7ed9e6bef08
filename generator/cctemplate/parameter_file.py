"""The parameter file of an import: a flat JSON object, with the places of its names and values.

Source: https://learn.microsoft.com/azure/cyclecloud/how-to/cluster-templates
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import field

from ..problems.problem import Place, Problem
from ..records import record
from .evaluate import Value
from .rules import BadParameterFile

_BLANKS = re.compile(r"[ \t\n\r]*")


@record
class ParameterFile:
    """What was read; `values` is None where it could not be."""

    values: Mapping[str, Value] | None
    problems: tuple[Problem, ...] = ()
    keys: Mapping[str, Place] = field(default_factory=dict)
    places: Mapping[str, Place] = field(default_factory=dict)
    """Of the values."""


def read_parameters(text: str) -> ParameterFile:
    """Read the file; never raises for bad input."""
    try:
        return _Reader(text).read()
    except json.JSONDecodeError as error:
        place = Place(error.lineno, error.colno, error.colno + 1)
        return ParameterFile(None, (BadParameterFile.problem((), f"this is not JSON: {error.msg}", place=place),))
    except RecursionError:
        return _refused("the values are nested too deeply")
    except ValueError as error:
        return _refused(error.args[0] if isinstance(error, _NotJsonError) else "a number has too many digits")


def _refused(message: str) -> ParameterFile:
    return ParameterFile(None, (BadParameterFile.problem((), message, place=Place(1, 1, 1)),))


class _NotJsonError(ValueError):
    """A word that Python reads and JSON does not know."""


def _refuse(word: str) -> Value:
    raise _NotJsonError(f"{word} is not JSON")


class _Reader:
    """Walks the outermost object, because the standard reader knows no places."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._decoder = json.JSONDecoder(parse_constant=_refuse)
        self._line, self._line_start = 1, 0
        self._values: dict[str, Value] = {}
        self._keys: dict[str, Place] = {}
        self._places: dict[str, Place] = {}
        self._problems: list[Problem] = []

    def read(self) -> ParameterFile:
        at = self._skip(0)
        if self._text[at : at + 1] != "{":
            self._decoder.decode(self._text)
            text, hint = "the parameter file is not an object of names and values", 'write {"Parameter": value, …}'
            return ParameterFile(None, (BadParameterFile.problem((), text, hint, place=self._place(at, at + 1)),))
        at = self._skip(at + 1)
        while self._text[at : at + 1] != "}":
            at = self._member(self._skip(self._expect(",", at)) if self._keys else at)
        end = self._skip(at + 1)
        if end < len(self._text):
            raise json.JSONDecodeError("something follows the object", self._text, end)
        return ParameterFile(self._values, tuple(self._problems), self._keys, self._places)

    def _member(self, at: int) -> int:
        """Read one name and its value; the index after both and the blanks that follow."""
        if self._text[at : at + 1] != '"':
            raise json.JSONDecodeError("expected a name in double quotes", self._text, at)
        name, end = self._decoder.raw_decode(self._text, at)
        place = self._place(at, end)
        start = self._skip(self._expect(":", self._skip(end)))
        value, end = self._decoder.raw_decode(self._text, start)
        if name in self._keys:
            text = f"the parameter {name!r} is set twice; the first is in line {self._keys[name].line}"
            self._problems.append(BadParameterFile.problem((), text, "remove one of the two", place=place))
        self._values[name], self._keys[name], self._places[name] = value, place, self._place(start, end)
        return self._skip(end)

    def _skip(self, at: int) -> int:
        match = _BLANKS.match(self._text, at)
        return match.end() if match else at

    def _expect(self, sign: str, at: int) -> int:
        if self._text[at : at + 1] != sign:
            raise json.JSONDecodeError(f"expected {sign!r}", self._text, at)
        return at + 1

    def _place(self, start: int, end: int) -> Place:
        """Of a stretch of the text, or of its first line. Stretches come in order, so lines are counted once."""
        breaks = self._text.count("\n", self._line_start, start)
        if breaks:
            self._line += breaks
            self._line_start = self._text.rindex("\n", 0, start) + 1
        stop = self._text.find("\n", start, end)
        end = end if stop < 0 else stop
        return Place(self._line, start - self._line_start + 1, max(end, start + 1) - self._line_start + 1)
