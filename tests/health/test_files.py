"""Files that are not results: each kind of problem with its place and its fix, and never a traceback."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.health import read
from generator.health.gather import Gathered, gather
from generator.health.read import MAX_RESULT_BYTES, read_bytes
from generator.health.result import PROBLEM_KINDS, SUMMARY, FileProblem
from tests.health.results import check, gpus, result, text

GOOD = text(result())


def replaced(**fields: Any) -> str:
    """A result with other fields; None leaves one out."""
    changed = {key: value for key, value in (result() | fields).items() if value is not None}
    return text(changed)


def with_check(**fields: Any) -> str:
    """A result whose second check has other fields."""
    broken = {key: value for key, value in (gpus() | fields).items() if value is not None}
    return text(result("hpc-1", "quick", gpus(), broken))


def summary(*problems: dict[str, Any]) -> str:
    """A summary of nothing but problems."""
    return text({"summary": SUMMARY, "format": 1, "results": [], "superseded": 0, "problems": problems})


CONTENTS: dict[str, tuple[str, bytes | str, str, tuple[int, int]]] = {
    # name → (kind of problem, content, words of the message, line and column)
    "no byte": ("empty", "", "the file is empty", (0, 0)),
    "blanks": ("empty", " \n\t\n", "the file is empty", (0, 0)),
    "zero bytes": ("empty", bytes(4096), "4096 zero bytes", (0, 0)),
    "half": ("truncated", GOOD[: GOOD.index('"kind"') + 6], "ends in the middle, after 107 bytes", (6, 9)),
    "cut in a text": ("truncated", GOOD[: GOOD.index("hpc-1") + 3], "ends in the middle, after", (3, 15)),
    "cut after a comma": ("truncated", GOOD[: GOOD.index(",") + 1] + "\n", "ends in the middle, after", (2, 15)),
    "random bytes": ("binary", b"\x7fELF\x02\x01\x01\x00\x00", "it is binary", (0, 0)),
    "compressed": ("binary", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03", "it is binary", (0, 0)),
    "zeros behind": ("binary", GOOD[:40].encode() + bytes(100), "it is binary", (0, 0)),
    "UTF-16": ("encoding", GOOD.encode("utf-16"), "it is UTF-16", (0, 0)),
    "Latin-1": (
        "encoding",
        replaced(reason="ü").replace("\\u00fc", "ü").encode("latin-1"),
        "it is not UTF-8: byte 0xfc",
        (13, 14),
    ),
    "no comma": ("damaged", GOOD.replace(',\n  "kind"', '\n  "kind"'), "expecting ',' delimiter", (6, 3)),
    "two results": ("damaged", GOOD + GOOD, "extra data", (25, 2)),
    "a line in a text": ("damaged", GOOD.replace("hpc-1", "hpc\n1"), "invalid control character", (3, 15)),
    "deep": ("damaged", "[" * 100_000, "nested too deeply", (0, 0)),
    "NaN": ("not_a_number", GOOD.replace("412", "NaN"), "it holds NaN", (0, 0)),
    "infinity": ("not_a_number", GOOD.replace("412", "-Infinity"), "it holds -Infinity", (0, 0)),
    "too large for a float": ("not_a_number", GOOD.replace("412", "1e999"), "it holds 1e999", (0, 0)),
    "too many digits": ("not_a_number", GOOD.replace("412", "9" * 5000), "a number of thousands of digits", (0, 0)),
    "large": ("too_large", GOOD + " " * MAX_RESULT_BYTES, "more than 1 MiB", (0, 0)),
    "tomorrow's": ("future_format", replaced(format=2, verdict="splendid"), "format 2; this CycleForge reads", (0, 0)),
    "tomorrow's summary": (
        "future_format",
        text({"summary": SUMMARY, "format": 2, "nodes": {}}),
        "format 2; this CycleForge reads",
        (0, 0),
    ),
    "notes": ("foreign", "hpc-3 was replaced on Monday\n", "not a JSON object", (0, 0)),
    "a number": ("foreign", "42", "not a JSON object", (0, 0)),
    "a list": ("foreign", "[1, 2]", "not a node health result", (0, 0)),
    "other JSON": ("foreign", '{"name": "package", "summary": 3}', "not a node health result", (0, 0)),
    "no format": ("invalid", replaced(format=None), "'format' is missing", (0, 0)),
    "format 0": ("invalid", replaced(format=0), "'format' is 0, not 1", (0, 0)),
    "format true": ("invalid", replaced(format=True), "'format' is true, not 1", (0, 0)),
    "no checks": ("invalid", replaced(checks=None), "'checks' is missing", (0, 0)),
    "checks no list": ("invalid", replaced(checks={}), "'checks' is {}, not a list", (0, 0)),
    "check no object": ("invalid", replaced(checks=["gpu"]), '"gpu", not an object', (0, 0)),
    "node a number": ("invalid", replaced(node=7), "'node' is 7, not the name of a node", (0, 0)),
    "node a command": ("invalid", replaced(node="a;reboot"), "'node' is \"a;reboot\", not the name of a node", (0, 0)),
    "node with a line end": ("invalid", replaced(node="a\n"), "'node' is \"a\\n\", not the name", (0, 0)),
    "half a letter": ("encoding", replaced(reason="\ud800"), "escapes half a character", (0, 0)),
    "a long text": ("invalid", replaced(boot_id="x" * 5000), "not a text of at most 128 characters", (0, 0)),
    "size known a text": (
        "invalid",
        replaced(size_known="true"),
        '"true", not true or false',
        (0, 0),
    ),
    "kind": ("invalid", replaced(kind="quik"), "not one of deep, quick (did you mean 'quick'?)", (0, 0)),
    "run verdict": ("invalid", replaced(verdict="PASS"), "one of fail, incomplete, pass, warn (did you mean", (0, 0)),
    "time without zone": ("invalid", replaced(time="2026-11-21T10:00:00"), "not a UTC time such as", (0, 0)),
    "no such day": ("invalid", replaced(time="2026-02-30T10:00:00Z"), "not a valid date and time", (0, 0)),
    "duration": ("invalid", replaced(duration_ms=-1), "'duration_ms' is -1, not a whole number from 0", (0, 0)),
    "duration a float": ("invalid", replaced(duration_ms=1.5), "'duration_ms' is 1.5, not a whole number", (0, 0)),
    "value a number": ("invalid", with_check(value=51.2), "'checks[1].value' is 51.2, not a text", (0, 0)),
    "value null": (
        "invalid",
        text(result("a", "quick", gpus() | {"value": None})),
        "'checks[0].value' is null, not a",
        (0, 0),
    ),
    "check without verdict": ("invalid", with_check(verdict=None), "'checks[1].verdict' is missing", (0, 0)),
    "check verdict": ("invalid", with_check(verdict="failed"), "fail, no_baseline, not_measured, pass, warn", (0, 0)),
    "relation": ("invalid", with_check(relation=">="), "'checks[1].relation' is \">=\", not one of eq, ge,", (0, 0)),
    "many errors": ("invalid", replaced(checks=[{}] * 9), "'checks[0].check' is missing", (0, 0)),
    "a check without a name": ("invalid", with_check(check=""), "'checks[1].check' is \"\", not a text with", (0, 0)),
    "a key of tomorrow": ("invalid", replaced(future={"a": 1}), "'future' is not a key of this format", (0, 0)),
    "a key of a check": ("invalid", with_check(severity="high"), "'checks[1].severity' is not a key", (0, 0)),
    "many checks": ("invalid", replaced(checks=[gpus()] * 2001), "not a list of at most 2000", (0, 0)),
    "summary without results": ("invalid", text({"summary": SUMMARY, "format": 1}), "'results' is missing", (0, 0)),
    "summary with odd problems": (
        "invalid",
        summary({"file": "a", "kind": "odd", "message": "b"}),
        "not a kind of",
        (0, 0),
    ),
    "summary with other problems": ("invalid", summary({"file": 1}), "'problems[0].file' is 1, not a text", (0, 0)),
    "bad result of a summary": (
        "invalid",
        text({"summary": SUMMARY, "format": 1, "results": [result(node=1)], "superseded": 0, "problems": []}),
        "'node' is 1, not the name of a node",
        (0, 0),
    ),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_contents_that_are_no_result(name: str, tmp_path: Path) -> None:
    """The kind, the words, the place; and the good file beside it still counts."""
    kind, content, words, place = CONTENTS[name]
    (tmp_path / "b.json").write_bytes(content if isinstance(content, bytes) else content.encode())
    (tmp_path / "a.txt").write_text(text(result("hpc-7")))
    found = gather([str(tmp_path)])
    assert list(found.newest) == [("hpc-7", "quick")]
    assert len(found.problems) == 1
    problem = found.problems[0]
    assert problem.kind == kind
    assert words in problem.message
    assert (problem.line, problem.column) == place
    assert problem.file.startswith(str(tmp_path / "b.json"))
    assert problem.hint
    assert len(problem.message) < 400


# ---------------------------------------------------------------- what is not a file


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    # Its address must be short, wherever the folder is.
    here = Path.cwd()
    os.chdir(path.parent)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path.name)
    os.chdir(here)


def _circle(path: Path) -> None:
    path.symlink_to(path.with_name("other"))
    path.with_name("other").symlink_to(path)


def _way_back(path: Path) -> None:
    path.mkdir()
    (path / "up").symlink_to(path.parent)


def _nowhere(path: Path) -> None:
    path.symlink_to(path.parent / "nothing")


MADE: dict[str, tuple[Callable[[Path], None], str, str]] = {
    "pipe": (_pipe, "not_a_file", "it is a pipe, socket or device"),
    "socket": (_socket, "unreadable", "cannot read it: no such device or address"),
    "loop of links": (_circle, "loop", "too many levels of symbolic links"),
    "link back up": (_way_back, "loop", "points back to a folder that contains it"),
    "link to nowhere": (_nowhere, "unreadable", "cannot read it: no such file or directory"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "not_a_file", "it is a pipe, socket or device"),
    "read error": (lambda path: path.symlink_to("/proc/self/mem"), "unreadable", "cannot read it: input/output error"),
}


@pytest.mark.parametrize("name", MADE)
def test_what_is_no_file(name: str, tmp_path: Path) -> None:
    """Nothing waits, nothing runs in a circle, and the good file is read once."""
    make, kind, words = MADE[name]
    make(tmp_path / "x")
    (tmp_path / "good").write_text(GOOD)
    found = gather([str(tmp_path), str(tmp_path)])
    assert list(found.newest) == [("hpc-1", "quick")]
    assert {problem.kind for problem in found.problems} == {kind}
    assert words in found.problems[0].message


@pytest.mark.parametrize("place", ["file", "folder"])
def test_no_permission(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests may run as root, whom no mode stops."""
    (tmp_path / "closed").write_text(GOOD)

    def refuse(path: str, *_: object) -> object:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("os.open" if place == "file" else "os.listdir", refuse)
    found = gather([str(tmp_path)])
    assert [(problem.kind, problem.message) for problem in found.problems] == [
        ("unreadable", "cannot read it: permission denied")
    ]
    assert found.has_errors


