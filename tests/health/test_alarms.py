"""The alarm of the guard in the report: first, with what to do about it, from files and from a summary alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from generator.cli import main
from tests.answers import data_of
from tests.health.results import check, result, write

LINE = (
    "partition hpc: mount fails on 4 of 8 nodes, since 2026-05-01T10:00:00Z by claims; no node is drained for it, "
    "new jobs wait, the guard has set the partition down\n"
)
ALARM = {"partition": "hpc", "check": "mount", "failing": 4, "total": 8, "since": "2026-05-01T10:00:00Z",
         "source": "claims", "words": "no node is drained"}  # fmt: skip
MOUNT = check("mount", "fail", detail="/shared is not mounted")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """hpc-1 and hpc-2 fail the check of the alarm, hpc-3 another one, too."""
    folder = tmp_path / "results"
    folder.mkdir()
    for node, checks in (("hpc-1", [MOUNT]), ("hpc-2", [MOUNT]), ("hpc-3", [MOUNT, check("nvme_disks", "fail")])):
        write(folder, result(node, checks=checks, verdict="fail"))
    return folder


def report(capsys: pytest.CaptureFixture[str], *words: str, code: int = 1) -> str:
    assert main(["health", *words]) == code
    return capsys.readouterr().out


def test_the_alarm_comes_first_and_nobody_is_told_to_drain_what_it_holds(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "ALARM").write_text(LINE)
    text = report(capsys, "report", str(folder), "--kind", "quick")
    first, second, *_ = text.splitlines()
    assert first.startswith("ALARM: ")
    assert second == f"  {LINE.strip().replace(', since', ' since').replace(' by claims', '')}"
    assert "FILES" not in text, "it is no foreign file"
    following = text.split("NEXT\n")[1]
    assert following.startswith("  look for the shared cause of the alarm first\n")
    assert "need no drain: hpc-[1-2]\n" in following
    assert "NodeName=hpc-3 State=DRAIN" in following
    assert 'Reason="drained by hand: mount, nvme_disks"' in following


def test_what_the_alarm_holds_is_in_no_list_of_nodes_to_drain(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["health", "report", str(folder), "--kind", "quick", "--nodes-only"]
    assert (main([*words, "failed"]), *capsys.readouterr()) == (1, "hpc-[1-3]\n", "")
    (folder / "ALARM").write_text(LINE)
    assert main([*words, "failed"]) == 1
    shown = capsys.readouterr()
    assert shown.out == "hpc-3\n"
    assert shown.err.startswith("not listed: hpc-[1-2], which fail nothing but the check of the alarm")
    assert (main([*words, "held"]), *capsys.readouterr()) == (1, "hpc-[1-2]\n", "")
    assert (main([*words, "failed", "--nodes-only", "held"]), *capsys.readouterr()) == (1, "hpc-[1-3]\n", "")
    answer = data_of(report(capsys, "report", str(folder), "--kind", "quick", "--json"))
    assert (answer["host_lists"]["failed"], answer["host_lists"]["held"]) == ("hpc-3", "hpc-[1-2]")
    assert "3 nodes: 1 failed, 2 held by the alarm\n" in report(capsys, "report", str(folder), "--kind", "quick")


def test_a_summary_keeps_it_and_machines_read_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "ALARM").write_text(LINE)
    summary = folder.parent / "summary.json"
    report(capsys, "collect", str(folder), "--into", str(summary), code=0)
    answers: list[Any] = [
        data_of(report(capsys, "report", str(path), "--kind", "quick", "--json"))["alarms"]
        for path in (folder, summary)
    ]
    assert answers[0] == answers[1]
    assert answers[0][0]["failing"] == 4


def test_an_alarm_is_no_healthy_cluster_and_none_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, result("hpc-1"))
    assert "ALARM" not in report(capsys, "report", str(tmp_path), "--kind", "quick", code=0)
    (tmp_path / "ALARM").write_text(LINE)
    assert "ALARM" in report(capsys, "report", str(tmp_path), "--kind", "quick", code=1)


@pytest.mark.parametrize(
    "content", ["partition hpc: mount\n", f"{LINE}and a note\n", "partition \u00e9: mount fails\n"]
)
def test_what_only_looks_like_one_is_a_foreign_file(
    content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, result("hpc-1"))
    (tmp_path / "ALARM").write_text(content)
    assert "ALARM: warning" in report(capsys, "report", str(tmp_path), "--kind", "quick", code=0)


@pytest.mark.parametrize("alarms", ["x", [1], [{}], [ALARM | {"partition": "a\nb"}]])
def test_a_damaged_summary_is_a_problem(alarms: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = {"summary": "cycleforge node health", "format": 1, "superseded": 0, "alarms": alarms, "results": [],
               "problems": []}  # fmt: skip
    (tmp_path / "summary.json").write_text(json.dumps(content))
    assert "'alarms" in report(capsys, "report", str(tmp_path), code=2)
