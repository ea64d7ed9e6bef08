"""No module needs itself: circles of imports anywhere, also between a package and a module in it.

`lint-imports` (pyproject.toml) looks at siblings only. Imports inside functions and under TYPE_CHECKING count.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Set
from graphlib import CycleError, TopologicalSorter

import grimp
import pytest

from generator.files import assets


def circle(imports: Mapping[str, Set[str]]) -> list[str] | None:
    """One circle, each module importing the one after it; None where there is none."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found[::-1]
    return None


def test_no_module_of_the_package_needs_itself() -> None:
    graph = grimp.build_graph("generator", cache_dir=None)
    assert len(graph.modules) > 100
    assert circle({module: graph.find_modules_directly_imported_by(module) for module in graph.modules}) is None


@pytest.mark.parametrize("second", ["from .. import x", "def f():\n    from .. import x\n"])
def test_a_circle_is_found_wherever_the_import_stands(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, second: str
) -> None:
    top = tmp_path_factory.mktemp("top")
    (top / "house/rooms").mkdir(parents=True)
    (top / "house/__init__.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .rooms import y\n"
    )
    (top / "house/rooms/__init__.py").write_text(second)
    monkeypatch.syspath_prepend(str(top))
    graph = grimp.build_graph("house", cache_dir=None)
    found = circle({module: graph.find_modules_directly_imported_by(module) for module in graph.modules})
    assert found is not None
    assert set(found) == {"house", "house.rooms"}


def imported(source: str) -> Iterator[str]:
    """Every name that a module imports, in full, wherever the import stands; a relative one from its dots on."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{'.' * node.level}{node.module or ''}.{name.name}" for name in node.names)


def test_nothing_but_the_locker_signs_for_blobs() -> None:
    package = assets.root() / "generator"
    found: dict[str, set[str]] = {}
    for path in package.rglob("*.py"):
        for name in imported(path.read_text(encoding="utf-8")):
            for what in ("azure.storage", "azure.core.credentials.AzureNamedKey", "azure.core.credentials.AzureSas"):
                if name.startswith(what):
                    found.setdefault(what, set()).add(path.relative_to(package).as_posix())
            assert not name.startswith("hmac"), f"{path} signs by itself"
    assert found.pop("azure.storage") == {"locker/client.py", "locker/container.py"}
    assert set(map(tuple, found.values())) == {("locker/credentials.py",)}
