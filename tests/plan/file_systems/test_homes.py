"""What is particular to one kind of file system is in its class, its rules, what Azure says of it, and its section of
the definition."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from generator.files import assets
from generator.plan.file_systems.registry import KINDS

PACKAGE = assets.root() / "generator"
MODULES = {kind.__module__.rpartition(".")[2] for kind in KINDS}
ROOMS = ("rules", "azure/checks")
HOMES = (
    "plan/file_systems/*.py",
    "definition/model/storage.py",
    *(f"{room}/{module}.py" for room in ROOMS for module in MODULES),
)
RULES = "rules/storage.py"
"""Has the rules of all kinds, so it imports their classes; it compares no kinds either."""
TYPES = {kind.default("kind") for kind in KINDS}
NAMED = re.compile(rf"file_systems|model\.storage|model import|['\"]({'|'.join(TYPES)})['\"]")
"""A module without any of these cannot hold what is searched for; most need not be parsed."""
TEMPLATES = (
    assets.root() / "bicep_templates" / "main.bicep.j2",
    assets.root() / "cluster_defs" / "templates" / "slurm.txt.j2",
    *(PACKAGE / "render").rglob("*.j2"),
)


def strangers() -> list[Path]:
    homes = {path for pattern in HOMES for path in PACKAGE.glob(pattern)}
    return sorted(path for path in PACKAGE.rglob("*.py") if path not in homes)


def kinds_asked_for(source: str) -> list[str]:
    """Comparisons of a `kind` or `type` with a kind of file system, tables of kinds, and imports of their classes."""
    found: list[str] = []
    if not NAMED.search(source):
        return found
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            asks = any(isinstance(side, ast.Attribute) and side.attr in ("kind", "type") for side in sides)
            names = {each.value for side in sides for each in ast.walk(side) if isinstance(each, ast.Constant)}
            if asks and names & TYPES and "accounting" not in ast.unparse(node):
                found.append(ast.unparse(node))
        if isinstance(node, ast.Dict):
            keys = {key.value for key in node.keys if isinstance(key, ast.Constant)}
            if len(keys & TYPES) > 1:
                found.append(ast.unparse(node))
        if isinstance(node, ast.ImportFrom):
            places = {f"{node.module or ''}.{name.name}" for name in node.names} | {node.module or ""}
            if any(re.search(rf"\bfile_systems\.({'|'.join(MODULES)})\b|\bmodel\.storage$", place) for place in places):
                found.append(ast.unparse(node))
    return found


@pytest.mark.parametrize(
    "source",
    [
        "mount.kind == 'anf'",
        "mount.kind in ('amlfs', 'anf')",
        "section.type != 'nfs'",
        "{'nfs': 1, 'blob': 2}[mount.kind]",
        "from ..plan.file_systems.netapp import NetAppVolume",
        "from ..plan.file_systems import netapp",
        "from ..definition.model.storage import BlobMount",
        "from ..definition.model import storage",
    ],
)
def test_the_search_finds_switches(source: str) -> None:
    assert kinds_asked_for(source)


def test_no_other_module_asks_for_the_kind_of_a_file_system() -> None:
    found = {path.relative_to(PACKAGE).as_posix(): kinds_asked_for(path.read_text()) for path in strangers()}
    assert found[RULES]
    found[RULES] = [line for line in found[RULES] if not line.startswith("from ")]
    assert not {path: lines for path, lines in found.items() if lines}


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_no_template_asks_for_the_kind_of_a_file_system(template: Path) -> None:
    logic = " ".join(re.findall(r"\{[{%](.*?)[%}]\}", template.read_text(), re.DOTALL))
    assert not re.findall(r"\b(?:anf|amlfs|netapp|lustre|blobfuse)\b|[\"'](?:nfs|blob)[\"']", logic)
