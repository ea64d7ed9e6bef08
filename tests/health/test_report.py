"""`cycleforge health report` and `collect` in this process: texts, lists, JSON, exit codes."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert
from syrupy.assertion import SnapshotAssertion

from generator.cli import common, main
from generator.files import assets
from generator.health.assess import Wishes, assess
from generator.health.gather import Gathered
from generator.health.machine import as_json
from generator.health.read import Loaded, read_bytes
from generator.health.result import KINDS, NodeResult, Relation, RunVerdict, Verdict
from generator.health.text import Report, problem_lines
from generator.results.hostlist import expand
from tests.answers import data_of
from tests.health import fleet
from tests.health.results import H100, check, gpus, pair, reduce, result, text, write


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty working folder, so that messages name no folder of the machine."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NO_COLOR", raising=False)


class Run:
    """One `cycleforge health …`: exit code, both outputs."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        code = main(["health", *arguments])
        out, err = self._capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    def json(self, *arguments: str) -> dict[str, Any]:
        """The answer as data."""
        found: dict[str, Any] = data_of(self(*arguments, "--json")[1])
        return found


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command."""
    return Run(capsys)


# ---------------------------------------------------------------- the whole text


def test_the_report_of_a_fleet(run: Run, snapshot: SnapshotAssertion) -> None:
    """Healthy, failing, missing, stale, damaged, suspect, unmeasured nodes; two sizes and one that nobody knows."""
    fleet.make(Path("health"))
    code, out, err = run("report", "health", *fleet.ARGUMENTS)
    assert (code, err) == (2, "")
    assert out == snapshot


def test_the_report_of_a_fleet_as_json(run: Run, snapshot: SnapshotAssertion) -> None:
    """The same for machines."""
    fleet.make(Path("health"))
    answer = run.json("report", "health", *fleet.ARGUMENTS)
    assert f"{json.dumps(answer, indent=2, ensure_ascii=False)}\n" == snapshot


def test_the_report_of_a_healthy_fleet(run: Run, snapshot: SnapshotAssertion) -> None:
    """Short, but it says what was compared."""
    for number in range(1, 7):
        write(Path("health"), *pair(f"hpc-{number}", f"47{number}"))
    code, out, err = run("report", "health", "--expect", "hpc-[1-6]")
    assert (code, err) == (0, "")
    assert out == snapshot


def test_a_fault_of_a_whole_rack(run: Run, snapshot: SnapshotAssertion) -> None:
    """One line for forty nodes, and which hosts they share."""
    for number in range(1, 41):
        verdict, up = ("fail", str(number % 8)) if number <= 24 else ("pass", "8")
        link = check("ib_links", verdict, value=up, relation="eq", limit="8", unit="links", detail=f"mlx5_ib{up}")
        fields = {"physical_host": f"AMS{number // 16:02d}", "verdict": verdict}
        write(Path("health"), result(f"hpc-{number}", "quick", gpus(), link, **fields))
    code, out, _ = run("report", "health", "--kind", "quick")
    assert code == 1
    assert out[out.index("FAILURES") :] == snapshot


# ---------------------------------------------------------------- a summary says the same


def test_a_collected_summary_gives_the_same_report(run: Run) -> None:
    """But for the number of files."""
    fleet.make(Path("health"))
    code, out, err = run("collect", "health", "--into", "all.json")
    assert code == 2
    assert out == "all.json: 33 results of 17 nodes, from 35 files; 0 older results left out, 2 problems\n"
    assert "health/hpc-14.deep.json:19:24: error" in err
    direct, collected = (run("report", path, *fleet.ARGUMENTS) for path in ("health", "all.json"))
    assert direct[1].replace("35 files read", "1 file read") == collected[1]
    assert direct[0] == collected[0] == 2


def test_a_collection_is_the_same_every_time(run: Run) -> None:
    """No time, no order of the run in it."""
    fleet.make(Path("health"))
    for name in ("one", "two"):
        run("collect", "health", "--into", name)
    run("collect", "health/..", "--into", "one", "--json")
    for name in ("one", "two"):
        assert Path(name).exists()
    run("collect", "health", "--into", "one")
    assert Path("one").read_bytes() == Path("two").read_bytes()


def test_collect_as_json(run: Run) -> None:
    """Counts and problems."""
    fleet.make(Path("health"))
    answer = run.json("collect", "health", "--into", "all.json")
    problems = answer.pop("problems")
    assert answer == {"ok": False, "file": "all.json", "nodes": 17, "results": 33, "files": 35, "superseded": 0}
    assert [(row["kind"], row["level"], row["node"]) for row in problems] == [
        ("foreign", "warning", None),
        ("truncated", "error", "hpc-14"),
    ]


# ---------------------------------------------------------------- lists for scontrol


@pytest.mark.parametrize(
    ("states", "nodes"),
    [
        (["failed"], "hpc-[9,13]"),
        (["missing"], "hpc-[15-16]"),
        (["stale"], "hpc-10"),
        (["unmeasured"], "gpu-02,hpc-[9,14],new-1"),
        (["suspect"], "hpc-[11-12]"),
        (["failed", "stale", "missing"], "hpc-[9-10,13,15-16]"),
    ],
)
def test_host_lists(run: Run, states: list[str], nodes: str) -> None:
    """One line, ready for `scontrol update NodeName=`; the problems of files go to standard error."""
    fleet.make(Path("health"))
    flags = [word for state in states for word in ("--nodes-only", state)]
    code, out, err = run("report", "health", *fleet.ARGUMENTS, *flags)
    assert (code, out) == (2, f"{nodes}\n")
    assert "health/hpc-14.deep.json:19:24: error" in err


def test_an_empty_host_list_prints_nothing(run: Run) -> None:
    """`NodeName=` without a name would be an error of scontrol."""
    write(Path("health"), *pair("hpc-1"))
    assert run("report", "health", "--nodes-only", "failed") == (0, "", "")


# ---------------------------------------------------------------- exit codes


def _healthy() -> None:
    write(Path("health"), *pair("hpc-1"), *pair("hpc-2"))


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        ([], 0),
        (["--expect", "hpc-[1-2]"], 0),
        (["--expect", "hpc-1"], 0),
        (["--expect", "hpc-[1-3]"], 1),
        (["--max-age", "1h", "--now", "2026-11-21T12:30:00Z"], 0),
        (["--max-age", "1h", "--now", "2026-11-21T13:30:00Z"], 1),
        (["--max-deep-age", "1h", "--now", "2026-11-21T13:30:00Z"], 1),
        (["--max-age", "1h", "--kind", "deep", "--now", "2026-11-21T13:30:00Z"], 0),
        (["--now", "2030-01-01T00:00:00Z"], 0),
    ],
)
def test_exit_codes(run: Run, flags: list[str], code: int) -> None:
    """0 healthy, 1 missing or stale."""
    _healthy()
    assert run("report", "health", *flags)[0] == code


@pytest.mark.parametrize(
    ("changed", "codes"),
    [
        ({"verdict": "fail"}, (1, 1)),
        ({"verdict": "incomplete"}, (1, 0)),
        ({"verdict": "warn", "checks": [check("heat", "warn"), gpus()]}, (0, 0)),
        ({"format": 2}, (2, 2)),
    ],
)
def test_exit_codes_of_one_bad_node(run: Run, changed: dict[str, Any], codes: tuple[int, int]) -> None:
    """1 failed or not measured; 2 a file that cannot be used. With --allow-unmeasured, that alone does not count."""
    write(Path("health"), *pair("hpc-1"), result("hpc-2", "deep", reduce("470")), result("hpc-2") | changed)
    assert run("report", "health")[0] == codes[0]
    assert run("report", "health", "--allow-unmeasured")[0] == codes[1]


def test_a_foreign_file_is_listed_and_changes_no_exit_code(run: Run) -> None:
    """It holds nothing of a node."""
    _healthy()
    Path("health/notes.txt").write_text("hpc-2 was reseated")
    code, out, _ = run("report", "health")
    assert code == 0
    assert "health/notes.txt: warning: it is text, but not a JSON object" in out


def test_the_clock_counts_when_it_is_asked_for(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """By --max-age, or by `--now now`; never else."""
    _healthy()
    monkeypatch.setattr("time.time", lambda: 1_795_262_400.0 + 3 * 3600)
    assert run("report", "health", "--max-age", "2h")[0] == 1
    assert run.json("report", "health", "--now", "now")["nodes"][0]["results"]["quick"]["age_s"] == 3 * 3600
    assert run.json("report", "health")["nodes"][0]["results"]["quick"]["age_s"] == 0


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["report", "nowhere"], "there is no file or folder nowhere", "scp -r"),
        (["report", "."], "there are no node health results in .", "scp -r <scheduler>:/sched/cycleforge-health ."),
        (["collect", ".", "--into", "x"], "there are no node health results in .", "scp -r"),
        (["report", "health", "--expect", "hpc-[2-1]"], "the range 2-1 runs backwards", "hpc-[1-16],gpu-[01-04]"),
        (["report", "health", "--max-age", "soon"], "--max-age 'soon' is not a valid age", "2h, 90m"),
        (["report", "health", "--now", "noon"], "--now 'noon' is not a valid time", "2026-11-21T10:00:00Z"),
        (
            ["report", "health", "--nodes-only", "sick"],
            "invalid choice: 'sick'",
            "see `cycleforge health report --help`",
        ),
        (["report", "health", "--expct", "a"], "unknown option '--expct'", "did you mean '--expect'?"),
        (["report"], "the following arguments are required: PATH", "see `cycleforge health report --help`"),
        (["collect", "health"], "the following arguments are required: --into", "cycleforge health collect --help"),
        (["reprot", "health"], "invalid choice: 'reprot'", "see `cycleforge health --help`"),
        ([], "the following arguments are required: ACTION", "see `cycleforge health --help`"),
    ],
)
def test_wrong_usage(run: Run, arguments: list[str], message: str, hint: str) -> None:
    """Exit code 2, one sentence, one way out, nothing on standard output."""
    if "health" in arguments:
        _healthy()
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert f"  hint: {hint}" in err or hint in err


def test_an_empty_folder_with_expected_nodes_is_a_report(run: Run) -> None:
    """Nobody reports: that is what should be known."""
    Path("health").mkdir()
    code, out, err = run("report", "health", "--expect", "hpc-[1-2]")
    assert (code, err) == (1, "")
    assert out.startswith("2 nodes: 2 missing\n0 files read\n")


def test_only_broken_files(run: Run) -> None:
    """What can be said is said; the summary keeps the problem."""
    Path("a.json").write_text(text(result("hpc-3"))[:200])
    code, out, _ = run("report", "a.json")
    assert code == 2
    assert "hpc-3  —        unreadable" in out
    assert run("collect", "a.json", "--into", "all.json")[0] == 2
    assert "hpc-3  —        unreadable" in run("report", "all.json")[1]


def test_what_cannot_be_written(run: Run) -> None:
    """Exit code 5."""
    _healthy()
    Path("mine").write_text("mine")
    code, out, err = run("collect", "health", "--into", "mine")
    assert (code, out) == (5, "")
    assert "mine was not written by `health collect`, so it is left unchanged" in err


# ---------------------------------------------------------------- terminals


def test_color_stands_beside_the_text(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same letters in the same columns; none when it is not wanted."""
    fleet.make(Path("health"))
    plain = run("report", "health", *fleet.ARGUMENTS)[1]
    assert "\x1b" not in plain
    monkeypatch.setattr(common, "use_color", lambda *_: True)
    colored = run("report", "health", *fleet.ARGUMENTS)[1]
    assert "\x1b[1;31mFAIL\x1b[0m" in colored
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == plain


