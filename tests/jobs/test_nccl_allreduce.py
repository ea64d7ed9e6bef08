"""The recipe `nccl-allreduce`: what decides about a run, and that nothing passes by accident."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from generator import catalog
from tests.bed import parts
from tests.jobs.allreduce import (
    ERROR,
    FAIL,
    GIB,
    HEADER,
    NO_BASELINE,
    PASS,
    WARN,
    Make,
    Runs,
    footer,
    header,
    nccl_log,
    output,
    row,
)
from tests.jobs.running import FAKES, job, job_folder, plan_with

SIZES = {
    "a100": "Standard_ND96amsr_A100_v4",
    "h100": "Standard_ND96isr_H100_v5",
    "gb300": "Standard_ND128isr_GB300_v6",
    "v100": "Standard_ND40rs_v2",
}


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], Path]:
    made: dict[tuple[str, int], Path] = {}

    def template(size: str, nodes: int) -> Path:
        if (size, nodes) not in made:
            folder = tmp_path_factory.mktemp(f"{size}-{nodes}")
            hardware = parts.A100 if size == "a100" else catalog.vm_size(SIZES[size])
            array = parts.node_array("hpc", hardware, max_nodes=64)
            job_folder(folder, plan_with(job("nccl-allreduce", nodes), array))
            made[size, nodes] = folder / "out"
        return made[size, nodes]

    return template


@pytest.fixture
def runs(tmp_path: Path, templates: Callable[[str, int], Path]) -> Make:
    def make(size: str = "a100", nodes: int = 2) -> Runs:
        shutil.copytree(templates(size, nodes), tmp_path / "out")
        names = tuple(f"hpc-{number + 1}" for number in range(nodes))
        gpus = catalog.vm_size(SIZES[size]).gpu_count
        environment = {"FAKE_GPUS": str(gpus)}
        folder = job_folder(tmp_path, None, names)
        folder.environment |= environment
        return Runs(folder, tmp_path, nodes)

    return make


# ---------------------------------------------------------------- a published floor


def test_a_published_floor_decides(runs: Make) -> None:
    run = runs()
    cases = {
        "189.6": PASS,
        "185": PASS,
        "184.9": FAIL,
        "99.0": FAIL,
        "nan": FAIL,
        "0.00": FAIL,
        "-1": FAIL,
        "1e3": PASS,
    }
    assert {bus: run(output(bus)) for bus in cases} == cases
    assert run.job(output("189.6")) == PASS
    assert (run.results / "verdict").read_text(encoding="utf-8") == "pass\n"
    assert run.job(output("99")) == FAIL
    assert run.job("") == ERROR
    assert run(output("189.6")) == PASS
    assert run.rows["all_reduce"]["expected"] == 188
    key = "algorithm unknown, fabric unknown, 8589934592 bytes, 16 ranks on 2 nodes"
    assert run.detail == f"{key}; published floor 185 GB/s"
    drawn = {curve["name"]: curve["points"] for curve in json.loads((run.results / "run.json").read_text())["series"]}
    assert drawn["floor all_reduce"] == [[8589934592, 185]]
    assert run.rows["all_reduce"]["source"].startswith("published: yosoyjay/cyclecloud-llm")


def test_wrong_values_and_half_written_output_never_pass(runs: Make) -> None:
    run, whole = runs(), output()
    (first, second) = whole.split(HEADER)
    cases = {
        output(wrong="3"): FAIL,
        output(wrong="N/A"): FAIL,
        whole.replace("0 OK", "1 FAILED"): FAIL,
        # ends behind the row: nobody knows what the footer would have said
        whole.split("# Out of")[0]: FAIL,
        whole.split("# Avg")[0] + "# Out of bounds values : 0 ": FAIL,
        # ends within the row
        first + HEADER + row()[:60] + "\n": ERROR,
        first + HEADER: ERROR,
        first: ERROR,
        HEADER + second: ERROR,
        whole.replace("size", "Size"): ERROR,
        # two rows, two tests
        first + HEADER + row() + row() + footer(): ERROR,
        whole + whole: ERROR,
        output(size=4 * GIB): ERROR,
        # the usage, which it prints for an option that it does not know, and then ends well
        "all_reduce_perf: unrecognized option\nUSAGE: all_reduce_perf\n": ERROR,
        "": ERROR,
    }
    found = {printed: run(printed) for printed in cases}
    assert list(found.values()) == list(cases.values()), run.done.stdout


def test_a_run_that_does_not_end_well_is_an_error(runs: Make) -> None:
    run = runs()
    assert [run.job(output(), FAKE_STATUS=status) for status in ("1", "3", "137")] == [ERROR] * 3
    assert run.rows["all_reduce"]["detail"].startswith("all_reduce_perf or its launcher failed")
    assert run.job(output(), FAKE_STATUS="1", SET_COLLECTIVES="all_reduce all_gather sendrecv") == ERROR
    assert run.folder.log.count("all_reduce_perf") == run.folder.log.count("_perf") == 4
    assert [run.rows[name]["detail"] for name in ("all_gather", "sendrecv")] == [
        "not started, because all_reduce did not end well"
    ] * 2
    assert run.job(output(), SET_TIMEOUT_S="0.2", SET_NCCL_TEST_BINARY="sleep", SET_ITERATIONS="60") == ERROR, "no end"
    assert run.job(output(), SET_NCCL_TEST_BINARY="./all_reduce_perf") == ERROR, "no such program"


def test_a_launch_that_fails_before_it_measures_is_made_once_more(runs: Make) -> None:
    run = runs()
    once = run.folder.path / "once/all_reduce_perf"
    once.parent.mkdir()
    once.write_text(
        f'#!/bin/bash\nif mkdir "${{FAKE_LOG}}.once"; then exit 139; fi\nexec {FAKES}/all_reduce_perf "$@"\n'
    )
    once.chmod(0o755)
    assert run.job(output(), SET_NCCL_TEST_BINARY=str(once)) == PASS, run.done.stdout
    assert "ended with 139; launched once more" in run.done.stdout + run.done.stderr


def test_eight_separate_tests_do_not_pass(runs: Make) -> None:
    """Without MPI each task tests one GPU alone, finds it fast and correct, and ends well."""
    run = runs()
    alone = header(1, 1) + HEADER + row("0.00") + footer()
    assert run(alone * 16) == ERROR
    assert "15 of them twice: separate tests" in run.rows["all_reduce ranks"]["detail"]
    assert run(output("400", ranks=8, nodes=1)) == ERROR
    assert run(output("400", ranks=16, nodes=1)) == ERROR
    assert run(output("400", ranks=32, nodes=4)) == ERROR
    assert "all_reduce" not in run.rows


def test_what_cannot_run_does_not_pass(runs: Make) -> None:
    run = runs()
    assert run.job(output(), FAKE_GPUS="7") == FAIL
    assert "all_reduce_perf" not in run.folder.log, "a node that lacks a GPU would hang in NCCL"
    assert run.job(output(), FAKE_DEAD="hpc-2") == FAIL
    for name, value in (
        ("MESSAGE_SIZE", "8GB"),
        ("TASKS_PER_NODE", "3"),
        ("TASKS_PER_NODE", "0"),
        ("MEDIAN_MIN_RUNS", ""),
    ):
        assert run.job(output(), **{f"SET_{name}": value}) == ERROR
    table = run.folder.path / "baselines.tsv"
    text = table.read_text(encoding="utf-8")
    damaged = (
        "",
        text[:-40].rsplit("\t", 1)[0] + "\n",
        text.replace("185", "about 185"),
        text.replace("published", "felt"),
    )
    for content in damaged:
        table.write_text(content, encoding="utf-8")
        assert run(output()) == ERROR, content
        assert "build the deployment folder again" in run.detail
    table.unlink()
    assert run.job(output()) == ERROR
    (run.folder.path / "nccl.env").unlink()
    assert run.job(output()) == ERROR


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_job_that_is_killed_leaves_no_pass(how: signal.Signals, runs: Make) -> None:
    """The verdict says error until the run has come to its end."""
    run = runs()
    started = run.temporary / "started"
    program = run.temporary / "all_reduce_perf"
    program.write_text(
        f'#!/usr/bin/env bash\ncat "${{FAKE_OUTPUT}}"\necho $$ >{started}.partial\n'
        f"mv {started}.partial {started}\nexec sleep 600\n",
        encoding="utf-8",
    )
    program.chmod(0o755)
    variables = run.variables(output(), "", {"SET_NCCL_TEST_BINARY": str(program)})
    environment = run.folder.environment | variables
    with subprocess.Popen(["./run.sh"], cwd=run.folder.path, env=environment, start_new_session=True) as process:
        while not started.exists():
            assert process.poll() is None, "it ended before it was killed"
            time.sleep(0.02)
        # Slurm signals every process of a job; `timeout` has made a group of its own for what it started.
        os.killpg(process.pid, how)
        os.kill(int(started.read_text(encoding="utf-8")), how)
        assert process.wait() != 0
    assert (run.results / "verdict").read_text(encoding="utf-8") == "error\n"
    assert run.record["verdict"] == "error"


# ---------------------------------------------------------------- the algorithm


def test_a_figure_for_collnet_judges_no_other_algorithm(runs: Make) -> None:
    """Eight nodes: 450 GB/s with CollNet. What the log says of channels does not count."""
    run = runs("h100", 8)

    def of(algorithm: str | None, bus: str = "455") -> int:
        return run(output(bus, ranks=64, nodes=8, size=16 * GIB), nccl_log(algorithm, 16 * GIB))

    # On several nodes NVLS is chosen only with CollNet (NVIDIA/nccl, src/graph/tuning.cc).
    assert [of(name) for name in ("COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS")] == [PASS] * 3
    assert [of("NVLS", bus) for bus in ("399", "299")] == [WARN, FAIL]
    assert [of(name) for name in ("RING", "TREE", "NVLS_TREE", None)] == [NO_BASELINE] * 4
    assert "holds for COLLNET_DIRECT or COLLNET_CHAIN or NVLS, this run used unknown" in run.detail
    channels = "hpc-1:1:1 [0] NCCL INFO 24 coll channels, 16 collnet channels, 0 nvls channels\n"
    assert run(output("455", ranks=64, nodes=8, size=16 * GIB), channels) == NO_BASELINE
    assert run(output("455", ranks=64, nodes=8, size=16 * GIB), None) == NO_BASELINE, "no log at all"


def test_a_rack_is_judged_by_how_its_nodes_are_connected(runs: Make) -> None:
    run = runs("gb300", 18)

    def of(bus: str, mnnvl: int | None) -> int:
        return run(output(bus, ranks=72, nodes=18, size=16 * GIB), nccl_log("NVLS", 16 * GIB, mnnvl))

    assert [of(bus, 1) for bus in ("937", "799", "599")] == [PASS, WARN, FAIL]
    assert [of(bus, 0) for bus in ("200", "179", "149")] == [PASS, WARN, FAIL]
    assert of("937", None) == NO_BASELINE
    assert "this run: unknown" in run.detail


# ---------------------------------------------------------------- derived floors and earlier runs


def test_a_derived_floor_warns_and_never_passes(runs: Make) -> None:
    run = runs("h100", 4)

    def of(bus: str, algorithm: str = "RING") -> int:
        return run(
            output(bus, ranks=32, nodes=4, size=16 * GIB), nccl_log(algorithm, 16 * GIB), SET_MEDIAN_MIN_RUNS="99"
        )

    assert [of(bus) for bus in ("367.9", "100", "0", "nan")] == [WARN, WARN, FAIL, FAIL]
    assert of("380") == NO_BASELINE, "above it nothing is proven"
    assert "derived floor 368.0 GB/s = 0.92 x 8 x 400 Gb/s / 8, the line rate of the ports, warns at most" in run.detail
    assert run.rows["all_reduce"]["source"].startswith("derived: 0.92 x 8 x 400 Gb/s / 8")
    assert of("100", "NVLS_TREE") == NO_BASELINE, "it holds for the ring and the tree"
    assert "derived" not in run.detail


def test_the_number_of_nodes_that_ran_decides(runs: Make) -> None:
    """`sbatch -N 3` of a job that was planned for another number."""
    run = runs("h100", 8)
    three = {
        "FAKE_NODES": "hpc-1 hpc-2 hpc-3",
        "FAKE_NODE_COUNT": "3",
        "SLURM_JOB_NUM_NODES": "3",
        "SLURM_JOB_NODELIST": "x",
    }
    found = run(output("380", ranks=24, nodes=3, size=16 * GIB), nccl_log("NVLS", 16 * GIB), **three)
    assert found == NO_BASELINE
    one = {"FAKE_NODES": "hpc-1", "FAKE_NODE_COUNT": "1", "SLURM_JOB_NUM_NODES": "1", "SLURM_JOB_NODELIST": "x"}
    assert run(output("461", ranks=8, nodes=1, size=16 * GIB), **one) == PASS
    assert run(output("459", ranks=8, nodes=1, size=16 * GIB), **one) == FAIL


def test_medians_of_earlier_runs_decide_where_nothing_is_published(runs: Make) -> None:
    run = runs("h100", 4)

    def of(bus: str, first: int = 1, algorithm: str = "NVLS_TREE", **environment: str) -> int:
        nodes = " ".join(f"hpc-{number}" for number in range(first, first + 4))
        printed = output(bus, ranks=32, nodes=4, size=16 * GIB)
        return run(printed, nccl_log(algorithm, 16 * GIB), FAKE_NODES=nodes, **environment)

    assert [of(bus) for bus in ("400", "402", "398")] == [NO_BASELINE] * 3, "three runs make a median"
    assert [of(bus) for bus in ("399", "385", "371")] == [PASS, WARN, FAIL]
    assert "median of earlier runs 399 GB/s" in run.detail
    assert of("399") == PASS, "a run that failed does not lower the median"
    assert of("300", algorithm="RING") == WARN, "another algorithm has no history; the derived floor warns"
    assert of("380", algorithm="RING") == NO_BASELINE

    # Three other sets of nodes are faster: a cluster's own past is no excuse.
    assert [of("430", first) for first in (11, 21, 31)] == [PASS] * 3
    assert of("399") == FAIL
    assert "median of other nodes 430 GB/s" in run.detail


def test_what_is_not_whole_is_no_history(runs: Make) -> None:
    run = runs("h100", 4)

    def of(bus: str, **environment: str) -> int:
        return run(output(bus, ranks=32, nodes=4, size=16 * GIB), nccl_log("NVLS", 16 * GIB), **environment)

    assert of("400") == NO_BASELINE
    earlier = run.folder.path.parent / "runs"
    (whole,) = earlier.glob("*/run.json")
    record = whole.read_text(encoding="utf-8")
    bad = {
        "1": record.removesuffix("}\n"),
        "2": record[: len(record) // 2],
        "3": "",
        "4": record.replace('"value": 400', '"value": "four hundred"'),
        "5": record.replace("no_baseline", "fail"),
        "6": record.replace('"verdict": "no_baseline", "summary"', '"verdict": "error", "summary"'),
        "7": record.replace('"vm_size": "Standard_ND96isr_H100_v5"', '"vm_size": "Standard_ND96isr_H200_v5"'),
        "8": record.replace("algorithm NVLS", "algorithm RING"),
        "9": record.replace("fabric unknown", "fabric infiniband"),
        "10": record.replace(f"{16 * GIB} bytes", f"{8 * GIB} bytes"),
        "11": record.replace('"check": "all_reduce",', '"check": "all_gather",'),
        "12": record.replace("32 ranks on 4 nodes", "32 ranks on 4 nodes of another kind"),
    }
    for name, text in bad.items():
        assert text != record, name
        (earlier / f"bad-{name}").mkdir()
        (earlier / f"bad-{name}/run.json").write_text(text, encoding="utf-8")
    assert of("100") == NO_BASELINE
    assert of("100") == NO_BASELINE
    assert of("100") == PASS, "the three runs before it"
    shared = run.temporary / "shared"
    assert of("400", SET_RUNS_DIR=str(shared)) == NO_BASELINE, "another folder, another history"
    assert [path.name for path in shared.iterdir()] == [f"nccl-allreduce-{run.count}"]
    assert of("400", SET_RUNS_DIR="/proc/none") == NO_BASELINE, "a record that cannot be copied does not end a run"


def test_a_given_figure_replaces_the_published_ones(runs: Make) -> None:
    run = runs()
    assert run(output("100"), SET_BASELINE_FAIL="90") == PASS
    assert run.detail.endswith("; given floor 90 GB/s")
    assert run.rows["all_reduce"]["source"] == "given: the settings of the job"
    assert run(output("100"), SET_BASELINE_FAIL="90", SET_BASELINE_WARN="110") == WARN
    assert run(output("189"), SET_BASELINE_FAIL="190", SET_BASELINE_SOURCE="ours") == FAIL
    assert (
        run(output("189"), nccl_log("TREE"), SET_BASELINE_FAIL="90", SET_BASELINE_ALGORITHM="RING NVLS") == NO_BASELINE
    )
    assert run(output("189"), nccl_log("RING"), SET_BASELINE_FAIL="90", SET_BASELINE_ALGORITHM="RING NVLS") == PASS
    assert run(output("189"), SET_BASELINE_FAIL="90", SET_BASELINE_MESSAGE_SIZE="4G") == NO_BASELINE
    lower = output("100").replace("Avg bus bandwidth    : 100", "Avg bus bandwidth    : 80")
    assert run(lower, SET_BASELINE_FAIL="90", SET_BASELINE_METRIC="avg busbw") == FAIL
    assert run(output("100"), SET_BASELINES="", SET_MEDIAN_MIN_RUNS="99") == NO_BASELINE


# ---------------------------------------------------------------- what runs


def test_a_message_that_nccl_tests_lowers_is_judged_as_what_it_is(runs: Make) -> None:
    run = runs("v100", 2)
    lowered = 5284866728
    printed = output("11.6", size=lowered).replace(
        HEADER, f"# Reducing maxBytes to {lowered + 2} due to memory limitation\n{HEADER}"
    )
    assert run(printed, nccl_log("RING", lowered)) == NO_BASELINE
    assert f"algorithm RING, fabric unknown, {lowered} bytes" in run.detail
    assert run(printed.replace("11.6", "11.4"), nccl_log("RING", lowered)) == WARN
    one = {"FAKE_NODES": "hpc-1", "FAKE_NODE_COUNT": "1", "SLURM_JOB_NUM_NODES": "1", "SLURM_JOB_NODELIST": "x"}
    assert run(output("111", ranks=8, nodes=1), **one) == PASS
    assert run(output("109", ranks=8, nodes=1), **one) == FAIL
    alone = output("109", ranks=8, nodes=1, size=lowered)
    assert run(alone, **one) == ERROR, "a row of another size, and no line that says why"


def test_ranks_are_bound_and_find_each_other_by_pmix(runs: Make) -> None:
    run = runs()
    assert run.job(output()) == PASS
    step = next(line for line in run.folder.log.splitlines() if "all_reduce_perf" in line)
    for option in (
        "--mpi=pmix",
        "--ntasks=16",
        "--ntasks-per-node=8",
        "--cpus-per-task=12",
        "--mem=0",
        "-g 1 ",
        "-c 1 ",
    ):
        assert option in step
    assert "mask_cpu:ffffff000000" in step
    assert "--container" not in step
    assert run.job(output(), SET_TASKS_PER_NODE="1") == PASS
    assert "-g 8 " in run.folder.log.splitlines()[-1]


def test_a_container_runs_its_own_program_with_the_variables_of_the_machine(runs: Make) -> None:
    run = runs()
    container = {"SET_CONTAINER": "docker://nvcr.io#nvidia/pytorch:25.03-py3"}
    assert run.job(output(), **container) == PASS
    step = next(line for line in run.folder.log.splitlines() if "--container-image" in line)
    assert " /usr/local/bin/all_reduce_perf_mpi -b 8G" in step
    assert "nccl-tests" not in step, "the node's program is built for another CUDA, MPI and C library"
    assert f"{run.results}:{run.results}" in step
    assert "/opt/microsoft:/opt/microsoft:ro" in step
    assert "--no-container-remap-root" in step
    (names,) = (word.split("=", 1)[1] for word in step.replace("\\", "").split() if word.startswith("--container-env="))
    assert {"NCCL_DEBUG_FILE", "NCCL_TOPO_FILE", "NCCL_IB_PCI_RELAXED_ORDERING", "UCX_TLS"} <= set(names.split(","))
    assert "LD_LIBRARY_PATH" not in names
    mine = {"SET_CONTAINER_TEST_BINARY": "/mine/all_reduce_perf", "SET_CONTAINER_MOUNTS": "/data:/data"}
    assert run.job(output(), **container, **mine) == PASS
    assert ",/data:/data " in run.folder.log
    assert " /mine/all_reduce_perf -b 8G" in run.folder.log
    assert run.job(output("400", ranks=1, nodes=1) * 16, **container) == ERROR, "an image whose program lacks MPI"


def test_the_log_names_the_release_of_nccl(runs: Make) -> None:
    run = runs()
    assert run.job(output() + "NCCL version 2.21.5+cuda12.4\n", nccl_log("TREE")) == PASS
    assert "NCCL 2.21.5+cuda12.4, algorithm TREE, fabric unknown" in run.done.stdout
    assert run.record["versions"]["nccl"] == "2.21.5+cuda12.4"


def test_scripts_have_no_syntax_errors_of_bash_4(runs: Make) -> None:
    run = runs()
    scripts = [*run.folder.path.glob("*.sh"), *run.folder.library.iterdir()]
    assert len(scripts) > 10
    for script in scripts:
        assert subprocess.run(["bash", "-n", script], check=False).returncode == 0