def test_two_results_of_one_moment(tmp_path: Path) -> None:
    """The worse one counts, both files are named, and what is the same is not a problem."""
    (tmp_path / "a").write_text(text(result(verdict="fail", reason="gpu_count")))
    (tmp_path / "b").write_text(GOOD)
    (tmp_path / "c").write_text(json.dumps(json.loads(GOOD), sort_keys=True))
    found = gather([str(tmp_path)])
    assert found.newest["hpc-1", "quick"].result.verdict == "fail"
    assert [problem.kind for problem in found.problems] == ["conflict"]
    assert f"2 different quick results of hpc-1 with the same time, 2026-11-21T12:00:00Z: {tmp_path}/a" in (
        found.problems[0].message
    )
    assert gather([str(tmp_path / "c"), str(tmp_path / "b")]).problems == ()


def test_every_kind_of_problem_has_its_bad_case() -> None:
    """And every bad case is of a kind that exists; `duplicate_key` is in summaries of earlier versions only."""
    tested = {kind for kind, *_ in CONTENTS.values()} | {kind for _, kind, _ in MADE.values()}
    assert tested | {"conflict", "duplicate_key"} == set(PROBLEM_KINDS)


def test_what_an_earlier_version_has_collected_is_read() -> None:
    """Its problems, too, of a kind that is not found any more."""
    row = {"file": "a.json", "line": None, "column": None, "level": "error", "kind": "duplicate_key", "message":
           "key 'verdict' occurs twice in one object", "hint": "", "node": "hpc-1", "check_kind": "quick"}  # fmt: skip
    (problem,) = read_bytes(summary(row).encode(), "x").earlier
    assert problem.as_json() == row | {"hint": PROBLEM_KINDS["duplicate_key"].hint}


