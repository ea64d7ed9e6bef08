"""Each capture of a real driver leads the checks of today to the verdicts of its day."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.gpu import run
from tests.gpu.replay import machine, programs

KEPT = sorted(
    path.parent for path in run.CAPTURES.glob(f"*/{run.INDEX}") if not path.parent.name.endswith(run.INCOMPLETE)
)


@pytest.mark.parametrize("folder", KEPT, ids=lambda folder: folder.name)
def test_a_capture_has_its_origin_and_leads_to_its_verdicts(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (folder / "README.md").read_text(encoding="utf-8").startswith("# ")
    programs(folder, tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    gpus = run.identity()
    wanted = json.loads((folder / run.VERDICTS).read_text(encoding="utf-8"))
    found = run.check(gpus[0]["name"], len(gpus), machine(folder))
    assert [(row["check"], row["verdict"]) for row in found] == [(row["check"], row["verdict"]) for row in wanted]
