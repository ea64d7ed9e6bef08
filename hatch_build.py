"""What travels in a wheel and in a source archive: the files that git has, and nothing that happens to be beside them.

The folder of the package is called `generator` here and `cycleforge` where it is installed; imports inside it are
relative, so one source serves both. Hatch can remove a folder's name on the way into a wheel but not change it, which
is why this hook names every file. Source: https://hatch.pypa.io/latest/plugins/build-hook/reference/
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE, INSTALLED = "generator", "cycleforge"
SOURCES = ("bicep_templates", "bootstrap", "cluster_defs", "projects", "recipes")
"""Folders that the generator reads; in a checkout they are found beside the package."""


class TrackedFiles(BuildHookInterface[Any]):
    """Names the files of a wheel or a source archive."""

    _shim: Path | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Before the build: `version` is `editable` or `standard`."""
        if version == "editable":
            self._shim = Path(tempfile.mkdtemp()) / "__init__.py"
            text = f"__path__ = [{self._source(PACKAGE)!r}]\n"
            self._shim.write_text(text, encoding="utf-8")
            build_data["force_include_editable"] = {str(self._shim): f"{INSTALLED}/__init__.py"}
            return
        place = _place_in_wheel if self.target_name == "wheel" else _place_in_archive
        places = {self._source(name): place(name) for name in tracked(Path(self.root))}
        build_data["force_include"] = {source: place for source, place in places.items() if place}

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """After the build."""
        if self._shim is not None:
            shutil.rmtree(self._shim.parent)

    def _source(self, name: str) -> str:
        return str(Path(self.root) / name)


def tracked(root: Path) -> list[str]:
    """Paths below the checkout that git has and that are still there; in a source archive, which has no git, all."""
    if not (root / ".git").exists():
        return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z"], check=True, capture_output=True, text=True, encoding="utf-8"
    )
    return sorted(name for name in listed.stdout.split("\0") if name and (root / name).is_file())


def _place_in_wheel(name: str) -> str | None:
    top, _, rest = name.partition("/")
    if "__pycache__" in name.split("/"):
        return None
    if top == PACKAGE:
        return f"{INSTALLED}/{rest}"
    return f"{INSTALLED}/_assets/{name}" if top in SOURCES else None


def _place_in_archive(name: str) -> str | None:
    # Hatch adds PKG-INFO itself, and a name may be in an archive only once.
    return None if name in {"pyproject.toml", "PKG-INFO", "README.md", "LICENSE"} else name
