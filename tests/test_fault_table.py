"""No row of the table of faults in docs/node-health.md is without a test, and no marked test without a row."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.bed.sick.table import rows
from tests.command import ROOT


def marks(path: Path) -> Iterator[tuple[str, int]]:
    """What `pytest.mark.fault(…)` names in a file, and where. Names are written out, so that a reader finds them."""
    text = path.read_text(encoding="utf-8")
    if "mark.fault(" not in text:
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.fault":
            for word in node.args:
                assert isinstance(word, ast.Constant), f"{path}:{word.lineno}: a fault is named by a literal"
                yield str(word.value), word.lineno


def marked() -> dict[str, list[str]]:
    """Places of the tests, by fault."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        if path != Path(__file__):
            for fault, line in marks(path):
                found.setdefault(fault, []).append(f"{path.relative_to(ROOT)}:{line}")
    return found


def test_every_row_has_a_test() -> None:
    assert sorted(set(rows()) - set(marked())) == []


def test_every_marked_test_has_a_row() -> None:
    unknown = {fault: places for fault, places in marked().items() if fault not in rows()}
    assert unknown == {}


def test_a_drain_says_who_drained() -> None:
    """Slurm's own reasons and an administrator's are theirs; every other begins with a prefix of ours."""
    foreign = ("Prolog error", "Epilog error", "Healthcheck failures")
    wrong = [row.fault for row in rows().values()
             if row.drained and not row.reason.startswith(("CycleForge", *foreign))]  # fmt: skip
    assert wrong == []


def test_the_table_has_what_happens_to_gpu_nodes() -> None:
    """GPUs, memory, links, fabric, disks, shares, daemons, drivers, clocks, images and our own tools."""
    assert len(rows()) >= 45
