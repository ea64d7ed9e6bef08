"""The newest result of each node, and the summary: nothing lost, nothing about the run, written as a whole."""

from __future__ import annotations

import inspect
import itertools
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from generator.errors import CannotRead, CannotWrite
from generator.health import gather as gather_module
from generator.health.gather import gather, summary_bytes, write_summary
from generator.health.read import read_bytes
from tests.health.results import gpus, pair, result, text, write


def put(folder: Path, name: str, value: dict[str, Any]) -> None:
    """One file."""
    (folder / name).write_text(text(value))


def test_the_newest_counts_whatever_the_names(tmp_path: Path) -> None:
    """Per node and kind; a fraction of a second decides."""
    put(tmp_path, "z", result(time="2026-11-21T10:00:00Z", reason="old"))
    put(tmp_path, "a", result(time="2026-11-21T10:00:00.5Z", reason="new"))
    put(tmp_path, "m", result(time="2026-11-20T10:00:00Z", reason="oldest"))
    put(tmp_path, "deep", result("hpc-1", "deep", time="2026-11-01T10:00:00Z"))
    found = gather([str(tmp_path)])
    assert {key: loaded.result.reason for key, loaded in found.newest.items()} == {
        ("hpc-1", "quick"): "new",
        ("hpc-1", "deep"): "",
    }
    assert (found.files, found.superseded, found.problems) == (4, 2, ())


def test_a_conflict_of_old_results_is_none(tmp_path: Path) -> None:
    """In whatever order the files are read."""
    for older, newer in (("a", "c"), ("c", "a")):
        put(tmp_path, older, result(time="2026-11-21T10:00:00Z", reason="one"))
        put(tmp_path, "b", result(time="2026-11-21T10:00:00Z", reason="other"))
        put(tmp_path, newer, result(time="2026-11-21T11:00:00Z"))
        found = gather([str(tmp_path)])
        assert (found.superseded, found.problems) == (2, ())


def test_results_come_in_natural_order(tmp_path: Path) -> None:
    """hpc-2 before hpc-10."""
    write(tmp_path, *pair("hpc-10"), *pair("hpc-2"), *pair("gpu-1"))
    assert list(gather([str(tmp_path)]).newest) == [
        (node, kind) for node in ("gpu-1", "hpc-2", "hpc-10") for kind in ("quick", "deep")
    ]


def test_a_missing_path_is_said_at_once(tmp_path: Path) -> None:
    """Most likely a misspelt folder."""
    with pytest.raises(CannotRead, match="there is no file or folder"):
        gather([str(tmp_path / "nothing")])


