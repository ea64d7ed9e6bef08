"""What the watch takes out of the reasons of our drains: words are no names, a cure speaks for all behind it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from generator.plan.common_checks import guard_table
from tests.bed.sick.table import rows
from tests.projects.test_guard_watch import DEEP, NODES, Scheduler

BROKEN = "deep_checks (nccl_all_reduce (all_reduce_perf ended with exit code 1); nccl_loopback (no memory))"
SHARE_GONE = "mount_shared (/shared is not mounted)"


@pytest.fixture(params=[True, False], ids=["folder", "no-folder"])
def watch(tmp_path: Path, request: pytest.FixtureRequest) -> Scheduler:
    """With the folder of claims, in which nobody has written, and without it."""
    made = Scheduler(tmp_path)
    made.partition("hpc", *NODES)
    if not request.param:
        (made.root / "sched/results.guard").rename(made.root / "gone")
    return made


def drained(watch: Scheduler, reason: str, *nodes: str) -> None:
    for node in nodes:
        watch.node(node, "drain", f"CycleForge health: {reason}")


@pytest.mark.parametrize("standing", [
    BROKEN,
    "deep_checks (gpu_diagnostic (dcgmi: memory; failed); gpu_copy_to_device 9 GB/s, at least 48 GB/s)",
    f"gpu_xid 1 fatal XIDs; {BROKEN}; {SHARE_GONE}",
    f"gpu_driver 9, expected 0; {SHARE_GONE}",
])  # fmt: skip
@pytest.mark.parametrize("cure", [
    "reboot the node", "reset the GPUs or reboot the node", "report the host to Azure and take another VM",
])  # fmt: skip
def test_nothing_behind_the_words_of_a_cure_counts(watch: Scheduler, cure: str, standing: str) -> None:
    drained(watch, f"{cure}: {standing}", *NODES[:6])
    watch.look(2)
    assert (watch.state(), watch.alarms(), watch.shown()) == ("up", [], "")


@pytest.mark.parametrize("standing", [
    "deep_checks (no verdict since this boot: not tested)",
    "deep_checks (could not be measured: nccl_all_reduce, nccl_loopback)",
    "deep_checks (a job's epilog failed, not tested since); a job's epilog failed, tested again",
    "drained before this VM was made, tested again",
    "could not be measured: gpu_count",
    f"deep_checks (ib_writ{'e' * 20}s (slow); stream_tri...",
    "deep_checks (ib_wri...", "mount_sha...",
])  # fmt: skip
def test_words_are_not_taken_for_checks(watch: Scheduler, standing: str) -> None:
    drained(watch, standing, *NODES[:6])
    watch.look(2)
    assert (watch.state(), watch.alarms(), watch.shown()) == ("up", [], "")


def test_words_of_a_tool_open_and_close_brackets_as_they_like(watch: Scheduler) -> None:
    """And what a quick check says has semicolons, too."""
    for said in ("closed))", "open (("):
        drained(watch, f"deep_checks (ib_write (perftest: {said}); cpu_stream 9 MB/s)", *NODES[:4])
        watch.look()
    drained(watch, "mount_shared (/shared; gone since boot)", *NODES[:4])
    watch.look()
    assert {alarm.split()[2] for alarm in watch.alarms()} == {"mount_shared"}


def test_reasons_blame_a_floor_only_where_more_than_half_of_the_partition_is_drained_for_it(watch: Scheduler) -> None:
    drained(watch, DEEP.format("nccl_all_reduce").removeprefix("CycleForge health: "), *NODES[:4])
    watch.look(2)
    assert watch.alarms() == [], "4 of 8, whoever of the others has measured it"
    drained(watch, DEEP.format("nccl_all_reduce").removeprefix("CycleForge health: "), NODES[4])
    watch.look(2)
    assert watch.state() == "up"
    (alarm,) = watch.alarms()
    assert alarm.startswith(
        "partition hpc: nccl_all_reduce is missed by 5 of 8 nodes of the partition, by the reasons of their drains, "
        "so its floor or the image is at fault"
    )
    if watch.claims.exists():
        assert re.search(r"nccl_all_reduce fails on 5 of 8 nodes, since \S+ by reasons;", watch.shown())


def test_without_shared_results_a_floor_is_right_again_when_its_nodes_are_back(tmp_path: Path) -> None:
    watch = Scheduler(tmp_path)
    watch.partition("hpc", *NODES)
    (watch.root / "etc/cycleforge/guard.conf").write_text("results=\n")
    drained(watch, DEEP.format("ib_write").removeprefix("CycleForge health: "), *NODES[:5])
    watch.look()
    for node in NODES:
        watch.node(node)
    watch.look(2)
    assert [alarm.endswith("so these drain again") for alarm in watch.alarms()] == [False, True]


def test_every_deep_check_that_the_page_drains_for_is_known_to_the_guard() -> None:
    (line,) = (line for line in guard_table().splitlines() if line.startswith("deep\t"))
    known = set(line.split("\t")[1].split())
    named = {match[1] for row in rows().values() if (match := re.search(r"health: deep_checks \((\w+)", row.reason))}
    sentences = {"no", "could", "a"}
    assert {"nccl_all_reduce", "ib_write", "cpu_stream", "rccl_all_reduce"} <= named
    assert named - sentences <= known
