"""Reading records: what is wrong with a file is named, and never breaks the report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from generator.validation.gather import Gathered, gather
from tests.validation import records
from tests.validation.records import check, record, text_of

GOOD = text_of(record("smoke-gpu", 1, check("gpu-1", nodes=["gpu-1"]), nodes=["gpu-1"]))


def changed(**fields: Any) -> str:
    return text_of(json.loads(GOOD) | fields)


def with_check(**fields: Any) -> str:
    value = json.loads(GOOD)
    value["checks"][0] |= fields
    return text_of(value)


def without(key: str) -> str:
    value = json.loads(GOOD)
    del value[key]
    return text_of(value)


def with_points(points: str) -> str:
    return GOOD.replace('"series": [\n  ]', '"series": [{"name": "x", "unit": "", "x_unit": "", "nodes": [], '
                                            f'"points": {points}}}]')  # fmt: skip


DAMAGED: dict[str, tuple[str | bytes, str, str]] = {
    "nothing": ("", "empty", "the file is empty"),
    "cut off": (GOOD[:200], "truncated", "ends in the middle, after 200 bytes"),
    "two together": (GOOD + GOOD, "damaged", "extra data"),
    "binary": (b"\x7fELF\x01\x02", "binary", "not text"),
    "other encoding": (GOOD.encode("utf-16"), "encoding", "UTF-16"),
    "a page of a proxy": ("<html>sign in</html>", "foreign", "not a JSON object"),
    "someone else's": ('{"name": "x"}', "foreign", "not the record of a run"),
    "a key of tomorrow": (changed(weight=3), "invalid", "'weight' is not a key of this format"),
    "a key of a check": (with_check(weight=3), "invalid", "'checks[0].weight' is not a key of this format"),
    "NaN": (with_check(value=float("nan")), "not_a_number", "NaN"),
    "too large for arithmetic": (with_check(value=7).replace(": 7", f": {'9' * 400}"), "invalid", "a number beyond"),
    "another form": (changed(format=2), "future_format", "format 2; this CycleForge reads format 1"),
    "no form": (without("format"), "invalid", "'format' is missing"),
    "no job": (without("job"), "invalid", "'job' is missing"),
    "no checks": (without("checks"), "invalid", "'checks' is missing"),
    "no end": (without("ended"), "invalid", "'ended' is missing"),
    "checks of texts": (changed(checks=["pass"]), "invalid", "'checks[0]' is \"pass\", not an object"),
    "an unknown verdict": (changed(verdict="passed"), "invalid", "'verdict' is \"passed\", not one of"),
    "an unknown verdict of a check": (with_check(verdict="ok"), "invalid", "'checks[0].verdict' is \"ok\""),
    "a value in a list": (with_check(value=[1]), "invalid", "'checks[0].value' is [1], not a number within ±1e300"),
    "a true value": (with_check(value=True), "invalid", "'checks[0].value' is true"),
    "no date": (changed(started="yesterday"), "invalid", "'started' is \"yesterday\", not a UTC time"),
    "no such date": (changed(started="2026-02-30T00:00:00Z"), "invalid", "not a valid date"),
    "a node that is markup": (with_check(nodes=["<b>"]), "invalid", "'checks[0].nodes[0]' is \"<b>\", not the name"),
    "a node of the run that is markup": (
        changed(nodes=[{"name": "a b", "physical_host": "", "facts": {}}]), "invalid", "not the name of a node"),
    "facts that are numbers": (
        changed(nodes=[{"name": "a", "physical_host": "", "facts": {"x": 1}}]), "invalid", "is 1, not a text"),
    "a point of one": (with_points("[[1]]"), "invalid", "'series[0].points[0]' is [1], not two numbers"),
    "a point of texts": (with_points('[["1", 2]]'), "invalid", "points[0][0]' is \"1\", not a number"),
    "a point of true": (with_points("[[true, 2]]"), "invalid", "points[0][0]' is true, not a number"),
    "points that are none": (with_points("7"), "invalid", "points' is 7, not a list"),
}  # fmt: skip


def read(folder: Path, content: str | bytes, name: str = "run.json") -> Gathered:
    path = folder / "runs" / "smoke-gpu-1" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return gather([str(folder / "runs")])


@pytest.mark.parametrize("name", DAMAGED)
def test_a_file_that_cannot_be_used_is_a_named_problem(name: str, tmp_path: Path) -> None:
    content, kind, words = DAMAGED[name]
    found = read(tmp_path, content)
    assert found.runs == ()
    (problem,) = found.problems
    assert (problem.kind, problem.level) == (kind, "error")
    assert words in problem.message
    assert problem.hint
    assert problem.file.endswith("smoke-gpu-1/run.json")


def test_a_file_that_ends_early_says_where(tmp_path: Path) -> None:
    (problem,) = read(tmp_path, GOOD[:200]).problems
    assert problem.line == GOOD[:200].count("\n") + 1
    assert problem.place.endswith(f"run.json:{problem.line}:{problem.column}")


def test_every_beginning_of_a_record_is_a_problem(tmp_path: Path) -> None:
    """Whatever stopped a copy: none of its beginnings reads as a run."""
    path = tmp_path / "run.json"
    end = len(GOOD.rstrip())
    for length in range(end):
        path.write_text(GOOD[:length])
        found = gather([str(path)])
        assert found.runs == (), length
        assert [problem.level for problem in found.problems] == ["error"], length


def test_a_good_record_is_read_whole(tmp_path: Path) -> None:
    value = records.performance(7, records.names(3))
    value["nodes"][1]["facts"]["note"] = 'it says "x": 1'  # what looks like a key within a text
    records.write(tmp_path, value)
    (run,) = gather([str(tmp_path)]).runs
    assert (run.job, run.run, run.verdict, run.cluster) == ("node-performance-gpu", "7", "pass", "lab")
    assert [node.name for node in run.nodes] == ["gpu-1", "gpu-2", "gpu-3"]
    assert run.nodes[1].facts["note"] == 'it says "x": 1'
    assert len(run.checks) == 24
    assert run.checks[0].value == value["checks"][0]["value"]
    assert [*map(list, zip(run.series[0].xs, run.series[0].ys, strict=True))] == value["series"][0]["points"]
    assert run.duration_s == 750


def test_of_a_key_that_occurs_twice_the_last_one_counts(tmp_path: Path) -> None:
    (run,) = read(tmp_path, GOOD.replace('"job":', '"job": "other", "job":')).runs
    assert run.job == "smoke-gpu"


def test_a_whole_number_may_be_as_long_as_a_job_writes_it(tmp_path: Path) -> None:
    (run,) = read(tmp_path, with_check(value=10**23)).runs
    assert run.checks[0].value == 10**23


def test_space_before_a_colon_does_no_harm(tmp_path: Path) -> None:
    assert len(read(tmp_path, GOOD.replace('":', '" :')).runs) == 1


def test_only_records_of_a_folder_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "smoke" / "results" / "1"
    folder.mkdir(parents=True)
    (folder / "nodes.json").write_text("[]")
    (folder / "run.json.partial").write_text(GOOD[:50])
    (folder / "verdict").write_text("pass\n")
    assert gather([str(tmp_path)]) == Gathered((), (), (), 0)


def test_a_file_that_is_named_is_read_whatever_its_name(tmp_path: Path) -> None:
    path = tmp_path / "yesterday.json"
    path.write_text(GOOD)
    assert len(gather([str(path)]).runs) == 1


def test_the_copy_in_the_folder_of_all_runs_is_the_same_run(tmp_path: Path) -> None:
    for place in ("smoke/results/1", "runs/smoke-gpu-1"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "run.json").write_text(GOOD)
    found = gather([str(tmp_path)])
    assert (len(found.runs), found.copies, found.problems) == (1, 1, ())


def test_of_a_run_and_its_beginning_the_end_counts(tmp_path: Path) -> None:
    """The results of a job begin as an error; a copy from then says nothing once there is one from the end."""
    for place, text in (("a", changed(verdict="error", ended=None, checks=[])), ("b", GOOD)):
        (tmp_path / place).mkdir()
        (tmp_path / place / "run.json").write_text(text)
    found = gather([str(tmp_path)])
    assert [run.verdict for run in found.runs] == ["pass"]
    assert found.problems == ()


def test_of_two_that_differ_the_worse_one_counts(tmp_path: Path) -> None:
    for place, text in (("a", GOOD), ("b", with_check(verdict="fail"))):
        (tmp_path / place).mkdir()
        (tmp_path / place / "run.json").write_text(text)
    found = gather([str(tmp_path)])
    assert [run.verdict for run in found.runs] == ["fail"]
    (problem,) = found.problems
    assert problem.kind == "conflict"
    assert "2 different records of smoke-gpu run 1" in problem.message
