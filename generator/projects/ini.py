"""`project.ini` and the folders beside it.

Format: https://learn.microsoft.com/azure/cyclecloud/how-to/projects. CycleCloud publishes no expression for names and
versions; `:` and `/` separate the parts of a reference and of a path in the locker, so they are refused, as is the
project name `cyclecloud`, which nodes skip.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from generator.errors import CannotRead

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
VERSION = re.compile(r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)")
ANY_VERSION = NAME
"""Own projects of users may use another scheme (`2026.07.02`, `4.0.9-test`); only a bump needs three numbers."""
TYPES = ("application", "scheduler", "filesystem", "infrastructure", "applications")
_SECTION = re.compile(r"\[+\s*(?P<title>[^\[\]]*?)\s*\]+\s*$")
_SETTING = re.compile(r"(?P<key>[^=\s:][^=]*?)\s*:?=\s*(?P<value>.*)$")


class ProjectUnreadable(CannotRead):
    """A project folder or its `project.ini` cannot be used. `file` and `line` (from 1) say where."""

    def __init__(self, file: Path, line: int | None, message: str, hint: str | None = None) -> None:
        place = f"{file}:{line}" if line else str(file)
        super().__init__(f"{place}: {message}", hint)
        self.file = file
        self.line = line
        self.problem = message


@dataclass(frozen=True)
class Project:
    """One project folder. `specs` are the folders below `specs/`, sorted; `blobs` the files that `[blobs]` lists."""

    name: str
    version: str
    type: str
    folder: Path
    specs: tuple[str, ...]
    blobs: tuple[str, ...]
    version_line: int
    """Line of the version in `project.ini`, from 1."""


def read_project(folder: Path) -> Project:
    """The project in a folder; everything that CycleCloud would trip over later raises ProjectUnreadable now."""
    file = folder / "project.ini"
    settings = _settings(file)
    name = _required(settings, file, "name")
    version = _required(settings, file, "version")
    if not NAME.fullmatch(name.value) or name.value.lower() == "cyclecloud":
        raise ProjectUnreadable(
            file,
            name.line,
            f"'{name.value}' is no project name",
            "Use letters, digits, '.', '_' and '-'; not 'cyclecloud'.",
        )
    if not ANY_VERSION.fullmatch(version.value):
        raise ProjectUnreadable(
            file, version.line, f"'{version.value}' is no version", "Write three numbers, for example 1.0.0."
        )
    kind = settings.get(("project", "type"))
    if kind is not None and kind.value and kind.value.lower() not in TYPES:
        raise ProjectUnreadable(
            file, kind.line, f"'{kind.value}' is no project type", f"Use one of: {', '.join(TYPES)}."
        )
    return Project(
        name=name.value,
        version=version.value,
        type=kind.value if kind is not None and kind.value else "application",
        folder=folder,
        specs=_specs(folder, file),
        blobs=_blobs(settings),
        version_line=version.line,
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
    title = _SECTION.match(section[0].strip()) if section else None
    if title is None or title["title"].lower().split(" ")[0] != "blobs":
        return section
    lines, is_empty = [], True
    for line in section:
        setting = _SETTING.match(line.strip())
        if setting is not None and setting["key"].lower() == "files":
            names = [name.strip() for name in setting["value"].split(",")]
            value = ", ".join(name for name in names if name in kept)
            is_empty = is_empty and not value
            head = line[: line.index("=") + 1]
            line = f"{head} {value}\n"
        lines.append(line)
    return [] if is_empty else lines


@dataclass(frozen=True)
class _Value:
    value: str
    line: int


def _text(file: Path) -> str:
    """The text with `\\n` line ends. Only ASCII: what CycleCloud makes of other characters is not known."""
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        raise ProjectUnreadable(
            file.parent, None, "no project.ini", "A project is a folder with a project.ini and specs/."
        ) from None
    except OSError as error:
        raise ProjectUnreadable(file, None, f"cannot be read: {error.strerror}") from error
    for number, line in enumerate(content.split(b"\n"), start=1):
        if not line.isascii():
            raise ProjectUnreadable(
                file, number, "has characters outside ASCII", "Remove them; also a byte-order mark."
            )
    return content.decode("ascii").replace("\r\n", "\n")


def _settings(file: Path) -> dict[tuple[str, str], _Value]:
    """(section, key) → value and line; section and key in lower case, since CycleCloud ignores their case."""
    settings: dict[tuple[str, str], _Value] = {}
    section: str | None = None
    for number, raw in enumerate(_text(file).split("\n"), start=1):
        line = raw.strip()
        if not line or line.startswith(("#", ";")):
            continue
        if line.startswith("["):
            match = _SECTION.match(line)
            if match is None:
                raise ProjectUnreadable(file, number, f"section '{line}' is not closed", "Write [project].")
            section = match["title"].lower()
            continue
        setting = _SETTING.match(line)
        if setting is None or section is None:
            raise ProjectUnreadable(file, number, f"'{line}' is no setting", "Write 'key = value' below [project].")
        key = (section, setting["key"].lower())
        if section == "project" and key in settings:
            raise ProjectUnreadable(file, number, f"'{key[1]}' is set twice, first in line {settings[key].line}")
        settings[key] = _Value(setting["value"].strip(), number)
    return settings


def _required(settings: dict[tuple[str, str], _Value], file: Path, key: str) -> _Value:
    value = settings.get(("project", key))
    if value is None or not value.value:
        line = value.line if value else None
        raise ProjectUnreadable(file, line, f"[project] has no {key}", f"Add '{key} = …' below [project].")
    return value


def _blobs(settings: dict[tuple[str, str], _Value]) -> tuple[str, ...]:
    lists = [
        value.value for (section, key), value in settings.items() if section.split(" ")[0] == "blobs" and key == "files"
    ]
    return tuple(name.strip() for text in lists for name in text.split(",") if name.strip())


def _specs(folder: Path, file: Path) -> tuple[str, ...]:
    """Specs are folders with cluster-init or chef content; a mis-laid one would upload nothing, so it is refused."""
    root = folder / "specs"
    names = (
        sorted(path.name for path in root.iterdir() if path.is_dir() and not path.name.startswith("."))
        if root.is_dir()
        else []
    )
    if not names:
        raise ProjectUnreadable(file, None, "the project has no spec", "Create specs/default/cluster-init/scripts.")
    for name in names:
        if not NAME.fullmatch(name):
            raise ProjectUnreadable(
                root / name, None, f"'{name}' is no spec name", "Use letters, digits, '.', '_' and '-'."
            )
        if not any((root / name / kind).is_dir() for kind in ("cluster-init", "chef")):
            raise ProjectUnreadable(
                root / name, None, "the spec has neither cluster-init/ nor chef/",
                f"Move its scripts to specs/{name}/cluster-init/scripts.",
            )  # fmt: skip
    return tuple(names)
