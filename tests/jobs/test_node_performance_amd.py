"""The job `node-performance` on AMD GPUs: their tools, the driver's files, and what was not measured never passes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from generator import catalog
from tests.bed import parts
from tests.jobs.running import FAKES, JobFolder, job, job_folder, plan_with
from tests.jobs.test_node_performance import NODES, verdicts

MI300X = catalog.vm_size("Standard_ND96isr_MI300X_v5")
FAIL, ERROR = 1, 2
TOOLS = ("rocm-smi", "rvs", "rocm-bandwidth-test", "hip-stream")


class AmdNodes:
    """The job on four emulated nodes with two GPUs each, which share one folder of the driver's files."""

    def __init__(self, tmp_path: Path) -> None:
        self.states, self.root = tmp_path / "states", tmp_path / "root"
        plan = plan_with(job("node-performance", len(NODES)), parts.node_array("hpc", MI300X, max_nodes=16))
        self.folder: JobFolder = job_folder(tmp_path, plan, NODES)
        tools = tmp_path / "tools"
        shutil.copytree(FAKES / "gpu-amd", tools)
        for node in NODES:
            (self.states / node).mkdir(parents=True)
        for place in range(2):
            self.device(place, temp2_label="junction", temp2_input="55000", temp2_crit="100000",
                        power1_input="600000000", freq1_input="2100000000")  # fmt: skip
        self.folder.environment |= {
            "PATH": f"{tools}:{self.folder.environment['PATH']}", "FAKE_STATES": str(self.states),
            "FAKE_AT_ONCE": "1", "CF_ROOT": str(self.root), "SET_GPUS_PER_NODE": "2", "SET_LOAD_S": "1",
            "SET_SAMPLE_S": "1", "SET_TESTS": "inventory,load,copies,gemm,hbm",
        }  # fmt: skip

    def device(self, place: int, **files: str) -> None:
        """A GPU on the bus, as the driver shows it. Source: Linux Documentation/gpu/amdgpu/thermal.rst"""
        device = self.root / f"sys/bus/pci/devices/000{place + 2}:00:00.0"
        (device / "hwmon/hwmon1").mkdir(parents=True, exist_ok=True)
        (device / "vendor").write_text("0x1002\n")
        (device / "class").write_text("0x120000\n")
        for name, text in files.items():
            (device / "hwmon/hwmon1" / name).write_text(f"{text}\n")

    def state(self, node: str, **files: str) -> None:
        """Files of a node's state; `__` in a name stands for a dot."""
        for name, text in files.items():
            (self.states / node / name.replace("__", ".")).write_text(text)

    def run(self, number: int = 4711, /, **environment: str) -> tuple[int, dict[str, Any]]:
        done = self.folder.run(SLURM_JOB_ID=str(number), **environment)
        self.said = done.stdout + done.stderr
        path = self.folder.path / "results" / str(number) / "run.json"
        return done.returncode, json.loads(path.read_text(encoding="utf-8"))


def test_each_culprit_is_named_and_no_one_else(tmp_path: Path) -> None:
    bed = AmdNodes(tmp_path)
    bed.state("hpc-2", rvs__bf16_r__1="500000", babel__0="3000000.0")
    bed.state("hpc-3", rbt__peer="30.100")
    bed.state("hpc-4", smi__gpus="0", smi__vbios__0="113-OTHER")
    status, record = bed.run()
    assert status == FAIL, bed.said
    healthy = verdicts(record, "hpc-1")
    assert set(healthy.values()) == {"pass"}, record["checks"]
    assert set(healthy) == {
        "gpus", "gpus_alike", "gemm", "gemm_fp16", "gemm_bf16", "gemm_fp8", "copy_to_gpu", "copy_from_gpu", "copy_peer",
        "hbm_copy", "hbm_triad", "thermal", "gpu_temperature", "gpu_clock"}  # fmt: skip
    found = {
        node: {name: word for name, word in verdicts(record, node).items() if word != "pass"} for node in NODES[1:]
    }
    assert found == {
        "hpc-2": {"gemm_bf16": "fail", "hbm_copy": "fail", "hbm_triad": "fail"},
        "hpc-3": {"copy_peer": "fail"},
        "hpc-4": {"gpus": "fail", "nodes_alike": "warn"},
    }
    values = {check["check"]: check["value"] for check in record["checks"] if check["nodes"] == ["hpc-1"]}
    assert (values["gemm_fp8"], values["hbm_triad"], values["gpu_clock"]) == (1220.0, 4012.3, 2100)
    assert (values["copy_peer"], values["copy_to_gpu"], values["gpu_temperature"]) == (48.3, 55.241, 55)
    fp16 = next(check for check in record["checks"] if check["check"] == "gemm_fp16")
    assert fp16["verdict"] == "pass"


def test_what_could_not_be_measured_is_never_a_pass(tmp_path: Path) -> None:
    """Half results, wrong values, other tables, a driver that is gone, a GPU that is too hot, and missing tools."""
    bed = AmdNodes(tmp_path)
    bed.state("hpc-1", rvs__half="")
    bed.state("hpc-2", rvs__exit="255", babel__wrong="")
    bed.state("hpc-3", rbt__successor="", smi__fails="")
    bed.device(1, temp2_input="101000")
    status, record = bed.run()
    assert status in {FAIL, ERROR}
    assert {name for name, word in verdicts(record, "hpc-1").items() if word == "error"} == {
        "gemm", "gemm_fp16", "gemm_bf16", "gemm_fp8", "thermal", "gpu_clock"}  # fmt: skip
    assert {verdicts(record, "hpc-2")[name] for name in ("gemm", "gemm_fp8", "hbm_copy", "hbm_triad")} == {"error"}
    third = verdicts(record, "hpc-3")
    assert (third["copies"], third["inventory"], third["copy_peer"]) == ("error", "error", "error")
    hot = verdicts(record, "hpc-4")
    assert (hot["thermal"], hot["gpu_temperature"]) in {("fail", "warn"), ("warn", "warn")}
    for tool in TOOLS:
        (tmp_path / "tools" / tool).unlink()
    for file in bed.root.rglob("temp2_*"):
        file.unlink()
    status, record = bed.run(4712)
    assert {check["verdict"] for check in record["checks"]} == {"error"}
    status, record = bed.run(4713, SET_TESTS="auto", SET_STREAM_BINARY="/no/stream")
    assert "not tested: load, because rvs is not on this node; GEMM of fp16, bf16, fp8; GPU memory" in record["summary"]
    assert {check["verdict"] for check in record["checks"]} == {"error"}
