"""Which file a word on the command line means, and which files no word means."""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from pathlib import Path

from ..errors import CannotRead
from ..files import assets
from ..words.suggestions import suggestion

FOLDER = "cluster_defs"
OUT = Path("output")
"""Where deployment folders are built, unless `--out` says otherwise."""
SUFFIXES = (".yaml", ".yml")
_TELLING = 2
"""So many sections of a definition at its top make a YAML file one: other tools have a `name` or a `location`, too."""
_SECTIONS = frozenset({"name", "location", "admin", "azure", "network", "server", "security", "storage", "slurm"})
_KEY = re.compile(rb"^(\w+)[ \t]*:", re.MULTILINE)


def here() -> list[Path]:
    """Every definition of this folder: all of cluster_defs/, and the files beside it that are definitions."""
    found = _all()
    if not found:
        text = f"there are no definitions here: no {FOLDER}/, and no YAML file with `name` and `location`"
        raise CannotRead(text, "`cycleforge init NAME` writes one")
    return found


def find(word: str) -> Path | None:
    """The file that a word on the command line means; None for standard input.

    A word is a path, the name of a file without its suffix, or the `name` in a definition of this folder.
    """
    if word == "-":
        return None
    found = look(word)
    if found is None:
        raise _unknown(word)
    return found


def look(word: str) -> Path | None:
    """The same; None where nothing has that name."""
    path = Path(word)
    if path.suffix in SUFFIXES or len(path.parts) > 1 or path.is_file():
        return _by_path(word, path)
    found = _by_stem(word)
    named = [each for each in (*_in(Path(FOLDER)), *_in(Path())) if each != found and is_named(each, word)]
    if found is None or (named and not is_named(found, word)):
        if len(named) + (found is not None) > 1:
            files = ", ".join(str(each) for each in (*([found] if found else []), *named))
            raise CannotRead(f"'{word}' is more than one definition: {files}", "name the file")
        found = found or next(iter(named), None)
    shipped = assets.folder(FOLDER) / f"{word}.yaml"
    return found or (shipped if shipped.is_file() else None)


def is_shipped(path: Path) -> bool:
    """Whether the definition is one of those that CycleForge brings, and no file of this folder."""
    return path.parent.resolve() == assets.folder(FOLDER).resolve() != Path(FOLDER).resolve()


def _by_path(word: str, path: Path) -> Path:
    folders = (Path(FOLDER), assets.folder(FOLDER)) if len(path.parts) == 1 else ()
    for found in (path, *(folder / word for folder in folders)):
        if found.exists():
            return found
    raise CannotRead(f"there is no file {word}", suggestion(word, [str(other) for other in _in(path.parent)]))


def _by_stem(word: str) -> Path | None:
    files = (folder / f"{word}{suffix}" for folder in (Path(FOLDER), Path()) for suffix in SUFFIXES)
    return next((path for path in files if path.is_file()), None)


def _unknown(word: str) -> CannotRead:
    known = list(dict.fromkeys(word for path in _all() for word in (path.stem, name_in(path)) if word))
    shipped = [each.stem for each in _in(assets.folder(FOLDER))]
    hint = suggestion(word, [*known, *shipped])
    if hint is None:
        examples = f"`cycleforge init NAME` writes one; examples: {', '.join(shipped)}"
        hint = f"definitions here: {', '.join(known)}" if known else examples
    return CannotRead(f"there is no definition '{word}' here or in {FOLDER}/", hint)


def _all() -> list[Path]:
    return [*_in(Path(FOLDER)), *(path for path in _in(Path()) if _is_definition(path))]


def _in(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES and path.is_file())
    except OSError:
        return []


def is_named(path: Path, name: str) -> bool:
    """Whether a file is the definition of the deployment with this name."""
    text = _read(path)
    return (name.encode() in text or b"${" in text) and name_in(path) == name


def names() -> list[str]:
    """The names of the deployments that the definitions of this folder describe."""
    return [name for path in _all() if (name := name_in(path))]


def name_in(path: Path) -> str | None:
    """The `name` of a definition, variables filled in; None where it cannot be read."""
    from ..definition.text.source import load

    data = load(_read(path), path.name, os.environ).data or {}
    name = data.get("name")
    return name if isinstance(name, str) and len(_SECTIONS & set(data)) >= _TELLING else None


def _is_definition(path: Path) -> bool:
    """A definition with problems is one, too: it is read, and they are said."""
    from ..definition.text.source import load

    text = _read(path)
    if not any(section.encode() in text for section in _SECTIONS):
        return False
    data = load(text, path.name, {}).data
    keys = {match.decode() for match in _KEY.findall(text)} if data is None else set(data)
    return len(_SECTIONS & keys) >= _TELLING


def read_at_most(word: str | Path, most: int) -> bytes:
    """A file that the user named, - for standard input; a byte more than `most`, so that an endless one is noticed."""
    if word == "-":
        return sys.stdin.buffer.read(most + 1)
    try:
        with Path(word).open("rb") as file:
            return file.read(most + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise CannotRead(f"cannot read {word}: {reason.lower()}") from error


def content_of(path: Path, most: int) -> bytes:
    """Of a file that the command line does not name: what cannot be read is empty."""
    with suppress(CannotRead):
        return read_at_most(path, most)
    return b""


def _read(path: Path) -> bytes:
    from ..definition.text.source import MAX_BYTES

    return content_of(path, MAX_BYTES)
