"""CycleCloud project folders for the tests of packaging."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from generator.projects.package import Package

INI = "[project]\nname = demo\nversion = 1.0.0\ntype = application\n"
SCRIPT = "default/cluster-init/scripts/10-x.sh"


def project(folder: Path, ini: str = INI, specs: Mapping[str, bytes] | None = None, **others: bytes) -> Path:
    """A project; `specs` are files below `specs/`, `others` any further ones with `__` for `/`."""
    files = {f"specs/{name}": content for name, content in (specs or {SCRIPT: b"#!/bin/sh\n"}).items()}
    files |= {name.replace("__", "/"): content for name, content in others.items()}
    for name, content in {"project.ini": ini.encode(), **files}.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    return folder


def paths(package: Package) -> list[str]:
    """The files of a package, as text."""
    return [path.as_posix() for path in package.files]


def content(package: Package, path: str) -> bytes:
    """The bytes of one of them."""
    with package.files[PurePosixPath(path)].open() as stream:
        return stream.read()