@pytest.mark.parametrize(("flags", "expected"), [((), True), (("--no-color",), False)])
def test_no_color_is_understood_after_the_action(
    flags: tuple[str, ...], *, expected: bool, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after every other verb."""
    _healthy()
    asked: list[bool] = []

    def use_color(stream: io.TextIOBase, args: Any) -> bool:
        asked.append(not getattr(args, "no_color", False))
        return False

    monkeypatch.setattr(common, "use_color", use_color)
    assert run("report", "health", *flags)[0] == 0
    assert asked == [expected]


def test_a_result_cannot_steer_the_terminal(run: Run) -> None:
    """Escapes of a tool's output are shown, not obeyed."""
    evil = "\x1b[2J\x07\u202egone"
    bad = check(evil, "fail", value="1", relation="ge", limit="2", unit=evil, detail=evil)
    slow = check("rate", value="1", relation="ge", limit="0", unit="GB/s", detail=evil)
    write(
        Path("health"),
        result("hpc-1", "quick", bad, slow, vm_size=evil, physical_host=evil, reason=evil, verdict="fail"),
    )
    write(Path("health"), result("hpc-1", "deep", check("x", "not_measured", detail=evil), vm_size=evil))
    Path("health/\x1b[2J").write_text("?")
    _, out, _ = run("report", "health")
    assert set(out) & set("\x1b\x07\u202e") == set()
    assert "\\x1b[2J" in out


def test_many_problems_of_one_kind_are_counted() -> None:
    """A wrong folder must not flood the terminal."""
    from generator.health.result import FileProblem

    lines = list(problem_lines([FileProblem(f"{number:03d}", 0, 0, "foreign", "no JSON") for number in range(100)]))
    assert len(lines) == 41
    assert lines[-1] == "  and 80 more of the kind foreign; --json lists all"


# ---------------------------------------------------------------- anything that is valid

TEXTS = st.text(max_size=8) | st.sampled_from(["1", "9.5", "1e99", "-3", "GB/s", "100", "100.0"])
CHECKS = st.builds(
    lambda verdict, relation, fields: check("c", verdict, relation=relation, **fields),
    st.sampled_from(get_args(Verdict)),
    st.sampled_from(get_args(Relation)),
    st.fixed_dictionaries(dict.fromkeys(("value", "limit", "unit", "detail"), TEXTS)),
)
RESULTS = st.builds(
    lambda number, kind, checks, fields: result(f"n{number}", kind, *checks, **fields),
    st.integers(1, 12),
    st.sampled_from(KINDS),
    st.lists(CHECKS, max_size=3),
    st.fixed_dictionaries(
        {
            "verdict": st.sampled_from(get_args(RunVerdict)),
            "vm_size": st.sampled_from([H100, "", "odd"]),
            "physical_host": TEXTS,
            "boot_id": st.sampled_from(["", "a", "b"]),
            "time": st.sampled_from(["2026-11-21T12:00:00Z", "2000-01-01T00:00:00Z", "2099-12-31T23:59:59.9Z"]),
        }
    ),
)


@given(st.lists(RESULTS, max_size=20), st.booleans(), st.sampled_from([None, 0.0, 4e9]))
def test_every_valid_result_can_be_reported(rows: list[dict[str, Any]], color: bool, now: float | None) -> None:
    """Text and JSON come out, every node is in both, and a failure is never lost."""
    loaded = {(row["node"], row["kind"]): Loaded(found, found.seconds, text(row).encode(), "f") for row in rows
              for found in [convert(row, NodeResult)]}  # fmt: skip
    wishes = Wishes(expect=("n1", "m1"), now=now, max_age_s=60.0 if now is not None else None)
    assessment = assess(Gathered(loaded, (), len(rows), 0), wishes)
    printed = Report(assessment, color=color).text()
    answer = json.loads(json.dumps(as_json(assessment)))
    assert {row["node"] for row in answer["nodes"]} == {node for node, _ in loaded} | {"n1", "m1"}
    assert all(row["node"] in printed for row in answer["nodes"])
    failed = {node for (node, _), each in loaded.items() if each.result.verdict == "fail"}
    assert failed <= {row["node"] for row in answer["nodes"] if "failed" in row["states"]}
    assert not answer["ok"]


# ---------------------------------------------------------------- the text and the JSON agree


def test_json_has_every_node_and_the_same_lists(run: Run) -> None:
    """What a script needs."""
    fleet.make(Path("health"))
    answer = run.json("report", "health", *fleet.ARGUMENTS)
    assert answer["ok"] is False
    counts = answer["counts"]
    assert counts.pop("nodes") == sum(counts.values()) == 19
    for state, listed in answer["host_lists"].items():
        names = [row["node"] for row in answer["nodes"] if state in row["states"]]
        assert (list(expand(listed)) if listed else []) == names
    assert answer["not_expected"] == "new-1"
    assert answer["fleet"]["min_nodes"] == 5
    assert "sku_performance_baseline" in answer["fleet"]["source"]


# ---------------------------------------------------------------- what to do


def test_what_to_do_follows_from_what_the_failures_ask_for(tmp_path: Path, run: Run) -> None:
    """What heals needs nobody, a reset is a reboot, and a fault of the host another VM."""
    cures = {"hpc-1": "heal", "hpc-2": "reset", "hpc-3": "reboot", "hpc-4": "service", "hpc-5": ""}
    for name, cure in cures.items():
        write(tmp_path / "health", result(name, "quick", gpus("7"), verdict="fail", cure=cure), result(name, "deep"))
    _, out, _ = run("report", "health")
    steps = out.partition("NEXT")[2]
    assert "State=DRAIN" in steps
    assert "reboot 2 nodes; slurm_nhc then resumes those that pass: hpc-[2-3]\n" in steps
    assert "sudo scontrol update NodeName=hpc-4 State=POWER_DOWN\n" in steps
    assert run.json("report", "health")["nodes"][3]["results"]["quick"]["cure"] == "service"


def test_health_sh_knows_every_word_that_the_report_recommends(tmp_path: Path, run: Run) -> None:
    fleet.make(tmp_path / "health")
    write(tmp_path / "health", result("gpu-03", "quick", gpus("7"), verdict="fail", cure="service"))
    _, out, _ = run("report", "health", *fleet.ARGUMENTS)
    recommended = re.findall(r"health\.sh ([a-z ]+?)(?=[;\n])", out)
    script = assets.folder("projects") / "slurm_nhc/specs/default/cluster-init/files/health.sh"
    known = re.findall(r'^        "?([a-z ]+)"?\)', script.read_text(), re.MULTILINE)
    assert {"deep now", "quick", "repaired"} == set(recommended)
    assert set(recommended) <= set(known)


@given(st.integers(min_value=0, max_value=699), st.sampled_from(["", "\x00", "\ufffd", '"', "}"]))
def test_a_result_that_ends_anywhere_breaks_no_report(end: int, behind: str) -> None:
    """The node is in the report as long as its name can be read; nothing else changes, and the exit code says it."""
    whole = text(result("hpc-7", "quick", reason="a port is down", verdict="fail"))
    found = whole[:end] + behind
    content = read_bytes(found.encode(), "hpc-7.quick.json")
    gathered = Gathered({}, content.problems, 1, 0)
    report = Report(assess(gathered, Wishes())).text()
    # Without the blanks of its end, or with its own bracket behind it, it is whole.
    if "".join(found.split()) != "".join(whole.split()):
        assert not content.results
        assert ("hpc-7" in report) is bool(content.problems)
