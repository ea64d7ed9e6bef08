"""The tournament of pairs, with a fake of srun whose groups are as slow as their slowest node or link."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from generator.catalog import vm_size
from tests.bed import parts
from tests.jobs.running import FAKES, LIBRARY, JobFolder, job, job_folder, plan_with, settings_of

PASS, FAIL, ERROR, WARN, NO_BASELINE = 0, 1, 2, 3, 4


def tournament(tmp_path: Path, nodes: int, /, **environment: str) -> tuple[int, dict[str, Any]]:
    names = tuple(f"hpc-{number}" for number in range(1, nodes + 1))
    folder = job_folder(tmp_path, plan_with(job("fabric-pairs", nodes, MPI_MODULE="")), names)
    return run(folder, **environment)


def run(folder: JobFolder, **environment: str) -> tuple[int, dict[str, Any]]:
    folder.environment["PATH"] = f"{FAKES}/fabric:{folder.environment['PATH']}"
    done = folder.run(**environment)
    record: dict[str, Any] = json.loads(folder.results("run.json"))
    record["log"] = done.stdout + done.stderr
    return done.returncode, record


def verdicts(record: dict[str, Any], *unlike: str) -> dict[str, str]:
    """Verdict by check, without those that have one of these."""
    return {check["check"]: check["verdict"] for check in record["checks"] if check["verdict"] not in unlike}


def test_the_slow_node_and_the_slow_link_are_named(tmp_path: Path) -> None:
    status, record = tournament(
        tmp_path, 8, FAKE_SLOW_NODES="hpc-3", FAKE_SLOW_LINKS="hpc-5:hpc-8", FAKE_SEED="1", FAKE_NOISE="1"
    )
    assert status == FAIL, record["log"]
    assert verdicts(record, "pass") == {
        "pairs node hpc-3": "fail", "pairs pair hpc-5,hpc-8": "fail", "pairs whole": "fail",
    }  # fmt: skip
    (node,) = (check for check in record["checks"] if check["check"] == "pairs node hpc-3")
    assert node["nodes"] == ["hpc-3"]
    assert node["source"] == "median of 8 nodes"
    assert 155 < node["value"] < 165
    assert record["summary"].endswith("slow: hpc-3 hpc-5,hpc-8")


def test_a_healthy_cluster_passes_and_its_rounds_are_kept(tmp_path: Path) -> None:
    status, record = tournament(tmp_path, 6, FAKE_NOISE="2", FAKE_BUSBW="195", FAKE_SEED="2")
    assert status == PASS, record["log"]
    assert verdicts(record, "pass") == {}
    pairs = [series for series in record["series"] if series["name"] == "pair bandwidth"]
    assert len({frozenset(series["nodes"]) for series in pairs}) == 15
    assert {series["unit"] for series in pairs} == {"GB/s"}
    played = (tmp_path / "out/jobs/fabric-pairs/results/4711/played.tsv").read_text().splitlines()
    assert [line.split("\t")[0] for line in played] == [str(number) for number in range(1, 6) for _ in range(3)]


def test_a_published_floor_fails_all_that_is_below_it(tmp_path: Path) -> None:
    """185 GB/s between two nodes of this size."""
    status, record = tournament(tmp_path, 2, FAKE_BUSBW="170")
    assert status == FAIL
    assert verdicts(record, "pass") == {"pairs pair hpc-1,hpc-2": "fail", "pairs whole": "fail"}


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ({"FAKE_DEAD_NODES": "hpc-2"}, "Requested node configuration is not available"),
        ({"FAKE_HANGING_NODES": "hpc-2", "SET_GROUP_TIMEOUT_S": "1"}, "ran past 1 s"),
        ({"FAKE_WRONG_NODES": "hpc-2"}, "ended with exit status 1"),
        ({"FAKE_CUT_NODES": "hpc-2"}, "0 complete rows"),
        ({"FAKE_FOOTLESS_NODES": "hpc-2"}, "no footer"),
        ({"FAKE_ALONE_NODES": "hpc-2"}, "separate tests"),
        ({"FAKE_GPUS": "7"}, "14 ranks instead of 16"),
    ],
)
def test_a_pair_without_a_whole_result_fails(tmp_path: Path, fault: dict[str, str], reason: str) -> None:
    status, record = tournament(tmp_path, 2, **fault)
    assert status == FAIL
    assert verdicts(record, "pass")["pairs pair hpc-1,hpc-2"] == "fail"
    assert reason in record["log"]


def ports(tmp_path: Path, nodes: int, /, **environment: str) -> tuple[int, dict[str, Any]]:
    """Exit status and record of a tournament with ib_write_bw, on nodes with two ports of 200 Gb/s each."""
    names = tuple(f"hpc-{number}" for number in range(1, nodes + 1))
    folder = job_folder(tmp_path, plan_with(job("fabric-pairs", nodes, MPI_MODULE="", METHOD="perftest")), names)
    for number in range(2):
        port = tmp_path / f"sys/class/infiniband/mlx5_ib{number}/ports/1"
        port.mkdir(parents=True)
        (port / "link_layer").write_text("InfiniBand\n")
    (tmp_path / "sys/module/nvidia_peermem").mkdir(parents=True)
    folder.environment |= {"CF_SYS": str(tmp_path / "sys"), "SET_LINK_PORTS": "2", "SET_CONFIRMATIONS": "1"}
    return run(folder, **environment)


def test_one_slow_port_of_a_node_is_named(tmp_path: Path) -> None:
    """15 % of one port of two are 7.5 % of both, and less of eight."""
    slow = {"FAKE_LINKS": "hpc-3/mlx5_ib1=163", "FAKE_LINK_GBPS": "192", "FAKE_NOISE": "1", "FAKE_SEED": "3"}
    status, record = ports(tmp_path, 4, **slow)
    assert status == FAIL, record["log"]
    assert set(verdicts(record, "pass", "warn")) == {"pairs node hpc-3", "pairs whole"}
    (node,) = (check for check in record["checks"] if check["check"] == "pairs node hpc-3")
    assert node["detail"].startswith("mlx5_ib1: "), node
    assert (node["unit"], node["nodes"]) == ("GB/s", ["hpc-3"])
    assert 20 < node["value"] < 21
    curves = {(series["name"], frozenset(series["nodes"])) for series in record["series"]}
    assert len(curves) == 3 * 6, "both ports together and each by itself, of six pairs"
    calls = (tmp_path / "srun.log").read_text(encoding="utf-8")
    sent = [line.split() for line in calls.splitlines() if line.startswith("ib_write_bw") and line.endswith(" hpc-1")]
    assert {words[words.index("-d") + 1] for words in sent} == {"mlx5_ib0", "mlx5_ib1"}
    assert any(line.startswith("ib_write_bw") and line.endswith(" hpc-4") for line in calls.splitlines())


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (
            {"FAKE_LINKS": "hpc-2/mlx5_ib1=dead"},
            "port mlx5_ib1 from hpc-2 failed ib_write_bw ended with 1:  Failed",
        ),
        ({"FAKE_LINKS": "hpc-2/mlx5_ib1=cut"}, "port mlx5_ib1 from hpc-2 failed ib_write_bw ended with 0"),
        ({"SET_LINK_PORTS": "8"}, "2 of 8 ports have figures both ways"),
    ],
)
def test_a_port_without_a_figure_fails_its_pair(tmp_path: Path, fault: dict[str, str], reason: str) -> None:
    status, record = ports(tmp_path, 2, **fault)
    assert (status, verdicts(record, "pass")["pairs pair hpc-1,hpc-2"]) == (FAIL, "fail"), record["log"]
    assert reason in record["log"]


def test_perftest_is_refused_where_there_is_none_and_by_jobs_that_do_not_measure_pairs(tmp_path: Path) -> None:
    folder = job_folder(tmp_path, plan_with(job("fabric-bisect", 2, MPI_MODULE="", METHOD="perftest")))
    status, record = run(folder)
    assert (status, "measures pairs of nodes (job fabric-pairs)" in record["summary"]) == (ERROR, True)


ONCE = {"FAKE_ONCE": "1", "FAKE_BUSBW": "195", "FAKE_SEED": "1"}


@pytest.mark.parametrize(
    "fault", [{"FAKE_DEAD_NODES": "hpc-2"}, {"FAKE_HANGING_NODES": "hpc-2", "SET_GROUP_TIMEOUT_S": "2"}]
)
def test_a_launch_that_fails_once_is_no_fault_of_a_node(tmp_path: Path, fault: dict[str, str]) -> None:
    status, record = tournament(tmp_path, 2, **fault, **ONCE)
    assert (status, verdicts(record, "pass")) == (PASS, {}), record["log"]
    assert "launched once more: hpc-1,hpc-2" in record["log"]


def test_values_that_were_wrong_once_fail_however_often_they_are_right_afterwards(tmp_path: Path) -> None:
    status, record = tournament(tmp_path, 2, FAKE_WRONG_NODES="hpc-2", **ONCE)
    assert (status, verdicts(record, "pass")) == (FAIL, {"wrong_values": "fail"})
    assert [each["nodes"] for each in record["checks"] if each["check"] == "wrong_values"] == [["hpc-1", "hpc-2"]]
    assert "launched once more" not in record["log"]


def test_what_has_measured_is_not_launched_again(tmp_path: Path) -> None:
    _, record = tournament(tmp_path, 2, FAKE_CUT_NODES="hpc-2", **ONCE)
    assert "0 complete rows" in record["log"]
    assert "launched once more" not in record["log"]


def test_no_second_launch_that_may_end_too_late(tmp_path: Path) -> None:
    late = {"SET_GROUP_TIMEOUT_S": "2", "SET_BUDGET_S": "3"}
    status, record = tournament(tmp_path, 2, FAKE_HANGING_NODES="hpc-2", **late, **ONCE)
    assert status == FAIL
    assert "launched once more" not in record["log"]


def test_a_node_that_answers_nobody_is_named(tmp_path: Path) -> None:
    status, record = tournament(tmp_path, 6, FAKE_DEAD_NODES="hpc-2", FAKE_BUSBW="195")
    assert status == FAIL
    assert verdicts(record, "pass") == {"pairs node hpc-2": "fail", "pairs whole": "fail"}


def test_no_round_begins_that_may_end_too_late(tmp_path: Path) -> None:
    status, record = tournament(tmp_path, 4, SET_BUDGET_S="10", SET_GROUP_TIMEOUT_S="60")
    assert status == ERROR
    assert verdicts(record)["pairs partners"] == "error"
    assert "raise BUDGET_S" in next(each["detail"] for each in record["checks"] if each["check"] == "pairs partners")


def test_two_nodes_without_a_floor_have_no_baseline(tmp_path: Path) -> None:
    status, _ = tournament(tmp_path, 2, SET_FLOOR_FAIL="", SET_FLOOR_WARN="")
    assert status == NO_BASELINE


@pytest.mark.parametrize("setting", ["METHOD=ping", "MESSAGE_SIZE=big", "TASKS_PER_NODE=3"])
def test_settings_that_make_no_sense_stop_it(tmp_path: Path, setting: str) -> None:
    name, _, value = setting.partition("=")
    folder = job_folder(tmp_path, plan_with(job("fabric-pairs", 2, MPI_MODULE="", **{name: value})))
    done = folder.run()
    assert done.returncode == ERROR
    assert name in done.stderr or "3 tasks" in done.stderr


def test_nodes_without_gpus_send_with_mpi(tmp_path: Path) -> None:
    array = parts.node_array("hpc", vm_size("Standard_HB120rs_v3"), max_nodes=6)
    plan = plan_with(job("fabric-pairs", 6, MPI_MODULE=""), array)
    assert settings_of(plan)["FLOOR_WARN"] == "23.0"
    folder = job_folder(tmp_path, plan, tuple(f"hpc-{number}" for number in range(1, 7)))
    status, record = run(folder, FAKE_SLOW_NODES="hpc-4", FAKE_BUSBW="24.2", FAKE_NOISE="1", FAKE_SEED="3")
    assert status == FAIL, record["log"]
    assert verdicts(record, "pass", "warn") == {"pairs node hpc-4": "fail", "pairs whole": "fail"}
    assert " osu_bw -m 4194304:4194304 " in folder.log


TOPOLOGY = {
    "tree": "SwitchName=a Level=0 LinkSpeed=1 Nodes=hpc-1,hpc-2,hpc-3\nSwitchName=b Level=0 LinkSpeed=1 "
    "Nodes=hpc-4,hpc-5,hpc-6\nSwitchName=top Level=1 LinkSpeed=1 Nodes=hpc-[1-6] Switches=a,b\n",
    "block": "BlockName=a BlockIndex=0 Nodes=hpc-1,hpc-2,hpc-3 BlockSize=3\n"
    "BlockName=b BlockIndex=1 Nodes=hpc-4,hpc-5,hpc-6 BlockSize=3\n",
}
"""Forms: https://github.com/SchedMD/slurm/blob/slurm-24-11-5-1/src/plugins/topology/tree/switch_record.c and
src/plugins/topology/block/block_record.c."""


def test_what_is_slow_between_switches_is_no_fault_of_a_node(tmp_path: Path) -> None:
    far = " ".join(f"hpc-{a}:hpc-{b}" for a in (1, 2, 3) for b in (4, 5, 6))
    (tmp_path / "topology").write_text(TOPOLOGY["tree"])
    status, record = tournament(
        tmp_path, 6, FAKE_SLOW_LINKS=far, FAKE_TOPOLOGY=str(tmp_path / "topology"), FAKE_BUSBW="230"
    )
    assert verdicts(record, "pass") == {"pairs across switches": "warn"}, record["log"]
    assert status == WARN


@pytest.mark.parametrize("form", sorted(TOPOLOGY))
def test_groups_of_nodes_are_those_of_slurm(tmp_path: Path, form: str) -> None:
    (tmp_path / "topology").write_text(TOPOLOGY[form])
    script = f". {LIBRARY}/fabric.sh; requested_nodes() {{ printf 'hpc-%s\\n' 2 5 9; }}; node_groups groups; cat groups"
    environment = {"PATH": f"{FAKES}/fabric:{os.environ['PATH']}", "FAKE_TOPOLOGY": str(tmp_path / "topology")}
    environment["JOBS_LIB"] = str(LIBRARY)
    said = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert said.stdout == "hpc-2\ta\nhpc-5\tb\n"


CLOCK = """
# After every round of pairs it is 50 s later, whatever the real time says; from the second tournament on hpc-2 is slow.
wait() {
    ticks=$((${ticks:-0} + 1))
    if ((ticks > 8)); then export FAKE_SLOW_NODES=hpc-2; fi
    builtin wait "$@"
    SECONDS=$((ticks * 50))
}
"""


def test_for_a_stated_time_what_begins_late_is_named(tmp_path: Path) -> None:
    """Nine rounds each; the second of two passes begins within the ten minutes. Half of the figures are good."""
    (tmp_path / "clock.sh").write_text(CLOCK)
    environment = {"BASH_ENV": str(tmp_path / "clock.sh"), "SET_MINUTES": "10", "SET_CONFIRMATIONS": "1"}
    status, record = tournament(tmp_path, 4, FAKE_BUSBW="195", FAKE_SEED="1", **environment)
    assert status == FAIL, record["log"]
    assert verdicts(record, "pass") == {"pairs node hpc-2": "fail", "pairs whole": "fail"}
    (slow,) = (check for check in record["checks"] if check["check"] == "pairs node hpc-2")
    assert "; in pass 2 of 2" in slow["detail"]
    assert record["settings"]["MINUTES"] == "10"
    curves = [each["points"] for each in record["series"] if each["name"] == "pair bandwidth"]
    assert sorted({x for points in curves for x, _ in points})[:18] == list(range(1, 19))


@pytest.mark.parametrize("setting", [{"SET_MINUTES": "1.5"}, {"SET_MINUTES": "60", "SLURM_JOB_END_TIME": "1"}])
def test_a_stated_time_that_cannot_be_kept_stops_it(tmp_path: Path, setting: dict[str, str]) -> None:
    status, record = tournament(tmp_path, 2, **setting)
    assert (status, record["verdict"]) == (ERROR, "error")
    assert "MINUTES is" in record["summary"]
