"""docs/architecture.md names what is there: rooms as the import contract has them, files that exist."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.command import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
LAYERS: list[str] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
    "contracts"
][0]["layers"]
PATHS = sorted(set(re.findall(r"`([\w./-]+/[\w.-]+\.\w+|[\w/]+/)`", PAGE)))


def test_the_rooms_are_those_of_the_contract() -> None:
    """In the same order, each beside its neighbours."""
    rooms = PAGE.split("Each room is one folder", 1)[1].split("A module imports", 1)[0]
    drawn = [re.split(r" {3,}", line.strip())[:-1] for line in rooms.splitlines() if line.startswith("    ")]
    assert drawn == [layer.split(" | ") for layer in LAYERS]


def test_every_room_is_drawn() -> None:
    """A folder of the package without a place in the contract would be free of it."""
    folders = {path.parent.name for path in (ROOT / "generator").glob("*/__init__.py")}
    single = {"pipeline", "references", "login", "connections", "errors"}
    assert folders | single == {room for layer in LAYERS for room in layer.split(" | ")}


@pytest.mark.parametrize("name", PATHS)
def test_every_file_is_there(name: str) -> None:
    """Relative to the checkout, to the package or to the folder of the Bicep templates."""
    assert any((ROOT / top / name).exists() for top in (".", "generator", "bicep_templates"))


def test_nothing_in_the_sources_is_a_link() -> None:
    """Some ways of copying make a file of a link, which holds the name of its target."""
    tops = ("bootstrap", "cluster_defs", "docs", "generator", "projects", "recipes", "tests")
    assert [path for top in tops for path in (ROOT / top).rglob("*") if path.is_symlink()] == []