def test_of_a_key_that_occurs_twice_the_last_one_counts() -> None:
    """A reader that declares its fields does not see it."""
    twice = GOOD.replace('"verdict": "pass",\n  "reason"', '"verdict": "pass",\n  "verdict": "fail",\n  "reason"')
    assert [loaded.result.verdict for loaded in read_bytes(twice.encode(), "x").results] == ["fail"]


# ---------------------------------------------------------------- what a broken file still tells


@pytest.mark.parametrize("content", [GOOD[:300], replaced(verdict="splendid"), replaced(format=9)])
def test_a_broken_file_still_tells_its_node(content: str) -> None:
    """So that the report can name the node instead of calling it missing."""
    problem = read_bytes(content.encode(), "x").problems[0]
    assert (problem.node, problem.check_kind) == ("hpc-1", "quick")


def test_a_problem_points_at_its_place() -> None:
    """As compilers do; without a line it is the file alone."""
    assert FileProblem("a.json", 3, 7, "damaged", "it is not JSON").place == "a.json:3:7"
    assert FileProblem("a.json", 0, 0, "empty", "the file is empty").place == "a.json"


# ---------------------------------------------------------------- properties


@given(st.binary(max_size=200) | st.text(alphabet='{}[]",:\\ \n0eEnN.-truefalsnu\x00é', max_size=60).map(str.encode))
def test_no_bytes_break_the_reader(content: bytes) -> None:
    """A result, or a problem of a known kind."""
    found = read_bytes(content, "x")
    assert not found.results
    assert [problem.kind in PROBLEM_KINDS for problem in found.problems] == [True]


