"""The job `start-times`: boot times by Slurm's records, containers on every node, and slow or silent nodes by name."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.jobs.running import FAKES, JobFolder, job, job_folder, plan_with

PASS, FAIL, ERROR, WARN, NO_BASELINE = 0, 1, 2, 3, 4
NODES = ("hpc-1", "hpc-2", "hpc-3", "hpc-4")


class Start:
    """The job on four nodes, which an allocation at seven o'clock started."""

    def __init__(self, tmp_path: Path) -> None:
        self.folder: JobFolder = job_folder(tmp_path, plan_with(job("start-times", len(NODES))), NODES)
        self.state = tmp_path / "states"
        self.state.mkdir()
        tools = tmp_path / "tools"
        shutil.copytree(FAKES / "start", tools)
        fakes = self.folder.environment["PATH"].split(":")[0]
        self.folder.environment |= {
            "PATH": f"{tools}:{self.folder.environment['PATH']}", "FAKE_SRUN": f"{fakes}/srun", "TZ": "UTC",
            "FAKE_STATES": str(self.state), "FAKE_ALLOCATED": "2026-11-23T07:00:00", "FAKE_AT_ONCE": "1",
        }  # fmt: skip

    def run(self, number: int = 4711, /, **environment: str) -> tuple[int, dict[str, Any]]:
        done = self.folder.run(SLURM_JOB_ID=str(number), **environment)
        self.said = done.stdout + done.stderr
        path = self.folder.path / "results" / str(number) / "run.json"
        return done.returncode, json.loads(path.read_text(encoding="utf-8"))


def verdicts(record: dict[str, Any], name: str) -> dict[str, str]:
    return {",".join(check["nodes"]): check["verdict"] for check in record["checks"] if check["check"] == name}


def test_boot_times_are_slurms_own(tmp_path: Path) -> None:
    """A node that took 540 of 600 s warns, one that took more fails, one that ran before does not count, and one of
    which Slurm knows nothing is not proven."""
    bed = Start(tmp_path)
    (bed.state / "hpc-2.slurmd").write_text("2026-11-23T07:09:00")
    (bed.state / "hpc-3.slurmd").write_text("2026-11-23T06:00:00")
    (bed.state / "hpc-4.slurmd").write_text("None")
    status, record = bed.run(SET_TESTS="boot")
    assert verdicts(record, "boot") == {"hpc-1": "pass", "hpc-2": "warn", "hpc-4": "error"}
    assert status == ERROR
    assert [check["value"] for check in record["checks"]] == [300, 540, None]
    (bed.state / "hpc-2.slurmd").write_text("2026-11-23T07:11:00")
    status, record = bed.run(4712, SET_TESTS="boot")
    assert (status, verdicts(record, "boot")["hpc-2"]) == (FAIL, "fail")
    status, record = bed.run(4713, SET_TESTS="boot", FAKE_ALLOCATED="Unknown")
    assert (status, verdicts(record, "boot")) == (ERROR, {"": "error"})
    (bed.state / "hpc-4.slurmd").unlink()
    status, record = bed.run(4714, SET_TESTS="boot", FAKE_ALLOCATED="2026-11-23T07:30:00")
    assert (status, verdicts(record, "boot")) == (NO_BASELINE, {"": "no_baseline"})


def test_containers_are_imported_and_started_on_every_node(tmp_path: Path) -> None:
    bed = Start(tmp_path)
    (bed.state / "hpc-3.late").write_text("60")
    status, record = bed.run(FAKE_DEAD="hpc-4")
    assert status == FAIL, bed.said
    assert verdicts(record, "import") == {"": "pass"}
    expected = {"hpc-1": "pass", "hpc-2": "pass", "hpc-3": "warn", "hpc-4": "fail"}
    assert verdicts(record, "first start") == verdicts(record, "second start") == expected
    images = [path.name for path in (tmp_path / "stage/images").iterdir()]
    assert images == ["ubuntu+24.04.sqsh"]


@pytest.mark.parametrize("broken", ["FAKE_STATUS", "no-pyxis"])
def test_without_an_image_or_pyxis_nothing_is_proven(broken: str, tmp_path: Path) -> None:
    bed = Start(tmp_path)
    if broken == "no-pyxis":
        (bed.state / broken).touch()
        status, record = bed.run(4712)
        assert "not tested: containers" in record["summary"]
        assert {check["check"] for check in record["checks"]} == {"boot"}
    status, record = bed.run(SET_TESTS="containers", **{broken.replace("-", "_"): "1"})
    assert status == ERROR
    assert {check["verdict"] for check in record["checks"]} == {"error"}
