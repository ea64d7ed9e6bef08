"""`project.ini`, read as the public ones are written, and the folders beside it.

Format: https://learn.microsoft.com/azure/cyclecloud/how-to/projects. CycleCloud publishes no expression for names and
versions; `:` and `/` separate the parts of a reference and of a path in the locker, so they are refused, as is the
project name `cyclecloud`, which nodes skip.

Only three kinds of section say what is uploaded: `[project]`, `[blobs …]` and `[spec …]`. All others, among them
`[config …]` with its nested `[[[[list …]]]]`, belong to the cluster form: their content is skipped, whatever it is.
Forms seen: https://github.com/Azure/cyclecloud-slurm, -gridengine, -htcondor, -pbspro, -symphony (project.ini).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from msgspec import Struct

from ..errors import CannotRead

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
VERSION = re.compile(r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)")
ANY_VERSION = NAME
"""Own projects of users may use another scheme (`2026.07.02`, `4.0.9-test`); only a bump needs three numbers."""
TYPES = ("application", "scheduler", "filesystem", "infrastructure", "applications")


@dataclass(frozen=True)
class Project:
    """One project folder. `specs` are the folders below `specs/`, sorted; `blobs` the files that `[blobs]` lists."""

    name: str
    version: str
    type: str
    folder: Path
    specs: tuple[str, ...]
    blobs: tuple[str, ...]
    """Paths and patterns below `blobs/`, in the order of `project.ini`."""
    version_line: int
    """Line of the version in `project.ini`, from 1."""
    label: str | None = None
    run_lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    """Spec → Chef recipes and roles; only specs that have some, whether they have a folder or not."""
    blob_lines: Mapping[str, int] = field(default_factory=dict, compare=False)
    """Entry of `blobs` → its first line in `project.ini`, from 1."""


def read_project(folder: Path) -> Project:
    """The project in a folder; everything that CycleCloud would trip over later raises ProjectUnreadable now."""
    file = folder / "project.ini"
    sections = read_sections(file)
    settings = {key: value for section in named(sections, "project") for key, value in section.settings.items()}
    name = _required(settings, file, "name")
    version = _required(settings, file, "version")
    if not NAME.fullmatch(name.value) or name.value.lower() == "cyclecloud":
        raise ProjectUnreadable(
            file,
            name.line,
            f"'{name.value}' is not a valid project name",
            "Use letters, digits, '.', '_' and '-'; not 'cyclecloud'.",
        )
    if not ANY_VERSION.fullmatch(version.value):
        raise ProjectUnreadable(
            file, version.line, f"'{version.value}' is not a valid version", "Write three numbers, for example 1.0.0."
        )
    kind = settings.get("type")
    if kind is not None and kind.value and kind.value.lower() not in TYPES:
        raise ProjectUnreadable(
            file, kind.line, f"'{kind.value}' is not a valid project type", f"Use one of: {', '.join(TYPES)}."
        )
    blobs = _blobs(sections)
    return Project(
        name=name.value,
        version=version.value,
        type=kind.value if kind is not None and kind.value else "application",
        folder=folder,
        specs=_specs(folder, file),
        blobs=tuple(name for name, _ in blobs),
        version_line=version.line,
        label=label.value if (label := settings.get("label")) and label.value else None,
        run_lists=_run_lists(sections, file),
        blob_lines=dict(reversed(blobs)),
    )


def keep_blobs(content: bytes, kept: Collection[str]) -> bytes:
    """A readable `project.ini` that lists only these blobs; a section that would list none is left out with its lines.

    What `cyclecloud project upload` makes of a listed file that is not there is not documented.
    """
    sections: list[list[str]] = [[]]
    for line in content.decode("ascii").splitlines(keepends=True):
        if line.lstrip().startswith("["):
            sections.append([])
        sections[-1].append(line)
    text = "".join(line for section in sections for line in _kept_lines(section, kept))
    return (text.rstrip() + "\n").encode("ascii")


def _kept_lines(section: list[str], kept: Collection[str]) -> list[str]:
    title = section_title(section[0]) if section else None
    if title is None or title[0] != "blobs":
        return section
    lines, is_empty = [], True
    for line in section:
        setting = SETTING.match(line.strip())
        if setting is not None and setting["key"].lower() == "files":
            names = [name.strip() for name in setting["value"].split(",")]
            value = ", ".join(name for name in names if name in kept)
            is_empty = is_empty and not value
            line = f"{line[: line.index('=') + 1]} {value}\n"
        lines.append(line)
    return [] if is_empty else lines


def _required(settings: Mapping[str, Value], file: Path, key: str) -> Value:
    value = settings.get(key)
    if value is None or not value.value:
        line = value.line if value else None
        raise ProjectUnreadable(file, line, f"[project] has no {key}", f"Add '{key} = …' below [project].")
    return value


def _blobs(sections: list[Section]) -> list[tuple[str, int]]:
    """(entry, line), in the order of the file."""
    lists = [files for section in named(sections, "blobs") if (files := section.settings.get("files"))]
    return [(name, files.line) for files in lists for name in _words(files)]


def _run_lists(sections: list[Section], file: Path) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for section in named(sections, "spec"):
        if not NAME.fullmatch(section.name):
            raise _no_spec_name(file, section.line, section.name)
        if words := _words(section.settings.get("run_list")):
            found[section.name] = words
    return found


def _words(value: Value | None) -> tuple[str, ...]:
    """The parts of a list that commas separate."""
    return tuple(word.strip() for word in value.value.split(",") if word.strip()) if value else ()


def _specs(folder: Path, file: Path) -> tuple[str, ...]:
    """Specs are folders with cluster-init or chef content; a mis-laid one would upload nothing, so it is refused.

    An empty folder is none: Azure/cyclecloud-htcondor keeps one with a `.gitkeep`.
    """
    root = folder / "specs"
    names = []
    for name in _visible(root):
        if not (root / name).is_dir():
            continue
        if not NAME.fullmatch(name):
            raise _no_spec_name(root / name, None, name)
        if any((root / name / kind).is_dir() for kind in ("cluster-init", "chef")):
            names.append(name)
        elif _visible(root / name):
            raise ProjectUnreadable(
                root / name, None, "the spec has neither cluster-init/ nor chef/",
                f"Move its scripts to specs/{name}/cluster-init/scripts.",
            )  # fmt: skip
    if not names:
        raise ProjectUnreadable(file, None, "the project has no spec", "Create specs/default/cluster-init/scripts.")
    return tuple(names)


def _no_spec_name(file: Path, line: int | None, name: str) -> ProjectUnreadable:
    return ProjectUnreadable(file, line, f"'{name}' is not a valid spec name", "Use letters, digits, '.', '_' and '-'.")


def _visible(folder: Path) -> list[str]:
    """Names in a folder, sorted, without hidden ones; none where there is no folder."""
    try:
        return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise ProjectUnreadable(folder, None, f"cannot be read: {error.strerror}") from error


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


class Value(Struct, frozen=True):
    value: str
    line: int
    """From 1."""


class Section(Struct, frozen=True):
    """One section of ours: `[spec Scheduler]` has kind `spec` and name `Scheduler`. Keys are in lower case."""

    kind: str
    name: str
    line: int
    settings: dict[str, Value] = msgspec.field(default_factory=dict)


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
    return (section for section in sections if section.kind == kind)
