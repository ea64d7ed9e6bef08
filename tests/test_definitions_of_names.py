"""No module and no class defines a name twice: ruff sees that of functions, not of constants."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

import pytest

from generator.files import assets


def defined(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        yield statement.name
    elif isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        stored = (node for target in targets for node in ast.walk(target) if isinstance(node, ast.Name))
        yield from (node.id for node in stored if isinstance(node.ctx, ast.Store))


def twice(source: str) -> list[str]:
    scopes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Module | ast.ClassDef))
    counts = (Counter(name for statement in scope.body for name in defined(statement)) for scope in scopes)
    return [name for count in counts for name, times in count.items() if times > 1]


def test_no_name_is_defined_twice() -> None:
    modules = [path for room in ("generator", "benchmarks") for path in (assets.root() / room).rglob("*.py")]
    assert len(modules) > 200
    assert {path: found for path in modules if (found := twice(path.read_text(encoding="utf-8")))} == {}


@pytest.mark.parametrize("source", ["A = 1\nA, B = 2, 3", "def a(): ...\na: int = 1", "class C:\n    a = 1\n    a = 2"])
def test_a_second_definition_is_found(source: str) -> None:
    assert twice(source)
