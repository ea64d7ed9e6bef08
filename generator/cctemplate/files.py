"""A template file and its parameter file as they come from a user: read, checked, with a place for every problem."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field

from ..problems.problem import KeyPath, Place, Problem
from ..problems.sorting import sort_problems
from ..records import record
from .checks import check
from .evaluate import Value
from .parameter_file import ParameterFile, read_parameters
from .rules import ControlCharacter, NothingInIt, NotText, TemplateTooLarge
from .syntax import Template, lines_of, read

MAX_BYTES = 4 * 1024 * 1024
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_SHOWN_CHARACTERS = 5
"""Control characters that are reported: a binary file has thousands."""


@record
class FileText:
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
        """Never."""
        return False


@record
class CheckedFile:
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
    """What can be shown of a file that could not be read."""
    return tuple(lines_of(content[:MAX_BYTES].decode("utf-8", "replace")))


def _parameter_file(content: bytes) -> tuple[ParameterFile, tuple[str, ...]]:
    text, refused = _decode(content)
    if text is None:
        return ParameterFile(None, tuple(refused)), _lines(content)
    return read_parameters(text), tuple(lines_of(text))
