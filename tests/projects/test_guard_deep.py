"""After a deep run: whether what a node has missed is its own fault, or that of a floor that most nodes miss."""

from __future__ import annotations

import json
import os
import time

import pytest

from tests.bed.scripts.healthy import healthy
from tests.bed.scripts.planned import Planned
from tests.projects.conftest import MakeNode

CONF = "etc/cycleforge/health.conf"
SLOW = ("fail", "nccl_all_reduce", "455.00 GB/s, at least 460 GB/s")
FAST = ("pass", "nccl_all_reduce", "")
OTHERS = ("n2", "n3", "n4", "n5")


@pytest.fixture
def node(make_node: MakeNode) -> Planned:
    """One that boots in a partition of five; the scheduler watches."""
    node = Planned(healthy(make_node("slurm_nhc"), deep_s=100))
    node.node.write(CONF, node.node.read(CONF).replace("results=\n", "results=/sched/results\n"))
    node.passes(1)
    watched(node)
    return node


def watched(node: Planned, *floors: str, partitions: str = "hpc") -> None:
    lines = [*(f"partition {name} 4" for name in partitions.split(",")), *(f"floor {floor}" for floor in floors)]
    lines += [*(f"node {other} hpc" for other in OTHERS), f"boots {name_of(node)} {partitions}"]
    node.node.write("sched/results.guard/state", "".join(f"{line}\n" for line in lines))


def name_of(node: Planned) -> str:
    name = node.node.result("quick")["node"]
    assert isinstance(name, str)
    return name


def measured(node: Planned, verdict: str, *others: str) -> None:
    for other in others:
        node.node.write(f"sched/results.guard/claims/deep_{verdict}.nccl_all_reduce@hpc/{other}", "")


def deep(node: Planned, *records: tuple[str, str, str]) -> dict[str, object]:
    (node.node.state / "active/slurmd.service").unlink(missing_ok=True)
    node.says("deep", ("pass", "gpu_count", ""), *records)
    node.runs("deep", "boot")
    result = json.loads(node.node.read("var/lib/cycleforge/health/deep.json"))
    assert isinstance(result, dict)
    return result


@pytest.mark.parametrize(
    ("missed", "passed", "verdict"), [(1, 0, "fail"), (2, 0, "warn"), (2, 2, "warn"), (2, 3, "fail"), (4, 0, "warn")]
)
def test_what_most_that_measured_it_miss_only_warns(node: Planned, missed: int, passed: int, verdict: str) -> None:
    """Three of them at least, this node among them, and more than half."""
    others = (*OTHERS, "stranger")
    measured(node, "checks", *others[:missed])
    measured(node, "passed", *others[missed : missed + passed])
    if passed == 3:
        node.node.write(
            "sched/results.guard/state", node.node.read("sched/results.guard/state") + "node stranger hpc\n"
        )
    result = deep(node, SLOW)
    assert result["verdict"] == verdict
    assert node.stands() == (["deep heal"] if verdict == "fail" else [])
    node.runs("gate", code=3 if verdict == "fail" else 0)


def test_what_only_warns_says_so_in_the_result_and_a_fault_beside_it_stands(node: Planned) -> None:
    measured(node, "checks", *OTHERS)
    result = deep(node, SLOW, ("fail", "nccl_loopback", "39.50 GB/s"), ("pass", "ib_write", ""))
    checks = result["checks"]
    assert isinstance(checks, list)
    assert [(row["check"], row["verdict"], row.get("cure")) for row in checks[1:]] == [
        ("nccl_all_reduce", "warn", None), ("nccl_loopback", "fail", "heal"), ("ib_write", "pass", None),
    ]  # fmt: skip
    assert result["reason"] == "nccl_loopback (39.50 GB/s)"


@pytest.mark.parametrize("cure", ["service", "reset", "reboot"])
def test_what_needs_more_than_to_pass_is_of_the_machine(node: Planned, cure: str) -> None:
    measured(node, "checks", *OTHERS)
    assert deep(node, (cure, "nccl_all_reduce", "wrong values"))["verdict"] == "fail"


def test_the_watchs_word_counts_for_each_partition_of_the_node(node: Planned) -> None:
    watched(node, "hpc nccl_all_reduce")
    assert deep(node, SLOW)["verdict"] == "warn"
    watched(node, "hpc nccl_all_reduce", partitions="hpc,all")
    assert deep(node, SLOW)["verdict"] == "fail"


def test_a_node_says_what_it_missed_and_takes_it_back(node: Planned) -> None:
    claims = node.node.root / "sched/results.guard/claims"

    def told() -> list[str]:
        return sorted(path.parent.name for path in claims.glob(f"*nccl*/{name_of(node)}"))

    deep(node, SLOW)
    assert told() == ["deep_checks.nccl_all_reduce@hpc"]
    node.runs("quick")
    assert told() == ["deep_checks.nccl_all_reduce@hpc"], "the first quick run of a boot takes only quick claims back"
    deep(node, FAST)
    assert told() == ["deep_passed.nccl_all_reduce@hpc"]


@pytest.mark.parametrize("how", ["off", "gone", "silent"])
def test_without_a_watch_every_miss_counts(node: Planned, how: str) -> None:
    measured(node, "checks", *OTHERS)
    if how == "off":
        node.configure("guard=true", "guard=false")
    elif how == "gone":
        (node.node.root / "sched/results.guard/state").unlink()
    else:
        os.utime(node.node.root / "sched/results.guard/state", (time.time() - 3600,) * 2)
    assert deep(node, SLOW)["verdict"] == "fail"
