"""Every port by loopback, with fakes of perftest, nccl-tests and srun."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from generator.catalog import vm_size
from tests.bed import parts
from tests.jobs.running import job, job_folder, plan_with
from tests.jobs.test_fabric_pairs import ERROR, FAIL, PASS, WARN, run, verdicts

FAST = {"FAKE_BUSBW": "21", "SET_GROUP_TIMEOUT_S": "20"}


def links(
    tmp_path: Path, nodes: int = 1, ports: int = 8, /, size: str | None = None, **environment: str
) -> tuple[int, dict[str, Any]]:
    """Exit status and record of the job on nodes with so many ports each; A100 unless a size is given."""
    arrays = [parts.node_array("hpc", vm_size(size), max_nodes=8)] if size else []
    names = tuple(f"hpc-{number}" for number in range(1, nodes + 1))
    folder = job_folder(tmp_path, plan_with(job("fabric-links", nodes, MPI_MODULE=""), *arrays), names)
    sys = tmp_path / "sys"
    for number in range(ports):
        port = sys / f"class/infiniband/mlx5_ib{number}/ports/1"
        port.mkdir(parents=True)
        (port / "link_layer").write_text("InfiniBand\n")
    (sys / "module/nvidia_peermem").mkdir(parents=True)
    folder.environment["CF_SYS"] = str(sys)
    return run(folder, **(FAST | environment))


def test_every_port_is_judged_by_the_published_floor(tmp_path: Path) -> None:
    status, record = links(tmp_path, 2, FAKE_LINKS="hpc-2/mlx5_ib3=120.1")
    assert status == FAIL, record["log"]
    assert verdicts(record, "pass") == {"link hpc-2 mlx5_ib3": "fail"}
    found = {check["check"]: check for check in record["checks"]}
    assert len([name for name in found if name.startswith("link ")]) == 16
    assert found["links hpc-1"]["value"] == 8
    slow = found["link hpc-2 mlx5_ib3"]
    assert (slow["value"], slow["nodes"], slow["unit"]) == (120.1, ["hpc-2"], "Gb/s")
    assert slow["source"].startswith("published: Azure/azurehpc-health-checks")
    assert found["loopback hpc-1"]["verdict"] == "pass"


def test_healthy_ports_pass(tmp_path: Path) -> None:
    assert links(tmp_path)[0] == PASS


def test_a_port_above_the_floor_and_below_all_others_is_a_warning(tmp_path: Path) -> None:
    status, record = links(tmp_path, FAKE_LINK_GBPS="196", FAKE_LINKS="hpc-1/mlx5_ib3=181")
    assert (status, verdicts(record, "pass")) == (WARN, {"link hpc-1 mlx5_ib3": "warn"})


@pytest.mark.parametrize(
    ("fault", "verdict"),
    [
        ({"FAKE_LINKS": "hpc-1/mlx5_ib3=dead"}, {"link hpc-1 mlx5_ib3": "fail"}),
        ({"FAKE_LINKS": "hpc-1/mlx5_ib3=cut"}, {"link hpc-1 mlx5_ib3": "fail"}),
        ({"FAKE_LINKS": "hpc-1/mlx5_ib3=hang", "SET_LINK_TIMEOUT_S": "2"}, {"link hpc-1 mlx5_ib3": "fail"}),
        ({"FAKE_DEAD": "hpc-1", "SET_LOOPBACK": "none"}, {"links hpc-1": "error"}),
        ({"FAKE_BUSBW": "17", "SET_LOOPBACK_ATTEMPTS": "2"}, {"loopback hpc-1": "fail"}),
        ({"FAKE_DEAD_NODES": "hpc-1", "SET_LOOPBACK_ATTEMPTS": "1"}, {"loopback hpc-1": "fail"}),
    ],
)
def test_what_gives_no_whole_result_never_passes(
    tmp_path: Path, fault: dict[str, str], verdict: dict[str, str]
) -> None:
    status, record = links(tmp_path, **fault)
    assert verdicts(record, "pass") == verdict, record["log"]
    assert status == (ERROR if "error" in verdict.values() else FAIL)


def test_a_missing_port_fails(tmp_path: Path) -> None:
    status, record = links(tmp_path, 1, 7)
    assert (status, verdicts(record, "pass")) == (FAIL, {"links hpc-1": "fail"})


def test_a_floor_of_gpu_memory_does_not_judge_host_memory(tmp_path: Path) -> None:
    """Without CUDA in perftest the median of the ports decides."""
    status, record = links(tmp_path, FAKE_NO_CUDA="1", FAKE_LINK_GBPS="150", FAKE_LINKS="hpc-1/mlx5_ib3=120")
    assert (status, verdicts(record, "pass")) == (FAIL, {"link hpc-1 mlx5_ib3": "fail"})
    (slow,) = (check for check in record["checks"] if check["check"] == "link hpc-1 mlx5_ib3")
    assert slow["source"] == "median of 8 ports"
    assert "host memory" in slow["detail"]


def test_nodes_without_gpus_have_their_own_floor(tmp_path: Path) -> None:
    status, record = links(tmp_path, 1, 1, size="Standard_HB120rs_v3", FAKE_LINK_GBPS="189")
    assert (status, verdicts(record, "pass")) == (FAIL, {"link hpc-1 mlx5_ib0": "fail"})
    assert not [check for check in record["checks"] if check["check"].startswith("loopback")]


CLOCK = """
# After every pass over all ports it is 250 s later, whatever the real time says, and something else is wrong.
timeout() {
    if [[ "$*" != *./links.sh* ]]; then command timeout "$@"; return; fi
    ticks=$((${ticks:-0} + 1))
    case "${ticks}" in
        2) export FAKE_LINKS="hpc-1/mlx5_ib3=dead hpc-1/mlx5_ib5=120" ;;
        3) export FAKE_LINKS="hpc-1/mlx5_ib5=121" ;;
    esac
    SECONDS=$((ticks * 250))
    command timeout "$@"
}
"""


def test_for_a_stated_time_once_is_a_warning_and_twice_a_failure(tmp_path: Path) -> None:
    """Three passes begin within ten minutes."""
    (tmp_path / "clock.sh").write_text(CLOCK)
    environment = {"BASH_ENV": str(tmp_path / "clock.sh"), "SET_MINUTES": "10", "SET_LOOPBACK": "none"}
    status, record = links(tmp_path, **environment)
    assert (status, verdicts(record, "pass")) == (FAIL, {"link hpc-1 mlx5_ib3": "warn", "link hpc-1 mlx5_ib5": "fail"})
    found = {check["check"]: check for check in record["checks"]}
    assert found["link hpc-1 mlx5_ib5"]["value"] == 121
    assert "the lowest of 3 passes is 120.00" in found["link hpc-1 mlx5_ib5"]["detail"]
    assert found["link hpc-1 mlx5_ib3"]["value"] == 190.5
    assert "Failed to modify QP to RTR" in found["link hpc-1 mlx5_ib3"]["detail"]
    assert found["links hpc-1"]["verdict"] == "pass"
