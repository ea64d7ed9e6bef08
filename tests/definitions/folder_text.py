"""A deployment folder as one text: whole, or as what differs from the folder of another definition."""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath

from generator.files import assets
from generator.files.file import File, Files
from generator.plan.deployment import Plan
from tests.bed.difference import changes

SOURCES = ("bicep_templates/modules", "bootstrap", "projects", "recipes")


@cache
def sources() -> Mapping[str, str]:
    """sha256 of every file that may be copied → its place in the checkout."""
    found: dict[str, str] = {}
    for folder in SOURCES:
        for path in sorted((assets.root() / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                found.setdefault(hashlib.sha256(path.read_bytes()).hexdigest(), str(path.relative_to(assets.root())))
    return found


def _is_packed(path: PurePosixPath) -> bool:
    """Holds what the other files hold: shown by name, or as a listing."""
    digests = (PurePosixPath("manifest.json"), PurePosixPath("bootstrap/payload.txt"))
    return path.parts[:2] == ("bootstrap", "payload") or path in digests or path.name == "library.digest"


def _source(file: File) -> str | None:
    return sources().get(hashlib.sha256(file.content).hexdigest())


@dataclass(frozen=True)
class Folder:
    """One rendered folder and the plan that it was made from."""

    plan: Plan
    files: Files

    @property
    def name(self) -> str:
        return self.plan.name

    def written(self) -> dict[PurePosixPath, str]:
        """The text of every file that is generated, not copied, in the order of their paths."""
        return {
            path: file.content.decode("utf-8")
            for path, file in sorted(self.files.items())
            if not _is_packed(path) and _source(file) is None
        }

    def listing(self) -> list[str]:
        """A line per file: its mode, its path, and what it is a copy of."""
        lines = []
        for path, file in sorted(self.files.items()):
            source = None if _is_packed(path) else _source(file)
            copied = "" if source is None else "  (copy)" if source == str(path) else f"  (copy of {source})"
            # The name of a library changes with each of its files.
            shown = re.sub("^jobs/lib/[0-9a-f]{16}/", "jobs/lib/DIGEST/", str(path))
            lines.append(f"{'x' if file.executable else '-'} {shown}{copied}")
        return lines

    def payload(self) -> list[str]:
        """What travels to the server, by mode and name."""
        chunks = [file.content for path, file in sorted(self.files.items()) if path.match("bootstrap/payload/*")]
        if not chunks:
            return []
        with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as archive:
            return [f"{member.mode:04o} {member.name}" for member in archive.getmembers()]

    def role(self, path: PurePosixPath) -> tuple[str, ...]:
        """What a file is for: the same in another folder, where the cluster and the jobs have other names."""
        if path.parts[0] == "cluster":
            return ("cluster", path.suffixes[-1])
        if path.is_relative_to("jobs/lib"):
            return ("jobs", "lib", path.name)
        if path.parts[0] == "jobs" and len(path.parts) > 2:
            recipe = next((job.recipe for job in self.plan.jobs if job.name == path.parts[1]), path.parts[1])
            return ("jobs", recipe, *path.parts[2:])
        return path.parts

    def roles(self) -> dict[tuple[str, ...], str]:
        """Role → text of the first file that has it."""
        found: dict[tuple[str, ...], str] = {}
        for path, text in self.written().items():
            found.setdefault(self.role(path), text)
        return found


def whole(folder: Folder) -> str:
    """Everything that is generated, and a listing of all files."""
    parts = [f"==> {path}\n{text}" for path, text in folder.written().items()]
    return "\n".join([*parts, _section("files", folder.listing()), _section("payload", folder.payload())])


def difference(folder: Folder, bases: tuple[Folder, ...]) -> str:
    """The same, each file as what differs from its counterpart in the first base that has one.

    Names of the base are replaced by those of the folder before they are compared. A file without a counterpart stands
    as it is.
    """
    parts = []
    for path, text in folder.written().items():
        base = next((base for base in bases if folder.role(path) in base.roles()), None)
        if base is None:
            parts.append(f"==> {path}\n{text}")
            continue
        other = _renamed(base.roles()[folder.role(path)], base, folder)
        lines = changes(other, text)
        parts.append("\n".join([f"==> {path}: as in {base.name}{' but' if lines else ''}", *lines, ""]))
    first = bases[0]
    for title, mine, theirs in (
        ("files", folder.listing(), [_renamed(line, first, folder) for line in first.listing()]),
        ("payload", folder.payload(), first.payload()),
    ):
        parts.append(_section(f"{title}: as in {first.name} but", changes("\n".join(theirs), "\n".join(mine))))
    return "\n".join(parts)


def _section(title: str, lines: list[str]) -> str:
    return "\n".join([f"==> {title}", *lines, ""])


def _renamed(text: str, base: Folder, folder: Folder) -> str:
    return re.sub(rf"\b{re.escape(base.name)}\b", folder.name, text)
