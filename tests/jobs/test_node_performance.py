"""The job `node-performance`: every node is judged, the slow GPU is named, what could not be measured never passes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.bed.fakes import NVIDIA_SMI
from tests.bed.slurm.cluster import FAKES as SLURM_FAKES
from tests.jobs.running import FAKES, JobFolder, job, job_folder, plan_with

PASS, FAIL, ERROR, WARN, NO_BASELINE = 0, 1, 2, 3, 4
NODES = tuple(f"hpc-{number}" for number in range(1, 5))
STREAM = "#!/usr/bin/env bash\nprintf 'Copy: 1000.0\\nScale: 1000.0\\nAdd: 1000.0\\nTriad: %s\\n' {rate}\n"
ALL_TESTS = "inventory,links,load,copies,gemm,hbm,stream,link_errors"


class Nodes:
    """The job on emulated nodes of two GPUs each; a fault of a node is a file in its state."""

    def __init__(self, tmp_path: Path, nodes: tuple[str, ...]) -> None:
        self.states = tmp_path / "states"
        self.folder: JobFolder = job_folder(tmp_path, plan_with(job("node-performance", len(nodes))), nodes)
        tools = tmp_path / "tools"
        shutil.copytree(FAKES / "gpu", tools)
        stream = tools / "stream"
        stream.write_text(
            STREAM.format(rate='"$(cat "${FAKE_STATES}/${SLURMD_NODENAME}/stream" 2>/dev/null || echo 250000.0)"')
        )
        stream.chmod(0o755)
        for node in nodes:
            (self.states / node / "gpu").mkdir(parents=True)
            self.state(node, gpus="0 1", model="a100")
        self.tools = tools
        self.folder.environment |= {
            "PATH": f"{tools}:{self.folder.environment['PATH']}",
            "FAKE_STATES": str(self.states), "FAKE_SMI": str(NVIDIA_SMI), "FAKE_DCGMI": str(SLURM_FAKES / "dcgmi"),
            "FAKE_AT_ONCE": "1", "CF_ROOT": "",
            "SET_GPUS_PER_NODE": "2", "SET_LOAD_S": "1", "SET_SAMPLE_S": "1", "SET_TESTS": ALL_TESTS,
            "SET_STREAM_BINARY": str(stream), "SET_GEMM_TYPES": "fp16",
            "SET_UBERGEMM": str(tools / "ubergemm"), "SET_NVBANDWIDTH": str(tools / "nvbandwidth"),
        }  # fmt: skip

    def state(self, node: str, **files: str) -> None:
        """Files of a node's state; `__` in a name stands for a dot."""
        for name, text in files.items():
            (self.states / node / name.replace("__", ".")).write_text(text)

    def gpu(self, node: str, field: str, value: str) -> None:
        (self.states / node / "gpu" / field).write_text(value)

    def run(self, **environment: str) -> tuple[int, dict[str, Any]]:
        done = self.folder.run(**environment)
        self.said = done.stdout + done.stderr
        return done.returncode, json.loads(self.folder.results("run.json"))


def verdicts(record: Mapping[str, Any], node: str) -> dict[str, str]:
    return {check["check"]: check["verdict"] for check in record["checks"] if check["nodes"] == [node]}


def detail(record: Mapping[str, Any], node: str, name: str) -> str:
    (found,) = (check for check in record["checks"] if check["nodes"] == [node] and check["check"] == name)
    return f"{found['detail']} [{found['source']}]"


def test_each_culprit_is_named_and_no_one_else(tmp_path: Path) -> None:
    """One run with faults of another kind on each node but the first."""
    bed = Nodes(tmp_path, NODES)
    bed.state("hpc-2", ubergemm__1="660000", cublaslt__fp16__0="throws", hbm__1="1400.00")
    bed.state("hpc-3", device_to_device_memcpy_read_ce__0="200.5", grows="1.Replay.4", stream="150000.0")
    bed.gpu("hpc-3", "0.driver_version", "999.1")
    bed.gpu("hpc-4", "0.clocks_event_reasons.active", "0x0000000000000044")
    bed.gpu("hpc-4", "1.temperature.gpu", "94")
    bed.gpu("hpc-4", "1.link.3", "<inactive>")
    status, record = bed.run()
    assert status == FAIL, bed.said
    healthy = verdicts(record, "hpc-1")
    assert set(healthy.values()) == {"pass"}, record["checks"]
    assert {
        "gpus",
        "gemm",
        "thermal",
        "gpu_clock",
        "copy_peer",
        "gemm_fp16",
        "hbm_triad",
        "cpu_stream",
        "nvlink",
    } < set(healthy)
    found = {
        node: {name: word for name, word in verdicts(record, node).items() if word != "pass"} for node in NODES[1:]
    }
    assert found == {
        "hpc-2": {"gemm": "fail", "gemm_fp16": "error", "hbm_triad": "fail", "hbm_copy": "fail"},
        "hpc-3": {
            "copy_peer": "fail",
            "nvlink_errors": "fail",
            "gpus_alike": "warn",
            "nodes_alike": "warn",
            "cpu_stream": "fail",
        },
        "hpc-4": {"thermal": "fail", "gpu_temperature": "warn", "nvlink": "fail"},
    }
    assert "GPU 1, the slowest of 2" in detail(record, "hpc-2", "gemm")
    assert "median of 8 figures of 4 nodes" in detail(record, "hpc-2", "gemm")
    assert "GPU 1 link 4: 7 Replay Errors" in detail(record, "hpc-3", "nvlink_errors")
    assert "GPU 0 (0x0000000000000044)" in detail(record, "hpc-4", "thermal")
    assert "GPU 1: 11 of 12 links" in detail(record, "hpc-4", "nvlink")
    assert bed.folder.results("failed_nodes.txt").split() == ["hpc-2", "hpc-3", "hpc-4"]
    curves = {(curve["name"], *curve["nodes"]) for curve in record["series"]}
    assert curves == {(name, node) for name in ("gpu temperature", "gpu clock") for node in NODES}


