"""Judging a cluster by its runs: what decides, which nodes are named, and what proves nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from generator.health import fleet
from generator.validation import peers
from generator.validation.assess import Assessment, assess, commands, headline
from generator.validation.gather import gather
from tests.validation import records
from tests.validation.records import check, record


def judged(folder: Path, *values: dict[str, Any]) -> Assessment:
    return assess(gather([str(records.write(folder, *values))]))


def states(assessment: Assessment) -> dict[str, str]:
    return {view.name: view.state for view in assessment.nodes}


@pytest.mark.parametrize(
    ("verdicts", "worst", "proven"),
    [
        (["pass", "pass"], "pass", True),
        (["pass", "warn"], "warn", True),
        (["pass", "no_baseline"], "no_baseline", False),
        (["warn", "error"], "error", False),
        (["error", "fail"], "fail", True),
    ],
)
def test_the_worst_job_decides(verdicts: list[str], worst: str, proven: bool, tmp_path: Path) -> None:
    found = judged(tmp_path, *(record(f"job{place}", 1, check("x", verdict)) for place, verdict in enumerate(verdicts)))
    assert (found.verdict, found.is_proven) == (worst, proven)


def test_nothing_proves_nothing() -> None:
    assert assess(gather([])).verdict == "error"


def test_the_newest_run_of_a_job_decides(tmp_path: Path) -> None:
    found = judged(tmp_path, record("a", 1, check("x", "fail")), record("a", 12, check("x")))
    assert (found.verdict, len(found.current)) == ("pass", 1)


def test_a_file_that_cannot_be_read_is_no_pass(tmp_path: Path) -> None:
    records.write(tmp_path, record("a", 1, check("x")))
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "run.json").write_text("{")
    found = assess(gather([str(tmp_path)]))
    assert (found.verdict, found.is_proven) == ("error", False)
    assert "1 file cannot be used" in headline(found)


@pytest.mark.parametrize(
    ("fields", "verdict", "doubt"),
    [
        ({"verdict": "pass", "checks": []}, "error", "it has no check"),
        ({"verdict": "pass", "ended": None}, "error", "it says pass, but has not ended"),
        ({"verdict": "pass", "checks": [check("x", "fail")]}, "fail", "one of its checks says fail"),
        (
            {"verdict": "warn", "checks": [check("x", "no_baseline")]},
            "no_baseline",
            "one of its checks says no_baseline",
        ),
        ({"verdict": "fail"}, "fail", ""),
    ],
)
def test_a_record_that_says_better_of_itself_is_not_believed(
    fields: dict[str, Any], verdict: str, doubt: str, tmp_path: Path
) -> None:
    (run,) = judged(tmp_path, record("a", 1, check("x"), **fields)).runs
    assert run.verdict == verdict
    assert doubt in run.doubt


def test_nodes_are_named_by_what_is_known_against_them(tmp_path: Path) -> None:
    nodes = records.names(6)
    found = judged(
        tmp_path,
        record(
            "a", 1,
            check("gemm", "fail", 1, 2, "TFLOPS", "GPU 5", nodes=["gpu-1"]),
            check("pair", "fail", 1, 2, "GB/s", nodes=["gpu-2", "gpu-3"]),
            check("clock", "warn", 1, 2, "MHz", nodes=["gpu-4"]),
            check("answer", "error", nodes=["gpu-5"]),
            check("everything", "fail", nodes=nodes),
            nodes=nodes,
        ),
    )  # fmt: skip
    assert states(found) == {
        "gpu-1": "replace", "gpu-2": "suspect", "gpu-3": "suspect", "gpu-4": "watch",
        "gpu-5": "unmeasured", "gpu-6": "good",
    }  # fmt: skip
    (finding,) = found.nodes[0].findings
    assert finding.text == "1 TFLOPS, expected 2 TFLOPS; GPU 5"
    assert found.nodes[0].physical_host == "AMS07000"
    assert [command for _, command in commands(found)] == [
        "sudo scontrol update NodeName=gpu-1 State=DRAIN Reason='drained by hand: gemm'",
        "sudo scontrol update NodeName=gpu-1 State=POWER_DOWN",
    ]


def test_a_node_that_passed_the_same_check_later_is_good(tmp_path: Path) -> None:
    failed = record("a", 1, check("gemm gpu-1", "fail", nodes=["gpu-1"]), nodes=["gpu-1"])
    passed = record("a", 2, check("gemm gpu-1", nodes=["gpu-1"]), nodes=["gpu-1"])
    assert states(judged(tmp_path, failed, passed)) == {"gpu-1": "good"}


def test_a_node_that_was_left_out_since_is_still_to_replace(tmp_path: Path) -> None:
    """The proof goes on without it; that the others pass says nothing of it."""
    failed = record("a", 1, check("gemm", "fail", nodes=["gpu-1"]), nodes=records.names(2))
    passed = record("a", 2, check("gemm", nodes=["gpu-2"]), nodes=["gpu-2"])
    found = judged(tmp_path, failed, passed)
    assert states(found)["gpu-1"] == "replace"
    assert found.verdict == "fail"
    assert headline(found) == "the job passed; 1 node to replace"


def test_another_vm_of_the_same_name_is_another_node(tmp_path: Path) -> None:
    failed = record("a", 1, check("gemm", "fail", nodes=["gpu-1"]), nodes=["gpu-1"])
    other = record("b", 2, check("smoke", nodes=["gpu-1"]), nodes=["gpu-1"])
    other["nodes"][0]["physical_host"] = "AMS07999"
    found = judged(tmp_path, failed, other)
    assert states(found) == {"gpu-1": "good"}
    assert found.nodes[0].physical_host == "AMS07999"


def test_nodes_of_two_clusters_are_not_mixed_up(tmp_path: Path) -> None:
    one = record("a", 1, check("gemm", "fail", nodes=["gpu-1"]), nodes=["gpu-1"])
    two = record("a", 2, check("gemm", nodes=["gpu-1"]), nodes=["gpu-1"], cluster="other")
    found = judged(tmp_path, one, two)
    assert [(view.cluster, view.state) for view in found.nodes] == [("lab", "replace"), ("other", "good")]


@pytest.mark.parametrize(("percent", "state"), [(3.4, "good"), (4, "watch"), (8, "suspect")])
def test_a_node_that_is_slower_than_its_peers_is_named(percent: float, state: str, tmp_path: Path) -> None:
    values = [100.0, 100.2, 99.9, 100.1, 100.0, 100 - percent]
    checks = [check("hbm", "pass", value, 50, "GB/s", nodes=[f"gpu-{place}"]) for place, value in enumerate(values)]
    found = judged(tmp_path, record("a", 1, *checks, nodes=[f"gpu-{place}" for place in range(6)]))
    assert states(found)["gpu-5"] == state
    assert [name for name, other in states(found).items() if name != "gpu-5" and other != "good"] == []
    assert found.verdict == "pass"


@pytest.mark.parametrize(
    ("name", "subject"),
    [("gpu-1", "node"), ("loopback gpu-1", "loopback"), ("link gpu-1 mlx5_0", "link mlx5_0"), ("gpu-10 x", "gpu-10 x")],
)
def test_the_same_check_of_two_nodes_is_called_the_same(name: str, subject: str, tmp_path: Path) -> None:
    found = judged(tmp_path, record("a", 1, check(name, "pass", 1, 1, "GB/s", nodes=["gpu-1"])))
    assert [each.subject for _, measured in found.current for each in measured] == [subject]


def test_four_nodes_have_no_peers(tmp_path: Path) -> None:
    checks = [check("hbm", "pass", value, 50, "GB/s", nodes=[f"gpu-{value}"]) for value in (100, 101, 102, 60)]
    assert set(states(judged(tmp_path, record("a", 1, *checks))).values()) <= {"good"}


def test_a_higher_latency_is_not_faster(tmp_path: Path) -> None:
    """Where more is not better, nobody is called slow for a low value."""
    checks = [check("latency", "pass", value, 5, "us", nodes=[f"gpu-{value}"]) for value in (20, 21, 22, 23, 2)]
    assert judged(tmp_path, record("a", 1, *checks)).in_state("suspect", "watch") == []


def test_as_many_nodes_are_needed_as_for_health_results() -> None:
    assert peers.MIN_NODES == fleet.MIN_NODES


def test_history_counts_from_the_runs_before(tmp_path: Path) -> None:
    values = [(1, 100, "pass"), (2, 50, "fail"), (3, 102, "pass"), (4, 101, "pass"), (5, 90, "pass")]
    runs = [record("a", run, check("all_reduce", verdict, value, 40, "GB/s")) for run, value, verdict in values]
    (line,) = judged(tmp_path, *runs).lines
    assert [point.value for point in line.points] == [100, 50, 102, 101, 90]
    assert line.usual == 101  # the failed run does not count
    assert line.is_worse
    assert line.change_percent == pytest.approx(-10.89, abs=0.01)


def test_two_earlier_runs_are_no_usual_value(tmp_path: Path) -> None:
    runs = [record("a", run, check("x", "pass", value, 1, "GB/s")) for run, value in ((1, 100), (2, 100), (3, 10))]
    (line,) = judged(tmp_path, *runs).lines
    assert (line.usual, line.is_worse) == (None, False)


@pytest.mark.parametrize(("sick", "state"), [(1, "replace"), (2, "replace"), (3, "suspect"), (4, "suspect")])
def test_what_most_nodes_have_is_no_fault_of_one_of_them(sick: int, state: str, tmp_path: Path) -> None:
    """As prove.sh, which drains none then: it is the image, a driver or a setting."""
    nodes = [f"gpu-{number}" for number in range(1, 5)]
    checks = [check("aznhc", "fail" if place < sick else "pass", nodes=[node]) for place, node in enumerate(nodes)]
    found = judged(tmp_path, record("a", 1, *checks, nodes=nodes))
    assert states(found) == {node: state if place < sick else "good" for place, node in enumerate(nodes)}
    assert found.verdict == "fail"
    told = [finding.text for view in found.nodes for finding in view.findings]
    assert all(("nodes fail: look first for" in text) == (sick > 2) for text in told)
