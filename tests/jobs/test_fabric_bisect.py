"""The bisection as a job, with a fake of srun; how it decides is tested in test_bisect.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.jobs.running import job, job_folder, plan_with
from tests.jobs.test_fabric_pairs import ERROR, FAIL, PASS, run, verdicts


def bisection(tmp_path: Path, nodes: int = 8, /, **environment: str) -> tuple[int, dict[str, Any]]:
    names = tuple(f"hpc-{number}" for number in range(1, nodes + 1))
    folder = job_folder(tmp_path, plan_with(job("fabric-bisect", nodes, MPI_MODULE="")), names)
    return run(folder, **({"FAKE_BUSBW": "195", "SET_RAILS": "none", "FAKE_SEED": "1"} | environment))


def test_the_slow_node_is_named(tmp_path: Path) -> None:
    status, record = bisection(tmp_path, FAKE_SLOW_NODES="hpc-6", FAKE_NOISE="1")
    assert status == FAIL, record["log"]
    found = verdicts(record, "pass", "warn")
    assert "fabric node hpc-6" in found
    assert not [check for check in record["checks"] if " node " in check["check"] and check["nodes"] != ["hpc-6"]
                and check["verdict"] != "pass"]  # fmt: skip
    assert record["summary"] == "slow: fabric hpc-6"
    sizes = {point[0] for series in record["series"] if series["name"] == "group fabric" for point in series["points"]}
    assert sizes == {8, 4, 2}


def test_the_slow_adapter_of_a_node_is_named(tmp_path: Path) -> None:
    status, record = bisection(tmp_path, 4, SET_RAILS="mlx5_ib0,mlx5_ib1,mlx5_ib2", FAKE_SLOW_RAILS="hpc-3:mlx5_ib2")
    assert status == FAIL, record["log"]
    failed = {name for name, verdict in verdicts(record, "pass", "warn").items() if "whole" not in name}
    assert failed == {"rail mlx5_ib2", "mlx5_ib2 node hpc-3"}
    assert record["summary"] == "slow: mlx5_ib2 hpc-3"


def test_a_healthy_cluster_passes(tmp_path: Path) -> None:
    status, record = bisection(tmp_path, 6, FAKE_NOISE="1")
    assert (status, verdicts(record, "pass")) == (PASS, {}), record["log"]
    assert record["summary"] == "slow: nobody"


def test_a_node_that_answers_nobody_is_named(tmp_path: Path) -> None:
    status, record = bisection(tmp_path, 6, FAKE_DEAD_NODES="hpc-2")
    assert status == FAIL
    assert {name for name in verdicts(record, "pass") if " node " in name} == {"fabric node hpc-2"}


def test_what_does_not_fit_into_the_time_is_an_error(tmp_path: Path) -> None:
    status, record = bisection(tmp_path, 4, SET_BUDGET_S="5")
    assert status == ERROR
    assert verdicts(record) == {"time": "error", "fabric whole": "error"}


def test_fewer_than_four_nodes_are_refused(tmp_path: Path) -> None:
    folder = job_folder(tmp_path, plan_with(job("fabric-bisect", 3, MPI_MODULE="")), ("hpc-1", "hpc-2", "hpc-3"))
    done = folder.run()
    assert done.returncode == ERROR
    assert "fabric-pairs" in done.stderr
