"""The lines of a `project.ini`, read as the public ones are written.

Only three kinds of section say what is uploaded: `[project]`, `[blobs …]` and `[spec …]`. All others, among them
`[config …]` with its nested `[[[[list …]]]]`, belong to the cluster form: their content is skipped, whatever it is.
Forms seen: https://github.com/Azure/cyclecloud-slurm, -gridengine, -htcondor, -pbspro, -symphony (project.ini).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path

from ..errors import CannotRead
from ..records import record

SETTING = re.compile(r"(?P<key>[^=\s:][^=]*?)\s*:?=\s*(?P<value>.*)$")
_SECTION = re.compile(r"\[+\s*(?P<title>[^\[\]]*?)\s*\]+$")
_OURS = ("project", "blobs", "spec")
_USED = ("name", "version", "type", "files", "run_list")
_BROKEN = re.compile(rf"\[+\s*({'|'.join(_OURS)})\b", re.IGNORECASE)
_ONE_LINE = "Write all files of a section on one line; the cyclecloud command cannot read continuation lines."


class ProjectUnreadable(CannotRead):
    """A project folder or its `project.ini` cannot be used. `file` and `line` (from 1) say where."""

    def __init__(self, file: Path, line: int | None, message: str, hint: str | None = None) -> None:
        place = f"{file}:{line}" if line else str(file)
        super().__init__(f"{place}: {message}", hint)
        self.file = file
        self.line = line
        self.problem = message


@record
class Value:
    """The text behind `=` and its line, from 1."""

    value: str
    line: int


@record
class Section:
    """One section of ours: `[spec Scheduler]` has kind `spec` and name `Scheduler`. Keys are in lower case."""

    kind: str
    name: str
    line: int
    settings: dict[str, Value] = field(default_factory=dict)


def section_title(line: str) -> tuple[str, str] | None:
    """(kind in lower case, name) of a section's first line; None for any other line."""
    match = _SECTION.match(line.strip())
    if match is None or not match["title"]:
        return None
    kind, *name = match["title"].split(None, 1)
    return kind.lower(), "".join(name)


def read_sections(file: Path) -> list[Section]:
    """The sections of ours, in the order of the file; raises ProjectUnreadable."""
    sections: list[Section] = []
    is_ours: bool | None = None
    for number, line in enumerate(_lines(file), start=1):
        text = line.strip()
        if not text or text.startswith(("#", ";")):
            continue
        title = section_title(text) if text.startswith("[") else None
        if title is not None:
            is_ours = title[0] in _OURS
            if is_ours:
                _demand_ascii(file, number, line)
                _demand_first(file, number, title, sections)
                sections.append(Section(*title, number))
        elif is_ours is not False:
            _add_setting(file, number, line, sections)
        elif _BROKEN.match(text):
            raise _not_closed(file, number, text)
    return sections


def _demand_first(file: Path, number: int, title: tuple[str, str], sections: list[Section]) -> None:
    """Which of two equal sections CycleCloud takes is not known, and files or recipes of the other would be lost."""
    kind, name = title
    for other in sections:
        if (other.kind, other.name) == title:
            hint = "Write all of it into one of them."
            if kind == "blobs":
                hint = "Write all files into one of them, or rename one, for example [blobs more]."
            label = f"{kind} {name}".strip()
            raise ProjectUnreadable(file, number, f"section [{label}] occurs twice, first in line {other.line}", hint)


def _add_setting(file: Path, number: int, line: str, sections: list[Section]) -> None:
    text = line.strip()
    setting = SETTING.match(text)
    if setting is None or setting["key"].lower() in _USED:
        _demand_ascii(file, number, line)
    if text.startswith("["):
        raise _not_closed(file, number, text)
    section = sections[-1] if sections else None
    before = list(section.settings.items())[-1:] if section is not None and section.kind == "blobs" else []
    is_continued = any(key == "files" and (setting is None or last.value.endswith(",")) for key, last in before)
    if is_continued:
        raise ProjectUnreadable(file, number, f"'{text}' continues the list of files of the line above", _ONE_LINE)
    if setting is None or section is None:
        raise ProjectUnreadable(file, number, f"'{text}' is not a setting", "Write 'key = value' below [project].")
    key, value = setting["key"].lower(), setting["value"].strip()
    if key in section.settings:
        first = section.settings[key].line
        raise ProjectUnreadable(file, number, f"'{key}' is set twice, first in line {first}", "Remove one of them.")
    if section.kind == "blobs" and key == "files" and value.endswith("\\"):
        raise ProjectUnreadable(file, number, "the list of files is continued with '\\'", _ONE_LINE)
    section.settings[key] = Value(value, number)


def _not_closed(file: Path, number: int, text: str) -> ProjectUnreadable:
    hint = "Write it on a line of its own, with brackets on both sides, for example [project]."
    return ProjectUnreadable(file, number, f"section '{text}' is not closed", hint)


def _lines(file: Path) -> list[str]:
    """The lines without their ends, which may be `\\n` or `\\r\\n`."""
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        raise ProjectUnreadable(
            file.parent, None, "no project.ini", "A project is a folder with a project.ini and specs/."
        ) from None
    except OSError as error:
        raise ProjectUnreadable(file, None, f"cannot be read: {error.strerror}") from error
    return content.decode("utf-8", "surrogateescape").split("\n")


def _demand_ascii(file: Path, number: int, line: str) -> None:
    """What CycleCloud makes of other characters in names and paths is not known."""
    if not line.isascii():
        raise ProjectUnreadable(file, number, "has characters outside ASCII", "Remove them; also a byte-order mark.")


def named(sections: list[Section], kind: str) -> Iterator[Section]:
    """The sections of one kind."""
    return (section for section in sections if section.kind == kind)
