"""`cycleforge report` as a command: exit codes, what it prints, what it writes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from generator.cli import main
from tests.answers import data_of
from tests.validation import records
from tests.validation.records import check, record


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page is written where the user is."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


def runs(folder: Path, *values: dict[str, Any]) -> str:
    return str(records.write(folder / "runs", *values))


@pytest.mark.parametrize(
    ("verdicts", "options", "code"),
    [
        (["pass", "pass"], [], 0),
        (["pass", "warn"], [], 1),
        (["pass", "warn"], ["--allow-warn"], 0),
        (["pass", "no_baseline"], ["--allow-warn"], 1),
        (["error"], ["--allow-warn"], 1),
        (["fail", "pass"], [], 1),
    ],
)
def test_the_worst_verdict_is_the_exit_code(verdicts: list[str], options: list[str], code: int, tmp_path: Path) -> None:
    folder = runs(tmp_path, *(record(f"job{place}", 1, check("x", word)) for place, word in enumerate(verdicts)))
    for form in ([], ["--text"], ["--json"]):
        assert main(["report", folder, *options, *form]) == code


def test_a_record_that_cannot_be_used_is_2_whatever_the_others_prove(tmp_path: Path) -> None:
    folder = runs(tmp_path, record("a", 1, check("x")))
    (tmp_path / "runs" / "run.json").write_text("{")
    assert main(["report", folder]) == 2


@pytest.mark.parametrize("there", [True, False])
def test_nothing_is_never_a_pass(there: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "runs"
    if there:
        folder.mkdir()
    assert main(["report", str(folder)]) == 2
    assert "scp -r" in capsys.readouterr().err
    assert not Path("report.html").exists()


def test_the_page_is_report_html_unless_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = runs(tmp_path, *records.proof(100, 12))
    assert main(["report", folder]) == 1
    out = capsys.readouterr()
    assert "the page is in report.html" in out.err
    page = Path("report.html").read_text()
    for text in ("FAIL", "gpu-3", "floor 384 GB/s", "2 retired pages", "AMS07000", "Storage", "gpu temperature"):
        assert text in page
    assert main(["report", folder, "--html", "other.html", "--json"]) == 1
    assert Path("other.html").read_text() == page


@pytest.mark.parametrize("form", ["--text", "--json"])
def test_text_and_json_alone_write_nothing(form: str, tmp_path: Path) -> None:
    main(["report", runs(tmp_path, record("a", 1, check("x"))), form])
    assert list(Path().iterdir()) == []


def test_the_text_says_what_the_page_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = [value for place in range(4) for value in records.proof(100 + 10 * place, 12, sick=place == 3)]
    main(["report", runs(tmp_path, *values), "--text", "--compare", "storage-gpu-124", "storage-gpu-134"])
    text = capsys.readouterr().out
    assert text.startswith("FAIL: 2 of 5 jobs failed and 1 has no baseline; 2 nodes to replace\n")
    for line in (
        r"  node-performance-gpu  fail +12 +131 ",
        r"  replace  gpu-3 on AMS07000\n    hbm read: \d+ GB/s, expected 2723 GB/s; GPU 5 is the slowest, 2 retired",
        r"  watch  gpu-11 on AMS07002\n    gemm fp16: .* 4\.\d % below the median of 12 nodes",
        r"sudo scontrol update NodeName=gpu-\[3,7\] State=DRAIN Reason='drained by hand: hbm read, pairs'",
        r"not proven: no baseline  storage-gpu: /data create: 41.200 files/s",
        r"COMPARISON: storage-gpu-124 → storage-gpu-134",
    ):
        assert re.search(line, text), line


def test_the_json_has_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["report", runs(tmp_path, *records.proof(100, 12)), "--json"])
    found = data_of(capsys.readouterr().out)
    assert (found["ok"], found["verdict"], found["proven"]) == (False, "fail", True)
    assert [node["node"] for node in found["nodes"] if node["state"] == "replace"] == ["gpu-3", "gpu-7"]
    assert len(found["jobs"]) == len(found["runs"]) == 5
    assert sum(len(job["checks"]) for job in found["jobs"]) == 12 + 8 * 12 + 2 + 3 + 7


def test_names_cannot_steer_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J"
    bad = record("a", 1, check(f"x{evil}", "fail", evil, evil, "", evil, evil, ["gpu-1"]), summary=evil, cluster=evil)
    main(["report", runs(tmp_path, bad), "--compare", "a-1", "a-1"])
    out = capsys.readouterr()
    assert "\x1b" not in out.out + out.err
    assert "\x07" not in out.out + out.err


def test_two_folders_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = records.write(tmp_path / "before", record("a", 1, check("x", "pass", 100, 90, "GB/s")))
    after = records.write(
        tmp_path / "after", record("a", 2, check("x", "pass", 92, 90, "GB/s"), versions={"nccl": "2.27"})
    )
    main(["report", str(before), str(after), "--json"])
    found = data_of(capsys.readouterr().out)["comparison"]
    (change,) = found["checks"]
    assert (change["before"], change["after"], change["percent"], change["tone"]) == (100, 92, -8.0, "worse")
    assert {"job": "a", "what": "version", "name": "nccl", "before": "2.28.3", "after": "2.27"} in found["differences"]


def test_the_nodes_that_got_worse_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = record("a", 1, *(check("x", nodes=[f"gpu-{place}"]) for place in (1, 2)))
    new = record("a", 2, check("x", nodes=["gpu-1"]), check("x", "warn", nodes=["gpu-2"]))
    main(["report", runs(tmp_path, old, new), "--compare", "a-1", "a-2", "--json"])
    (change,) = data_of(capsys.readouterr().out)["comparison"]["checks"]
    assert change["worse_nodes"] == ["gpu-2"]


def test_a_run_that_is_not_there_cannot_be_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", runs(tmp_path, record("a", 1, check("x"))), "--compare", "a-1", "a-9"]) == 2
    assert "there is no run 'a-9' to compare" in capsys.readouterr().err
    assert not Path("report.html").exists()
