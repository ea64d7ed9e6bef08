"""No text has a word that the glossary replaces: messages, rules, field texts, `--help`, pages, docstrings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GLOSSARY = ROOT / "docs" / "glossary.md"
PAGES = [
    ROOT / "README.md",
    ROOT / "projects" / "README.md",
    *sorted(ROOT.glob("docs/*.md")),
    *sorted(ROOT.glob("recipes/**/*.md")),
]
YAML = [ROOT / "cluster_defs" / "reference.yaml"]


def refused() -> list[str]:
    """What the last column of the glossary's tables names."""
    rows = [line.split("|") for line in GLOSSARY.read_text().splitlines() if line.startswith("|")]
    return [word for row in rows if len(row) > 4 for word in re.findall(r"`([^`]+)`", row[3])]


WORDS = re.compile("|".join(rf"\b{re.escape(word)}\b" for word in sorted(refused(), key=len, reverse=True)), re.I)


def strings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Texts and docstrings of a module, pieces joined as they are printed; {…} stands for what is filled in."""
    skip: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            skip |= {id(part) for part in node.values}
            parts = (part.value if isinstance(part, ast.Constant) else "{…}" for part in node.values)
            yield node.lineno, "".join(str(part) for part in parts)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skip:
            yield node.lineno, node.value


def found_in(text: str) -> list[str]:
    return [match.group() for match in WORDS.finditer(" ".join(text.split()))]


def test_the_glossary_is_read() -> None:
    assert {"somebody", "lies", "has no effect", "mend"} <= set(refused())
    assert found_in("The file LIES\n   in a folder of somebody else") == ["LIES", "somebody"]
    assert found_in("relies on, amends, a sign-in page") == []


@pytest.mark.parametrize(
    "folder", sorted(p.name for p in (ROOT / "generator").iterdir() if (p / "__init__.py").exists())
)
def test_messages(folder: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {', '.join(words)}: {text.strip()[:80]}"
        for path in sorted((ROOT / "generator" / folder).rglob("*.py"))
        for line, text in strings(ast.parse(path.read_text()))
        if (words := found_in(text))
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "path", [each for each in PAGES + YAML if each != GLOSSARY], ids=lambda path: str(path.relative_to(ROOT))
)
def test_pages(path: Path) -> None:
    wrong = [f"{number}: {line}" for number, line in enumerate(path.read_text().splitlines(), 1) if found_in(line)]
    assert wrong == []