def test_what_could_not_be_measured_is_never_a_pass(tmp_path: Path) -> None:
    """Crashes, half results, silent tools, a driver that answers nonsense and a node that dies."""
    bed = Nodes(tmp_path, NODES)
    bed.state(
        "hpc-1",
        ubergemm__says="starting....\nGFlops:nan\n",
        ubergemm__exit="0",
        nvbandwidth__half="",
        dcgmi__exit="235",
    )
    bed.state("hpc-2", ubergemm__says="Segmentation fault\n", ubergemm__exit="139", stream="0.0", hbm__0="fast",
              cublaslt__fp16__1="nan")  # fmt: skip
    bed.state("hpc-3", **{"nvidia-smi__garbage": "Failed to initialize NVML: Driver/library version mismatch\n"})
    status, record = bed.run(SET_TESTS=ALL_TESTS + ",dcgm,nonsense", FAKE_DEAD="hpc-4")
    assert status == FAIL
    first, second, driver, dead = (verdicts(record, node) for node in NODES)
    wanted = ("gemm", "copy_to_gpu", "copy_from_gpu", "copy_peer", "dcgm", "nonsense")
    assert {name: first[name] for name in wanted} == dict.fromkeys(wanted, "error")
    wanted = ("gemm", "thermal", "cpu_stream", "gemm_fp16", "hbm_copy", "hbm_triad")
    assert {name: second[name] for name in wanted} == dict.fromkeys(wanted, "error")
    assert driver["gpus"] == "fail"
    assert {driver[name] for name in ("nvlink", "thermal")} == {"error"} or driver["thermal"] == "fail"
    assert dead["complete"] == "fail"
    assert "pass" not in dead.values()
    assert {"gemm", "copy_peer", "hbm_triad", "cpu_stream"} <= set(dead)


def test_a_node_without_tools_proves_nothing(tmp_path: Path) -> None:
    """What an image lacks is an error with its reason; tests of `auto` that need a container are named as left out."""
    bed = Nodes(tmp_path, ("hpc-1",))
    for tool in ("ubergemm", "dcgmproftester13", "nvbandwidth", "cublaslt_gemm", "gpu_stream", "dcgmi"):
        (bed.tools / tool).unlink()
    none = {"SET_UBERGEMM": "", "SET_NVBANDWIDTH": "", "SET_STREAM_BINARY": "/no/stream"}
    status, record = bed.run(SET_TESTS="load,copies,gemm,hbm,stream,nvme,dcgm", **none)
    assert status == ERROR
    assert set(verdicts(record, "hpc-1").values()) == {"error"}
    assert all("not proven: " in check["detail"] for check in record["checks"])
    bed = Nodes(tmp_path / "hang", ("hpc-1",))
    bed.state("hpc-1", nvbandwidth__hang="")
    status, record = bed.run(SET_TESTS="copies", SET_TOOL_TIMEOUT_S="1", SET_GPUS_PER_NODE="1")
    assert (status, set(verdicts(record, "hpc-1").values())) == (ERROR, {"error"})
    (bed.folder.path / "results").rename(tmp_path / "first")
    status, record = bed.run(SET_TESTS="copies", SET_TIMEOUT_S="1")
    assert (status, verdicts(record, "hpc-1")["complete"]) == (FAIL, "fail")
    bed = Nodes(tmp_path / "auto", ("hpc-1",))
    status, record = bed.run(SET_TESTS="auto")
    assert "not tested: GEMM of fp16; GPU memory" in record["summary"]


