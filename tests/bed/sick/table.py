"""The table of faults in docs/node-health.md: what happens, by the id of the fault. Tests compare with it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs/node-health.md"
HEAD = ("id", "fault", "detected by", "drained", "reason begins with", "resumed")
NO_REASON = "—"


@dataclass(frozen=True)
class Row:
    fault: str
    fault_text: str
    detected_by: str
    drained: bool
    reason: str
    """How the reason in Slurm begins; empty when nothing is drained."""
    resumed: str


@cache
def rows() -> dict[str, Row]:
    """Every row of every table with these columns, by its id. A row that does not read so fails with its text."""
    found: dict[str, Row] = {}
    inside = False
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if tuple(cells) == HEAD:
            inside = True
        elif not line.startswith("|"):
            inside = False
        elif inside and set(line) - set("|-: "):
            row = _row(line, cells)
            assert row.fault not in found, f"two rows are called {row.fault}"
            found[row.fault] = row
    return found


def _row(line: str, cells: list[str]) -> Row:
    assert len(cells) == len(HEAD), f"{len(HEAD)} columns: {line}"
    fault, text, detected_by, drained, reason, resumed = cells
    assert re.fullmatch(r"`[a-z0-9-]+`", fault), f"the id of a fault is `lower-case-words`: {line}"
    assert drained in ("yes", "no"), f"drained is yes or no: {line}"
    assert all(cells), f"every cell says something: {line}"
    if drained == "yes":
        assert re.fullmatch(r"`[^`]+`", reason), f"the reason of a drain is quoted: {line}"
    else:
        assert reason == NO_REASON, f"no drain, no reason: {line}"
    return Row(fault.strip("`"), text, detected_by, drained == "yes", reason.strip(f"`{NO_REASON}"), resumed)
