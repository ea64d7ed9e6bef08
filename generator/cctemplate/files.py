"""A template file and its parameter file as they come from a user: read, checked, with a place for every problem.

A parameter file is a flat JSON object. Source: https://learn.microsoft.com/azure/cyclecloud/how-to/cluster-templates
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from msgspec import Struct, field

from ..problems.problem import KeyPath, Place, Problem
from ..problems.sorting import sort_problems
from .checks import check
from .rules import BadParameterFile, ControlCharacter, NothingInIt, NotText, TemplateTooLarge
from .syntax import Template, lines_of, read
from .values import Value

MAX_BYTES = 4 * 1024 * 1024
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_SHOWN_CHARACTERS = 5
"""Control characters that are reported: a binary file has thousands."""


class FileText(Struct, frozen=True):
    """The text of one of the files, as the printer of problems wants it."""

    filename: str
    lines: tuple[str, ...]
    keys: Mapping[str, Place] = field(default_factory=dict)
    values: Mapping[str, Place] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    """Nothing: templates do not read the environment."""

    def position(self, path: KeyPath, *, on_key: bool = False) -> Place:
        """Where a parameter's name or value stands; the first line for what is not there."""
        places = self.keys if on_key else self.values
        return places.get(str(path[0]), Place(1, 1, 1)) if path else Place(1, 1, 1)

    def is_from_environment(self, path: KeyPath) -> bool:
        return False


class CheckedFile(Struct, frozen=True):
    """One file with its problems, sorted; `is_understood` is false where something in it could not be read."""

    source: FileText
    problems: tuple[Problem, ...]
    is_understood: bool


def check_files(template: tuple[str, bytes], parameters: tuple[str, bytes] | None = None) -> tuple[CheckedFile, ...]:
    """Check a template and the parameter file beside it, each given as (name, content). Never raises for bad input."""
    given, shown = (None, ()) if parameters is None else _parameter_file(parameters[1])
    checked, about_values = _template(*template, given)
    if parameters is None or given is None:
        return (checked,)
    source = FileText(parameters[0], shown, given.keys, given.places)
    problems = sort_problems([*given.problems, *about_values], source)
    return (checked, CheckedFile(source, problems, given.values is not None))


def _template(name: str, content: bytes, given: ParameterFile | None) -> tuple[CheckedFile, list[Problem]]:
    """The checked template, and the problems that belong to the parameter file."""
    text, refused = _decode(content)
    if text is None:
        source = FileText(name, _lines(content))
        return CheckedFile(source, sort_problems(refused, source), is_understood=False), []
    source = FileText(name, tuple(lines_of(text)))
    tree, unreadable = read(text)
    found: list[Problem] = []
    if tree.sections:
        values = None if given is None else given.values
        found += check(tree, values=values, late=_left_open(tree, values or {}))
    elif not unreadable:
        hint = "begin with [cluster NAME]"
        found.append(NothingInIt.problem((), "the file holds no section", hint, place=Place(1, 1, 1)))
    # What could not be read may be what another line refers to; the file is judged without it all the same.
    problems = [*unreadable, *(problem for problem in found if problem.place is not None)]
    is_understood = bool(tree.sections) and not unreadable
    checked = CheckedFile(source, sort_problems(problems, source), is_understood)
    return checked, [problem for problem in found if problem.place is None]


def _left_open(template: Template, values: Mapping[str, Value]) -> frozenset[str]:
    """Parameters that the file says nothing about on purpose: null, because the import or the form gives their value.

    Source: https://learn.microsoft.com/azure/cyclecloud/cli#cyclecloud-import_cluster (-P)
    """
    return frozenset(section.name for section in template.parameters if values.get(section.name, "") is None)


def _decode(content: bytes) -> tuple[str | None, list[Problem]]:
    """The text, or None and what prevents reading it."""
    if len(content) > MAX_BYTES:
        text = f"the file is larger than {MAX_BYTES:,} bytes"
        return None, [TemplateTooLarge.problem((), text, place=Place(1, 1, 1))]
    try:
        text = content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8", "replace")
        column = len(before) - before.rfind("\n")
        place = Place(before.count("\n") + 1, column, column + 1)
        is_wide = content.startswith((b"\xff\xfe", b"\xfe\xff"))
        message = f"byte 0x{content[error.start]:02x} is not UTF-8 text"
        message = "the file is UTF-16, not UTF-8" if is_wide else message
        return None, [NotText.problem((), message, "save the file as UTF-8", place=place)]
    found = list(_control_characters(text))
    return (None, found) if found else (text, [])


def _control_characters(text: str) -> Iterator[Problem]:
    for count, match in enumerate(_CONTROL.finditer(text)):
        if count == _SHOWN_CHARACTERS:
            break
        at = match.start()
        column = at - text.rfind("\n", 0, at)
        place = Place(text.count("\n", 0, at) + 1, column, column + 1)
        message = f"the character U+{ord(match[0]):04X} is not allowed in the file"
        yield ControlCharacter.problem((), message, "delete it", place=place)


def _lines(content: bytes) -> tuple[str, ...]:
    """Return the lines of a file that could not be read, as far as they can be shown."""
    return tuple(lines_of(content[:MAX_BYTES].decode("utf-8", "replace")))


def _parameter_file(content: bytes) -> tuple[ParameterFile, tuple[str, ...]]:
    text, refused = _decode(content)
    if text is None:
        return ParameterFile(None, tuple(refused)), _lines(content)
    return read_parameters(text), tuple(lines_of(text))


_BLANKS = re.compile(r"[ \t\n\r]*")


class ParameterFile(Struct, frozen=True):
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
        """Read one name and its value; the index after both and the spaces that follow."""
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
