"""What counts as what: nothing is a pass that is none, and slow nodes show against their like."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert

from generator.health.assess import Assessment, Node, Wishes, assess
from generator.health.fleet import MIN_NODES, compare
from generator.health.gather import gather
from generator.health.grouping import by_check, by_host, short_size
from generator.health.result import NodeResult
from tests.health.results import A100, H100, NOON, check, gpus, pair, reduce, result, text

NOON_S = 1_795_262_400.0


def judged(folder: Path, *results: dict[str, Any], **wishes: Any) -> Assessment:
    """The assessment of results in a folder."""
    for number, each in enumerate(results):
        (folder / str(number)).write_text(text(each))
    return assess(gather([str(folder)]), Wishes(**wishes))


def only(assessment: Assessment) -> Node:
    """The one node."""
    (node,) = assessment.nodes
    return node


def details(node: Node, sort: Any) -> list[str]:
    """The findings of a class, in words."""
    return [finding.text for finding in node.of(sort)]


# ---------------------------------------------------------------- one node


def test_a_healthy_node(tmp_path: Path) -> None:
    """Both results pass."""
    node = only(judged(tmp_path, *pair("hpc-1")))
    assert (node.state, node.findings) == ("healthy", ())


@pytest.mark.parametrize(
    ("changed", "state", "words"),
    [
        # The node's own verdict, in all its forms.
        ({"checks": [gpus("7")], "verdict": "fail"}, "failed", ["gpu_count 7 GPUs, expected 8 GPUs"]),
        ({"verdict": "fail", "reason": "mount gone"}, "failed", ["run (mount gone)"]),
        ({"verdict": "fail"}, "failed", ["run (failed without naming a check)"]),
        # It says pass, and does not.
        ({"checks": [gpus("7")]}, "failed", ["gpu_count 7 GPUs, expected 8 GPUs"]),
        (
            {"checks": [check("copy", value="9.5", relation="ge", limit="23.0", unit="GB/s")]},
            "failed",
            ["copy 9.5 GB/s, at least 23.0 GB/s (the node reports pass, but its numbers fail)"],
        ),
        (
            {"checks": [check("copy", value="", relation="ge", limit="23.0", unit="GB/s"), gpus()]},
            "unmeasured",
            ["copy at least 23.0 GB/s (the node reports pass without two numbers to compare)"],
        ),
        (
            {"checks": [check("copy", "warn", value="N/A", relation="ge", limit="23.0")]},
            "unmeasured",
            ["copy N/A, at least 23.0 (the node reports warn without two numbers to compare)"],
        ),
        ({"checks": []}, "unmeasured", ["run (no check gave a verdict)"]),
        (
            {"checks": [check("copy", "no_baseline", value="51")]},
            "unmeasured",
            ["copy 51", "run (no check gave a verdict)"],
        ),
        ({"verdict": "incomplete", "reason": "out of time"}, "unmeasured", ["run (out of time)"]),
        ({"verdict": "incomplete"}, "unmeasured", ["run (incomplete, without a reason)"]),
        (
            {"checks": [gpus(), check("copy", "not_measured", detail="nvbandwidth is not installed")]},
            "unmeasured",
            ["copy (nvbandwidth is not installed)"],
        ),
        ({"size_known": False}, "unmeasured", ["run (the catalogue has no figures for this VM size)"]),
        # Not wrong, but to be looked at.
        (
            {"checks": [check("heat", "warn", value="94", relation="le", limit="93", unit="C")], "verdict": "warn"},
            "suspect",
            ["heat 94 C, at most 93 C"],
        ),
        # No limit: said, but no reason to fail beside checks that pass.
        ({"checks": [gpus(), check("copy", "no_baseline", value="51", unit="GB/s")]}, "healthy", ["copy 51 GB/s"]),
        ({"checks": [check("mount", detail="/shared")]}, "healthy", []),
    ],
)
def test_what_a_quick_result_counts_as(tmp_path: Path, changed: dict[str, Any], state: str, words: list[str]) -> None:
    """Fail closed."""
    node = only(judged(tmp_path, result() | changed, result("hpc-1", "deep", reduce("470"))))
    assert node.state == state
    found = [finding.text for finding in node.findings]
    assert len(found) == len(words)
    for text_, start in zip(found, words, strict=True):
        assert text_.startswith(start)


def test_a_failure_counts_before_everything_else(tmp_path: Path) -> None:
    """But the node keeps its other states."""
    quick = result("hpc-1", "quick", gpus("7"), check("copy", "not_measured"), check("heat", "warn"), verdict="fail")
    assessment = judged(tmp_path, quick, max_age_s=60.0, now=NOON_S + 61)
    assert only(assessment).states == ("failed", "stale", "unmeasured")
    assert assessment.named("stale", "suspect") == ["hpc-1"]
    assert assessment.count("failed") == 1
    assert assessment.count("stale") == 0


@pytest.mark.parametrize(("present", "absent"), [("quick", "deep"), ("deep", "quick")])
def test_a_kind_that_is_not_there_was_not_measured(tmp_path: Path, present: str, absent: str) -> None:
    """Unless only the other kind was asked for."""
    each = result("hpc-1", present)
    assert details(only(judged(tmp_path, each)), "unmeasured") == [f"run (no {absent} result)"]
    assert only(judged(tmp_path, each, kinds=(present,))).state == "healthy"
    assert judged(tmp_path, each, kinds=(absent,)).nodes == ()


def test_the_copy_of_a_deep_failure_is_not_counted_twice(tmp_path: Path) -> None:
    """The quick run repeats it so that Slurm gets to know; without the deep result it is all there is."""
    copy = result("hpc-1", "quick", gpus(), check("deep_checks", "fail", detail="nccl_all_reduce 300"), verdict="fail")
    slow = check("nccl_all_reduce", "fail", value="300", relation="ge", limit="420", unit="GB/s")
    deep = result("hpc-1", "deep", slow, verdict="fail")
    assert details(only(judged(tmp_path, copy, deep)), "failure") == ["nccl_all_reduce 300 GB/s, at least 420 GB/s"]
    (tmp_path / "1").unlink()
    assert details(only(judged(tmp_path, copy)), "failure") == ["deep_checks (nccl_all_reduce 300)"]


@pytest.mark.parametrize(("newer", "outdated"), [("quick", "deep"), ("deep", "quick")])
def test_a_result_of_an_earlier_boot_proves_nothing(tmp_path: Path, newer: str, outdated: str) -> None:
    """The name may belong to another machine by now; a failure stays one until it is measured again."""
    now, before = (
        result("hpc-1", newer, boot_id="b"),
        result("hpc-1", outdated, boot_id="a", time="2026-11-20T12:00:00Z"),
    )
    node = only(judged(tmp_path, now, before))
    assert details(node, "unmeasured") == [f"run (no {outdated} checks since the last boot)"]
    failing = before | {"checks": [gpus("7")], "verdict": "fail"}
    assert only(judged(tmp_path, now, failing)).state == "failed"
    assert only(judged(tmp_path, now, before | {"boot_id": ""})).state == "healthy"


def test_the_newest_result_says_what_a_node_is(tmp_path: Path) -> None:
    """A name may get another size and host with the next start."""
    quick, deep = pair("hpc-1")
    old = deep | {"time": "2026-11-20T12:00:00Z", "vm_size": A100, "physical_host": "H1"}
    node = only(judged(tmp_path, quick | {"physical_host": "H2", "vm_size": H100.upper()}, old))
    assert (node.vm_size, node.physical_host) == (H100, "H2")
    assert only(judged(tmp_path, quick, old)).physical_host == "H1"


# ---------------------------------------------------------------- age


@pytest.mark.parametrize(
    ("late_s", "stale"),
    [(0, None), (7200, None), (7201, "2h old, at most 2h"), (-300, None), (-301, "5m in the future")],
)
def test_results_that_are_too_old(tmp_path: Path, late_s: float, stale: str | None) -> None:
    """Too old, or from a clock that is wrong; deep results have a limit of their own."""
    node = only(judged(tmp_path, *pair("hpc-1"), max_age_s=7200.0, now=NOON_S + late_s))
    assert (node.state == "stale") is (stale is not None)
    assert list(node.stale) == (["quick"] if stale else [])
    assert (stale or "") in node.stale.get("quick", "")


def test_deep_results_have_an_age_of_their_own(tmp_path: Path) -> None:
    """They are made at boot and on idle nodes."""
    quick, deep = pair("hpc-1")
    old = deep | {"time": "2026-11-18T12:00:00Z"}
    assert only(judged(tmp_path, quick, old, max_age_s=7200.0, now=NOON_S)).state == "healthy"
    assert list(only(judged(tmp_path, quick, old, max_deep_age_s=86_400.0, now=NOON_S)).stale) == ["deep"]


def test_without_a_clock_ages_count_from_the_newest_result(tmp_path: Path) -> None:
    """So that the same files always give the same report."""
    assessment = judged(tmp_path, *pair("hpc-1"), *pair("hpc-2", time="2026-11-21T11:00:00Z"))
    assert assessment.reference == NOON_S
    assert assessment.newest is not None
    assert assessment.newest.result.time == NOON


# ---------------------------------------------------------------- expected nodes, files


def test_expected_nodes(tmp_path: Path) -> None:
    """Missing is a failure; what nobody expects is said."""
    assessment = judged(tmp_path, *pair("hpc-1"), *pair("old-1"), expect=("hpc-1", "hpc-2"))
    assert assessment.named("missing") == ["hpc-2"]
    assert [node.name for node in assessment.nodes if node.is_unexpected] == ["old-1"]
    assert not assessment.is_healthy


def test_a_node_with_a_broken_file_is_not_missing(tmp_path: Path) -> None:
    """It reports, but what it says is unknown; with a good file beside, that one counts."""
    (tmp_path / "broken").write_text(text(result("hpc-2", "deep"))[:200])
    assessment = judged(tmp_path, *pair("hpc-1"), expect=("hpc-1", "hpc-2"))
    assert (assessment.named("missing"), assessment.named("unmeasured")) == ([], ["hpc-2"])
    assert assessment.nodes[1].unreadable == ("deep",)
    assert details(assessment.nodes[1], "unmeasured") == ["run (no quick result)"]
    assert judged(tmp_path, *pair("hpc-1"), *pair("hpc-2")).nodes[1].unreadable == ()
    assert judged(tmp_path, *pair("hpc-1"), *pair("hpc-2")).gathered.has_errors


def test_unmeasured_nodes_may_be_allowed(tmp_path: Path) -> None:
    """Failures never."""
    half = result("hpc-1")
    assert not judged(tmp_path, half).is_healthy
    assert judged(tmp_path, half, allow_unmeasured=True).is_healthy
    assert not judged(tmp_path, half, allow_unmeasured=True, expect=("hpc-1", "hpc-2")).is_healthy


# ---------------------------------------------------------------- the fleet


def fleet(*values: str, **changed: Any) -> list[Any]:
    """Deep results of as many nodes."""
    fields = {"check": "nccl_all_reduce", "verdict": "pass", "relation": "ge", "limit": "1", "unit": "GB/s"} | changed
    size = fields.pop("vm_size", H100)
    return [
        convert(result(f"hpc-{number}", "deep", fields | {"value": value}, vm_size=size), NodeResult)
        for number, value in enumerate(values, 1)
    ]


@pytest.mark.parametrize(
    ("value", "strong"),
    [("96.6", None), ("96.5", None), ("96.49", False), ("93.0", False), ("92.99", True), ("9.9", True), ("110", None)],
)
def test_below_the_median(value: str, strong: bool | None) -> None:
    """At the limit is within it; numbers, not texts."""
    groups, deviations = compare(fleet("100", "100.0", "100", "1e2", "100", value))
    assert groups[0].median == 100
    assert [each.strong for each in deviations] == ([] if strong is None else [strong])
    assert all(each.node == "hpc-6" for each in deviations)


def test_two_slow_nodes_of_five_are_both_found() -> None:
    """Which is why there must be five."""
    assert MIN_NODES == 5
    _, deviations = compare(fleet("100", "80", "100", "90", "100"))
    assert [(each.node, each.strong) for each in deviations] == [("hpc-2", True), ("hpc-4", True)]
    groups, deviations = compare(fleet("100", "80", "100", "100"))
    assert (groups[0].nodes, groups[0].median, deviations) == (4, None, ())


@pytest.mark.parametrize(
    "changed",
    [
        {"relation": "le"},
        {"relation": "eq"},
        {"unit": "us"},
        {"unit": "GPUs"},
        {"verdict": "fail"},
        {"verdict": "not_measured"},
        {"vm_size": ""},
    ],
)
def test_what_is_not_compared(changed: dict[str, Any]) -> None:
    """Counts, ceilings, values that miss their limit, machines that nobody knows."""
    assert compare(fleet("100", "100", "100", "100", "100", "50", **changed)) == ((), ())


def test_a_value_without_published_limit_is_compared_too() -> None:
    """There the fleet is the only measure."""
    _, deviations = compare(
        fleet("100", "100", "100", "100", "100", "50", verdict="no_baseline", relation="", limit="")
    )
    assert [each.node for each in deviations] == ["hpc-6"]


def test_a_node_counts_with_its_slowest_gpu() -> None:
    """As the catalogue says."""
    many = fleet("100", "100", "100", "100", "100")
    slow = convert(result("hpc-9", "deep", reduce("100", "1"), reduce("90", "1"), reduce("101", "1")), NodeResult)
    _, deviations = compare([*many, slow])
    assert [(each.node, each.value) for each in deviations] == [("hpc-9", "90")]


def test_sizes_checks_and_units_are_compared_apart() -> None:
    """Case does not make another size."""
    results = [*fleet("100", "100", "100"), *fleet("10", "10", "10", vm_size=A100), *fleet("5", "5", "5", unit="Gb/s")]
    groups, deviations = compare(results)
    assert [(group.vm_size, group.unit, group.median) for group in groups] == [
        (A100, "GB/s", None),
        (H100, "GB/s", None),
        (H100, "Gb/s", None),
    ]
    assert deviations == ()


@given(st.lists(st.integers(0, 1000), min_size=MIN_NODES, max_size=30))
def test_less_than_half_of_the_fleet_is_suspect(values: list[int]) -> None:
    """A median has as many above."""
    _, deviations = compare(fleet(*map(str, values)))
    assert len(deviations) <= len(values) / 2
    assert [each.percent_below for each in deviations] == sorted(
        (each.percent_below for each in deviations), reverse=True
    )


def test_a_node_that_fails_is_no_suspect(tmp_path: Path) -> None:
    """It is pulled anyway."""
    many = [each for number in range(1, 7) for each in pair(f"hpc-{number}")]
    bad = [result("hpc-7", "quick", gpus("7"), verdict="fail"), result("hpc-7", "deep", reduce("430"))]
    slow = pair("hpc-8", "430")
    assessment = judged(tmp_path, *many, *bad, *slow)
    assert assessment.named("suspect") == ["hpc-8"]
    assert assessment.is_healthy is False


# ---------------------------------------------------------------- groups


def test_a_cause_that_many_share_shows_as_one(tmp_path: Path) -> None:
    """By check and VM size, with the span of the values; by physical host."""
    copy = {"relation": "ge", "limit": "48", "unit": "GB/s"}
    failing = [
        result("hpc-1", "quick", check("copy", "fail", value="9.5", detail="GPU 1", **copy), physical_host="H1"),
        result("hpc-2", "quick", check("copy", "fail", value="41.25", detail="GPU 3", **copy), physical_host="H1"),
        result("hpc-3", "quick", check("copy", "pass", value="50", **copy), physical_host="H1"),
        result(
            "gpu-1", "quick", check("copy", "fail", value="7", relation="ge", limit="21", unit="GB/s"), vm_size=A100
        ),
    ]
    assessment = judged(tmp_path, *failing, kinds=("quick",))
    assert [
        (row.check, short_size(row.vm_size), row.host_list, row.of, row.words)
        for row in by_check(assessment, "failure")
    ] == [
        ("copy", "ND96isr_H100_v5", "hpc-[1-2]", 3, "9.5 to 41.25 GB/s, at least 48 GB/s (GPU 1; and 1 more like it)"),
        ("copy", "ND96asr_v4", "gpu-1", 1, "7 GB/s, at least 21 GB/s"),
    ]
    assert [(host.physical_host, host.nodes, host.of, host.checks) for host in by_host(assessment)] == [
        ("H1", ("hpc-1", "hpc-2"), 3, ("copy",))
    ]


@pytest.mark.parametrize(
    ("size", "short"),
    [
        (H100, "ND96isr_H100_v5"),
        ("standard_nd999_v9", "nd999_v9"),
        ("odd", "odd"),
        ("", "unknown"),
        ("Standard_", "unknown"),
    ],
)
def test_vm_sizes_are_shown_short(size: str, short: str) -> None:
    """As Azure writes them, where the catalogue knows."""
    assert short_size(size) == short