def test_a_home_folder_is_not_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is far above any cluster."""
    monkeypatch.setattr(gather_module, "MAX_FILES", 3)
    for number in range(4):
        put(tmp_path, str(number), result(f"hpc-{number}"))
    with pytest.raises(CannotRead, match="more than 3 files below"):
        gather([str(tmp_path)])


def test_folders_may_lie_deeper_than_python_recurses(tmp_path: Path) -> None:
    """With a low limit, because pytest itself has to remove the folders again."""
    deepest = tmp_path / "/".join("d" * 200)
    deepest.mkdir(parents=True)
    (deepest / "x").write_text(text(result()))
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 150)
    try:
        found = gather([str(tmp_path)])
    finally:
        sys.setrecursionlimit(limit)
    assert len(found.newest) == 1


def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    """Shown with escapes; it must not stop the summary."""
    path = os.fsencode(tmp_path) + b"/\xff.json"
    Path(os.fsdecode(path)).write_text("{")
    found = gather([str(tmp_path)])
    assert found.problems[0].file.endswith("\\xff.json")
    assert b"\\\\xff.json" in summary_bytes(found)


# ---------------------------------------------------------------- the summary


def test_a_summary_says_the_same_as_its_files(tmp_path: Path) -> None:
    """Results with all their fields, problems, counts; and a summary of summaries is the same again."""
    folder = write(tmp_path / "in", *pair("hpc-1", reason="ü"), result("hpc-2", cure="heal"))
    put(folder, "old", result(time="2026-01-01T00:00:00Z"))
    (folder / "half").write_text('{"node": "hpc-3", "kind": "quick",')
    first = gather([str(folder)])
    (tmp_path / "one").write_bytes(summary_bytes(first))
    second = gather([str(tmp_path / "one")])
    assert {key: loaded.result for key, loaded in second.newest.items()} == {
        key: loaded.result for key, loaded in first.newest.items()
    }
    assert (second.problems, second.superseded) == (first.problems, first.superseded)
    assert [problem.node for problem in second.problems] == ["hpc-3"]
    (tmp_path / "two").write_bytes(summary_bytes(second).replace(b'"files": 1', b'"files": 5'))
    assert (tmp_path / "two").read_bytes() == (tmp_path / "one").read_bytes()
    assert json.loads((tmp_path / "one").read_text())["results"][2]["cure"] == "heal"


def test_a_mended_file_speaks_for_itself(tmp_path: Path) -> None:
    """The summary beside it still holds the old problem."""
    (tmp_path / "a").write_text("{")
    (tmp_path / "sum").write_bytes(summary_bytes(gather([str(tmp_path)])))
    put(tmp_path, "a", result())
    assert gather([str(tmp_path)]).problems == ()
    assert len(gather([str(tmp_path / "sum")]).problems) == 1


def test_a_folder_is_collected_into_itself(tmp_path: Path) -> None:
    """The file that is being written is not an input, unless it is named."""
    put(tmp_path, "a", result())
    target = str(tmp_path / "sum.json")
    write_summary(Path(target), summary_bytes(gather([str(tmp_path)], leave_out=target)))
    (tmp_path / "a").unlink()
    assert gather([str(tmp_path)], leave_out=target).newest == {}
    assert len(gather([str(tmp_path), target], leave_out=target).newest) == 1


def test_one_bad_result_of_a_summary_leaves_the_others(tmp_path: Path) -> None:
    """With its number and its node."""
    write(tmp_path, *pair("hpc-1"))
    content = json.loads(summary_bytes(gather([str(tmp_path)])))
    content["results"][1]["verdict"] = "?"
    found = read_bytes(json.dumps(content).encode(), "sum.json")
    assert [loaded.result.kind for loaded in found.results] == ["quick"]
    assert [(problem.file, problem.node) for problem in found.problems] == [("sum.json, result 2", "hpc-1")]


def test_the_order_of_files_changes_no_byte(tmp_path: Path) -> None:
    """Whatever a system lists first."""
    contents = [*pair("hpc-2"), result("hpc-1"), result("hpc-1", "quick", gpus("7"), verdict="fail")]
    for name, value in zip("abcd", contents, strict=True):
        put(tmp_path, name, value)
    summaries = {
        summary_bytes(gather([str(tmp_path / name) for name in names])) for names in itertools.permutations("abcd")
    }
    assert len(summaries) == 1
    rows = json.loads(summaries.pop())["results"]
    assert [(row["node"], row["kind"], row["verdict"]) for row in rows] == [
        ("hpc-1", "quick", "fail"),
        ("hpc-2", "quick", "pass"),
        ("hpc-2", "deep", "pass"),
    ]


# ---------------------------------------------------------------- writing


def test_a_summary_is_replaced_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk leaves the old one, and nothing beside it."""
    put(tmp_path, "a", result())
    path = tmp_path / "out" / "sum.json"
    path.parent.mkdir()
    write_summary(path, summary_bytes(gather([str(tmp_path / "a")])))
    before = path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o644 & ~_umask()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(CannotWrite, match="the disk is full; what was there is unchanged"):
        write_summary(path, before + b" ")
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == ["sum.json"]


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: path.mkdir(), "is a folder, not a file"),
        (lambda path: path.write_text("my thesis"), "was not written by `health collect`"),
        (lambda path: path.write_text(text(result())), "was not written by `health collect`"),
        (lambda path: path.symlink_to("/dev/null"), "is a link or device"),
    ],
)
def test_nothing_of_others_is_overwritten(tmp_path: Path, make: Any, words: str) -> None:
    """It is left unchanged."""
    path = tmp_path / "x"
    make(path)
    with pytest.raises(CannotWrite, match=words):
        write_summary(path, b"{}")


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """Says which file and why."""
    with pytest.raises(CannotWrite, match="json: no such file or directory"):
        write_summary(tmp_path / "no" / "sum.json", b"{}")
