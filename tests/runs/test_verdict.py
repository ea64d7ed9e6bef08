"""The verdict of a run: what its record says, held against what Slurm says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from generator.cyclecloud.jobs.prepared import Prepared, of_folder
from generator.cyclecloud.jobs.scheduler import Seen, Step, Task
from generator.operate.run import judged
from tests.bed.plans import plan_from
from tests.validation.records import proved


def record(**changes: Any) -> bytes:
    """As a job writes it."""
    check = {"check": "answers", "verdict": "pass", "value": None, "expected": None, "unit": "", "detail": "",
             "source": "", "nodes": ["n1"]}  # fmt: skip
    good = {
        "format": 1, "job": "smoke", "recipe": "smoke", "run": "12", "started": "2026-11-02T09:30:00Z",
        "ended": "2026-11-02T09:31:00Z", "cluster": "emu", "partition": "htc", "vm_size": "", "verdict": "pass",
        "summary": "1 of 1 nodes answered", "nodes": [{"name": "n1", "physical_host": "", "facts": {}}],
        "versions": {}, "settings": {}, "environment": {}, "checks": [check], "series": [],
    }  # fmt: skip
    if changes.get("verdict", "pass") != "pass":
        check["verdict"] = changes["verdict"]
    return json.dumps(good | changes).encode()


def prepared() -> Prepared:
    """A job of a recipe."""
    plan = plan_from()
    return Prepared("smoke", Path(), (("job.sbatch",),), {}, {}, plan.jobs[0], "0123456789")


def step(state: str, code: str = "0:0") -> Step:
    """Job 12, as Slurm says that it ended."""
    return Step("job.sbatch", "12", (Task("12", state, code),))


@pytest.mark.parametrize(
    ("content", "state", "status", "words"),
    [
        (record(), "COMPLETED", 0, "1 of 1 nodes answered"),
        (record(), "FORGOTTEN", 0, "1 of 1 nodes answered"),
        (record(run="12-restart1"), "COMPLETED", 0, "1 of 1"),
        (record(), "CANCELLED", 2, "ended as CANCELLED"),
        (record(run="11"), "COMPLETED", 2, "belongs to run '11'"),
        (record(ended=None), "TIMEOUT", 2, "stopped before its end (Slurm: TIMEOUT)"),
        (record(verdict="fail"), "FAILED", 1, "1 of 1"),
        (record(verdict="warn"), "FAILED", 3, "1 of 1"),
        (record(verdict="warn", settings={"ALLOW_WARN": "1"}), "COMPLETED", 0, "1 of 1"),
        (record(verdict="no_baseline"), "FAILED", 4, "1 of 1"),
        (record(checks=[]), "COMPLETED", 2, "no check"),
        (b"", "NODE_FAIL", 2, "it has left no record (Slurm: NODE_FAIL)"),
        (b"{", "COMPLETED", 2, "cannot be used"),
        (json.dumps(proved(1, ("smoke", "pass", ""))).encode(), "COMPLETED", 2, "the record of a proof"),
    ],
)
def test_a_record_is_held_against_slurm(content: bytes, state: str, status: int, words: str) -> None:
    seen = Seen("smoke-0123456789-1", steps=(step(state),))
    result = judged(prepared(), seen, seen.steps[0], content)
    assert (result.status, words in result.text) == (status, True), result


@pytest.mark.parametrize(
    ("state", "code", "status"),
    [
        ("COMPLETED", "0:0", 0),
        ("FAILED", "7:0", 7),
        ("FAILED", "0:9", 137),
        ("TIMEOUT", "0:0", 2),
        ("NODE_FAIL", "1:0", 1),
        ("FORGOTTEN", "", 4),
    ],
)
def test_the_exit_status_of_an_own_job(tmp_path: Path, state: str, code: str, status: int) -> None:
    (tmp_path / "job.sbatch").write_text("#!/bin/bash\n")
    seen = Seen("mine-0123456789-1", steps=(step(state, code),))
    result = judged(of_folder(tmp_path, {}), seen, seen.steps[0], b"")
    assert result.status == status
    assert (result.verdict == "pass") == (status == 0)
