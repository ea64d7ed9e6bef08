"""Under which name `make test-gpu` keeps a capture, when it is complete, and what a replay makes of it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.bed.fakes import NVIDIA_SMI
from tests.gpu import redact, run
from tests.gpu.replay import machine, programs
from tests.gpu.test_redact import XID
from tests.gpu.test_run import Machine, record


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    place = Machine(tmp_path)
    monkeypatch.setenv("PATH", f"{place.bin}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_STATE", str(place.state))
    return place


def answers(made: Machine, case: str) -> None:
    """A driver that does this before it looks at a question."""
    made.program("nvidia-smi", NVIDIA_SMI.read_text().replace("#!/bin/bash\n", f"#!/bin/bash\n{case}\n", 1))


def ends(made: Machine) -> int:
    return run.main(["--out", str(made.out)])


def replayed(folder: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    programs(folder, place)
    monkeypatch.setenv("PATH", f"{place}{os.pathsep}{os.environ['PATH']}")
    return {row["check"]: row["verdict"] for row in run.check("NVIDIA H100 80GB HBM3", 1, machine(folder))}


# Layout of the list: utkuozdemir/nvidia_gpu_exporter (MIT), internal/captures, h100-mig 590.48.01.
MIG = """case "$*" in
    *=index,mig.mode.current,mig.mode.pending*) echo "0, Enabled, Enabled"; exit 0 ;;
    -L)
        id=8ffa0cd1-aa11-4b2c-9d3e-01234567890
        echo "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-${id}a)"
        for each in 0 1; do echo "  MIG {profile}     Device  $each: (UUID: MIG-$id$each)"; done
        exit 0 ;;
    --query-remapped-rows*) echo "No remapped rows information found."; exit 0 ;;
esac"""


def test_divided_gpus_have_a_capture_and_checks_of_their_own(
    made: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ends(made) == 0
    answers(made, MIG.replace("{profile}", "3g.40gb"))
    assert ends(made) == 0
    names = sorted(path.name for path in made.out.iterdir())
    assert names == [f"nvidia-h100-80gb-hbm3-550.54.15-x1{mode}" for mode in ("", "-mig")]
    folder = made.out / names[1]
    verdicts = {row["check"]: row["verdict"] for row in json.loads((folder / run.VERDICTS).read_text())}
    assert (verdicts["gpu_spare_rows"], verdicts["mig_slices"]) == ("pass", "pass")
    assert not [check for check in verdicts if check.startswith("gpu_remap")]
    assert replayed(folder, tmp_path / "again", monkeypatch) == verdicts


def test_slices_of_several_profiles_are_not_compared(made: Machine) -> None:
    answers(made, MIG.replace("{profile}", "$((each + 1))g.10gb"))
    assert run.divided() == [["1g.10gb", "2g.10gb"]]
    lines = run.lines_of_checks("NVIDIA H100 80GB HBM3", 1, run.divided())
    assert [line for line in lines if line.startswith("gpu_spare_rows")]
    assert not [line for line in lines if line.startswith(("mig_slices", "gpu_remap"))]


def test_answers_without_checks_are_kept_under_another_name(
    made: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "NEW_ENOUGH", False)
    assert ends(made) == 3
    assert made.folder.name.endswith("-x1-incomplete")
    assert not (made.folder / run.VERDICTS).exists()
    assert "not replayed: the checks need Python 3.11" in (made.folder / "README.md").read_text()
    assert "the checks need Python 3.11" in capsys.readouterr().err


def test_a_driver_that_hangs_replaces_no_capture_of_one_that_answers(
    made: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ends(made) == 0
    answers(made, 'if [[ "$*" == "nvlink -e" ]]; then exec sleep 60; fi')
    monkeypatch.setattr(run, "LIMIT_S", 3)
    assert ends(made) == 3
    assert "1 commands did not end in time" in capsys.readouterr().err
    assert sorted(path.name.removeprefix("nvidia-h100-80gb-hbm3-550.54.15") for path in made.out.iterdir()) == [
        "-x1", "-x1-incomplete",
    ]  # fmt: skip


def test_checks_that_get_no_answer_are_no_success() -> None:
    silent = [{"check": "nvidia_smi", "verdict": "not_measured"}, {"check": "gpu_count", "verdict": "not_measured"}]
    assert run.not_done([{"exit": 0}], silent) == ["the checks got no answer from nvidia-smi"]
    assert run.not_done([{"not_run": run.OVER}], [{"check": "nvidia_smi", "verdict": "pass"}])
    assert run.not_done([{"exit": 0}, {"not_run": "x"}], [{"check": "nvidia_smi", "verdict": "pass"}]) == []


def test_a_log_that_this_user_may_not_read_is_as_unread_in_a_replay(
    made: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever replays it may be allowed to read the log of another machine."""
    made.journal()
    assert ends(made) == 0
    verdicts = {row["check"]: row["verdict"] for row in made.read(run.VERDICTS)}
    assert verdicts["gpu_xid"] == "not_measured"
    assert replayed(made.folder, tmp_path / "again", monkeypatch) == verdicts


def test_a_replay_judges_the_captured_log_and_has_only_the_captured_tools(
    made: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ends(made) == 0
    folder = tmp_path / "copy"
    shutil.copytree(made.folder, folder)
    (log,) = folder.glob("*journalctl*")
    log.write_text(redact.of_kernel(record(XID.replace(": 31,", ": 79,"))))
    assert replayed(folder, tmp_path / "again", monkeypatch)["gpu_xid"] == "fail"
    index = json.loads((folder / run.INDEX).read_text())
    for entry in index:
        if entry["command"][0] == "journalctl":
            del entry["exit"]
    (folder / run.INDEX).write_text(json.dumps(index))
    assert replayed(folder, tmp_path / "without", monkeypatch)["gpu_xid"] == "not_measured"


def test_a_host_called_gpu_damages_nothing(made: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redact, "host_names", lambda: ["gpu.corp.example", "h100", "gpu"])
    made.journal(record("NVRM: loading NVIDIA UNIX", _HOSTNAME="gpu"))
    assert ends(made) == 0
    checks = {row["check"] for row in made.read(run.VERDICTS)}
    assert {"gpu_count", "nvidia_smi"} <= checks
    (listed,) = made.folder.glob("*-nvidia-smi-l.txt")
    assert listed.read_text().startswith("GPU 0: NVIDIA H100 80GB HBM3 (")
    (log,) = made.folder.glob("*journalctl*")
    assert json.loads(log.read_text())["_HOSTNAME"] == "node-1"
