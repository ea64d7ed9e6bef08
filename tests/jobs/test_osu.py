"""MPI between nodes without GPUs, with a fake of the OSU Micro-Benchmarks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from generator.catalog import vm_size
from tests.bed import parts
from tests.jobs.running import job, job_folder, plan_with, settings_of
from tests.jobs.test_fabric_pairs import FAIL, NO_BASELINE, PASS, WARN, run, verdicts

HB = "Standard_HB120rs_v3"


def osu(tmp_path: Path, nodes: int, /, size: str = HB, **environment: str) -> tuple[int, dict[str, Any]]:
    array = parts.node_array("hpc", vm_size(size), max_nodes=16)
    names = tuple(f"hpc-{number}" for number in range(1, nodes + 1))
    folder = job_folder(tmp_path, plan_with(job("osu", nodes, MPI_MODULE=""), array), names)
    # 1.3 us at full speed.
    return run(folder, **({"FAKE_BUSBW": "24", "FAKE_SEED": "1"} | environment))


def test_healthy_nodes_pass_and_the_curves_of_a_pair_are_kept(tmp_path: Path) -> None:
    status, record = osu(tmp_path, 4, FAKE_NOISE="1")
    assert status == PASS, record["log"]
    assert {series["name"] for series in record["series"]} == {"osu_latency", "osu_bw"}
    (latency,) = (check for check in record["checks"] if check["check"] == "latency whole")
    assert 1.25 < latency["value"] < 1.35
    assert latency["unit"] == "us"


def test_the_slow_node_is_named_by_latency_and_by_bandwidth(tmp_path: Path) -> None:
    status, record = osu(tmp_path, 6, FAKE_SLOW_NODES="hpc-2", FAKE_NOISE="1")
    assert status == FAIL, record["log"]
    named = {name for name, verdict in verdicts(record, "pass").items() if " node " in name and verdict == "fail"}
    assert named == {"latency node hpc-2", "bandwidth node hpc-2"}
    (slow,) = (check for check in record["checks"] if check["check"] == "latency node hpc-2")
    assert slow["value"] > slow["expected"]


def test_the_rate_of_the_port_warns(tmp_path: Path) -> None:
    status, record = osu(tmp_path, 4, FAKE_BUSBW="20", FAKE_NOISE="0")
    assert status == WARN
    assert {name.split(" ")[0] for name in verdicts(record, "pass")} == {"bandwidth"}


def test_latency_above_the_documented_one_warns(tmp_path: Path) -> None:
    status, record = osu(tmp_path, 4, SET_LATENCY_WARN_US="1.1")
    assert status == WARN
    assert {name.split(" ")[0] for name in verdicts(record, "pass")} == {"latency"}


def test_without_a_floor_two_nodes_have_no_baseline(tmp_path: Path) -> None:
    """HBv5 has four ports, and nobody says how many of them MPI uses for one pair."""
    status, _ = osu(tmp_path, 2, size="Standard_HB368rs_v5", FAKE_BUSBW="50")
    assert status == NO_BASELINE


@pytest.mark.parametrize("fault", ["FAKE_DEAD_NODES", "FAKE_CUT_NODES"])
def test_what_gives_no_whole_result_never_passes(tmp_path: Path, fault: str) -> None:
    status, record = osu(tmp_path, 2, **{fault: "hpc-2"})
    assert status == FAIL
    assert verdicts(record)["osu_bw sweep"] == "error"


@pytest.mark.parametrize(
    ("size", "bandwidth", "latency", "bytes_"),
    [
        (HB, "23.0", "1.32", "1"),
        ("Standard_HB120rs_v2", "23.0", "1.77", "8"),
        ("Standard_HB176-48rs_v4", "46.0", "2.0", "1"),
        ("Standard_HC44rs", "11.5", "", "8"),
        ("Standard_HX176rs", "46.0", "", "8"),
        ("Standard_HB368rs_v5", "", "2.0", "1"),
    ],
)
def test_floors_by_size(size: str, bandwidth: str, latency: str, bytes_: str) -> None:
    array = parts.node_array("hpc", vm_size(size), max_nodes=4)
    settings = settings_of(plan_with(job("osu"), array))
    found = (settings["FLOOR_WARN"], settings["LATENCY_WARN_US"], settings["LATENCY_BYTES"], settings["FLOOR_FAIL"])
    assert found == (bandwidth, latency, bytes_, "")