def test_no_beginning_of_a_result_is_a_result() -> None:
    """Wherever a node stopped writing."""
    whole = replaced(reason='ü 😀 "quoted" \\ \x01')
    for length in range(len(whole)):
        found = read_bytes(whole[:length].encode(), "x")
        assert not found.results
        assert found.problems[0].kind in ("truncated", "empty"), whole[:length]
        assert found.problems[0].level == "error"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(sorted(result())), JSON)
def test_no_value_of_a_field_breaks_the_reader(field: str, value: Any) -> None:
    """It fits, or the problem names it."""
    found = read_bytes(text(result() | {field: value}).encode(), "x")
    assert found.results or found.problems[0].kind in ("invalid", "future_format")


@given(st.sampled_from(["check", "verdict", "value", "relation", "limit", "unit", "detail"]), JSON)
def test_no_value_of_a_check_breaks_the_reader(field: str, value: Any) -> None:
    """It fits, or the problem names it."""
    found = read_bytes(text(result("hpc-1", "quick", gpus() | {field: value})).encode(), "x")
    assert found.results or found.problems[0].kind == "invalid"


# ---------------------------------------------------------------- what is fine


def test_what_is_read_without_complaint(tmp_path: Path) -> None:
    """Empty defaults, a byte-order mark, a fraction of a second, any name and depth."""
    later = result("hpc-2", time="2026-11-21T10:00:00.25Z")
    del later["engine"], later["reason"], later["boot_id"], later["physical_host"], later["duration_ms"]
    later["checks"] = [{"check": "mount", "verdict": "pass"}]
    folder = tmp_path / "ü" / "b c"
    folder.mkdir(parents=True)
    (folder / ".hidden").write_bytes(b"\xef\xbb\xbf" + text(later).encode())
    os.link(folder / ".hidden", folder / "second name")
    (tmp_path / "link").symlink_to(folder)
    found: Gathered = gather([str(tmp_path)])
    assert found.problems == ()
    assert found.files == 1
    assert list(found.newest) == [("hpc-2", "quick")]
    assert found.newest["hpc-2", "quick"].result.checks[0].unit == ""


def test_a_large_summary_is_read_and_a_huge_one_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of one result is bounded tighter than one of thousands."""
    filler = check("x", detail="y" * 3000)
    results = [result(f"hpc-{number}", "quick", *[filler] * 40) for number in range(12)]
    path = tmp_path / "summary"
    path.write_text(json.dumps({"summary": SUMMARY, "format": 1, "results": results, "superseded": 3, "problems": []}))
    assert path.stat().st_size > MAX_RESULT_BYTES
    found = gather([str(path)])
    assert (len(found.newest), found.superseded, found.problems) == (12, 3, ())
    monkeypatch.setattr(read, "MAX_SUMMARY_BYTES", MAX_RESULT_BYTES + 10)
    assert [problem.kind for problem in gather([str(path)]).problems] == ["too_large"]