def test_one_node_has_no_one_to_be_compared_with(tmp_path: Path) -> None:
    """Without floor there is no baseline; and the other tools of images: dcgmproftester, DCGM's own copies."""
    bed = Nodes(tmp_path, ("hpc-1",))
    (bed.tools / "nvbandwidth").unlink()
    bed.state("hpc-1", proftester__silent="")
    status, record = bed.run(SET_TESTS="load,copies,dcgm,stream", SET_UBERGEMM="", SET_NVBANDWIDTH="")
    found = verdicts(record, "hpc-1")
    assert found == {"gemm": "error", "thermal": "pass", "gpu_temperature": "pass", "gpu_clock": "no_baseline",
                     "copies": "pass", "dcgm": "pass", "cpu_stream": "no_baseline"}  # fmt: skip
    assert status == ERROR
    assert "nvbandwidth" in detail(record, "hpc-1", "copies")


@pytest.mark.parametrize("tool", ["fio", "dd"])
def test_disks_and_memory_for_real(tool: str, tmp_path: Path) -> None:
    """The node's own CPUs and disk: stream.c as it is compiled here, and fio or dd."""
    if tool == "fio" and shutil.which("fio") is None:
        pytest.skip("fio is not installed")
    bed = Nodes(tmp_path, ("hpc-1",))
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    if tool == "dd":
        # A folder of every program but fio.
        for folder in ("/usr/bin", "/bin"):
            for program in Path(folder).iterdir():
                if program.name != "fio" and not (hidden / program.name).exists():
                    (hidden / program.name).symlink_to(program)
        bed.folder.environment["PATH"] = f"{bed.tools}:{FAKES}:{hidden}"
    disk = tmp_path / "nvme"
    disk.mkdir()
    settings = {"SET_STREAM_BINARY": "", "SET_STREAM_MIB": "4", "SET_NVME_MOUNT": str(disk), "SET_NVME_JOBS": "2",
                "SET_NVME_MIB": "4", "SET_TESTS": "stream,nvme", "DISK_DIRECT": "0"}  # fmt: skip
    status, record = bed.run(**settings)
    assert status == NO_BASELINE, (bed.said, record["checks"])
    values = {check["check"]: check["value"] for check in record["checks"]}
    assert set(values) == {"cpu_stream", "nvme_write", "nvme_read"}
    assert all(value > 0 for value in values.values())
    assert all(tool in check["detail"] for check in record["checks"] if check["check"].startswith("nvme"))
    assert list(disk.iterdir()) == []
    # The same disk, gone.
    (tmp_path / "out/jobs/node-performance/results").rename(tmp_path / "first")
    status, record = bed.run(**settings | {"SET_NVME_MOUNT": str(tmp_path / "gone"), "SET_TESTS": "nvme"})
    assert (status, verdicts(record, "hpc-1")) == (ERROR, {"nvme": "error"})


def test_a_burn_that_the_time_limit_would_cut_off_is_refused(tmp_path: Path) -> None:
    bed = Nodes(tmp_path, ("hpc-1",))
    status, record = bed.run(SET_TESTS="load", SET_LOAD_S="3600", SLURM_JOB_END_TIME="1000")
    assert status == ERROR
    assert "submit it with a longer --time" in record["summary"]


@pytest.mark.parametrize(
    ("links", "listed", "active", "verdict"),
    [
        ({}, "12", "12", "pass"),
        ({"0.link.4": "<inactive>", "1.link.4": "<inactive>"}, "12", "11", "pass"),
        ({"0.link.4": "<inactive>", "1.link.4": "<inactive>"}, "12", "12", "fail"),
        ({"0.link.4": "<inactive>", "0.link.5": "<inactive>", "1.link.4": "<inactive>"}, "12", "11", "fail"),
        ({}, "18", "12", "fail"),
        ({f"{gpu}.link.{link}": "<inactive>" for gpu in (0, 1) for link in range(12)}, "12", "12", "fail"),
        ({f"{gpu}.link.{link}": "<inactive>" for gpu in (0, 1) for link in range(12)}, "0", "0", "no_baseline"),
    ],
)
def test_links_are_those_of_the_size(
    links: dict[str, str], listed: str, active: str, verdict: str, tmp_path: Path
) -> None:
    """On some cards nothing is wired to a part of the links: Azure/azurehpc-health-checks#162."""
    bed = Nodes(tmp_path, NODES[:1])
    for field, value in links.items():
        bed.gpu("hpc-1", field, value)
    _, record = bed.run(SET_TESTS="links", SET_NVLINKS_LISTED=listed, SET_NVLINKS_ACTIVE=active)
    assert verdicts(record, "hpc-1")["nvlink"] == verdict, record["checks"]
