"""The whole standard level of `prove.sh`, as it is rendered, on two nodes of real Slurm.

Real are Slurm, MPI and PMIx, fio on a file system that is mounted where the plan says, STREAM as the node compiles it,
and PyTorch. Programs of GPUs are stand-ins, and so are the devices of a node. There is no pyxis.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from generator.definition.model.definition import Job
from generator.recipes.gates import gates
from generator.render import jobs
from generator.render import prove as render_prove
from tests.bed import parts
from tests.bed.cloud import Cloud
from tests.bed.fakes import NVIDIA_SMI
from tests.bed.plans import slurm_of
from tests.bed.slurm.cluster import FAKES as SLURM_FAKES
from tests.jobs.running import FAKES, a100_devices, write_aznhc
from tests.mpi.conftest import MOUNT, PATH
from tests.mpi.test_nccl_jobs import BUSBW, check_sweep
from tests.mpi.test_own import PYTHON, missing_torch
from tests.prove.folder import write

NODES = ("emu-hpc-1", "emu-hpc-2")
FOLDER = "/mnt/shared/standard"
TOOLS = "/opt/gpu"
SETTINGS = {
    "node-health": {"AZNHC_DIR": f"{FOLDER}/aznhc"},
    "node-performance": {
        "LOAD_S": "1", "SAMPLE_S": "1", "GEMM_TYPES": "fp16", "STREAM_MIB": "1", "NVME_MOUNT": "",
        "GEMM_BINARY": f"{TOOLS}/cublaslt_gemm", "HBM_BINARY": f"{TOOLS}/gpu_stream", "UBERGEMM": f"{TOOLS}/ubergemm",
    },
    "nccl-sweep": {"SWEEP_FROM": "512M"},
    "storage": {
        "CLIENT_JOBS": "1", "CLIENT_MIB": "2", "METADATA_FILES": "20", "DISK_DIRECT": "0", "FLEET_FAIL_PERCENT": "99",
        "FLEET_WARN_PERCENT": "98",
    },
    "own": {
        "ARGUMENTS": "--steps 40 --batch 8", "PYTHON": PYTHON, "PACKAGES": "", "IMPORTS": "", "PROCESSES_PER_NODE": "1",
        "NVME_MOUNT": "", "WATCH_S": "1",
    },
}  # fmt: skip
"""What this bed has not, and what would take minutes."""
ENVIRONMENT = {
    "PATH": f"{TOOLS}:{PATH}", "FAKE_STATES": f"{FOLDER}/states", "FAKE_SMI": f"{TOOLS}/of-all-beds/nvidia-smi",
    "FAKE_DCGMI": f"{TOOLS}/of-all-beds/dcgmi", "FAKE_STATE": "/mnt/shared/faked", "FAKE_BUSBW": BUSBW,
    "FAKE_LOG": f"{FOLDER}/calls", "SET_SHARED_DIR": "/mnt/shared", "SET_STAGE_PATH": f"{MOUNT}/stage",
    # One process for eight GPUs.
    "SET_TASKS_PER_NODE": "1",
    "PROVE_POLL_S": "0.3", "PROVE_SETTLE_S": "1",
}  # fmt: skip
VERDICTS = {
    "smoke": ("pass", "2 of 2 nodes answered"),
    "health": ("pass", "0 of 2 nodes did not pass"),
    # Two nodes are too few to compare, and nothing here runs for as long as published figures are for.
    "node": ("not proven", "0 of 2 nodes failed"),
    "collective": ("pass", "busbw in GB/s at 8G on 2 nodes: all_reduce 194.90"),
    "container": ("not proven", "start times of 2 nodes; not tested: containers, because Slurm has no pyxis here"),
    "pairs": ("pass", "3 measurements of pairs; slow: nobody"),
    # Floors of the other collectives are derived, and a derived one proves nothing by itself.
    "sweep": ("not proven", "busbw in GB/s at 8G on 2 nodes: all_reduce 194.90, all_gather "),
    # No tier promises a rate of metadata.
    "storage": ("not proven", "1 file system, 2 clients"),
    "training": ("pass", "run own-"),
}


def prepare(cloud: Cloud) -> Path:
    """The rendered jobs folder, with settings of this bed, and what a node with GPUs has."""
    folder = cloud.shared / "standard"
    array = parts.node_array("hpc", parts.A100, max_nodes=len(NODES))
    plan = parts.minimal()
    slurm = structs.replace(slurm_of(plan), node_arrays=(array,))
    plan = structs.replace(plan, mounts=(parts.mount("data", MOUNT),), slurm=slurm)
    recipes = dict.fromkeys(gate.recipe for gate in gates() if gate.level != "burn")
    plan = parts.with_jobs(plan, *(Job(recipe=name, partition="hpc", nodes=len(NODES)) for name in recipes))
    write(folder, jobs.render(plan) | render_prove.render(plan))
    for name, changes in SETTINGS.items():
        lines = "".join(f"{key}={shlex.quote(value)}\n" for key, value in changes.items())
        with (folder / "jobs" / name / "settings.env").open("a", encoding="utf-8") as settings:
            settings.write(lines)
    # What is mounted here, and a rate that no host is below.
    (folder / "jobs/storage/mounts.tsv").write_text(f"#path\n{MOUNT}\tnfs\trw\t0.1\ttier\n", encoding="utf-8")
    tools = cloud.folder / TOOLS.lstrip("/")
    shutil.copytree(FAKES / "gpu", tools)
    # It prints two GPUs; where it is missing, DCGM copies.
    (tools / "nvbandwidth").unlink()
    for name in ("curl", "sudo"):
        shutil.copy(FAKES / name, tools)
    (tools / "of-all-beds").mkdir()
    for program in (NVIDIA_SMI, SLURM_FAKES / "dcgmi"):
        shutil.copy(program, tools / "of-all-beds" / program.name)
    for node in NODES:
        (folder / "states" / node / "gpu").mkdir(parents=True)
        (folder / "states" / node / "model").write_text("a100\n", encoding="utf-8")
    write_aznhc(folder / "aznhc")
    return folder


def record_of(folder: Path, job: str) -> dict[str, Any]:
    (path,) = (folder / "jobs" / job / "results").glob("*/run.json")
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def checks_of(folder: Path, job: str) -> dict[tuple[str, ...], dict[str, Any]]:
    """By name and nodes."""
    return {(each["check"], *each["nodes"]): each for each in record_of(folder, job)["checks"]}


@pytest.mark.guard(7200)
def test_the_standard_level_has_a_verdict_for_each_gate(own_mpi_cluster: Cloud) -> None:
    if why := missing_torch():
        pytest.skip(f"{PYTHON} has no PyTorch ({why}); tests/install-tools.sh installs Debian's python3-torch")
    folder = prepare(own_mpi_cluster)
    variables = ENVIRONMENT | a100_devices(folder / "machine", f"{FOLDER}/machine")
    words = shlex.join(["env", *(f"{name}={value}" for name, value in variables.items())])
    done = own_mpi_cluster.run(f"cd {FOLDER}/jobs && {words} ./prove.sh standard --yes --nodes 2", timeout_s=3000)
    assert done.code == 4, done.output
    table = done.output.rpartition("\ngate ")[2]
    rows = re.findall(r"^(\w+) {2,}(pass|fail|warn|not proven|skipped) +(.*)$", table, re.MULTILINE)
    assert {name: verdict for name, verdict, _ in rows} == {name: word for name, (word, _) in VERDICTS.items()}, table
    for name, _, text in rows:
        assert text.startswith(VERDICTS[name][1]), table
    assert "No node has to be replaced." in table
    assert done.output.endswith("Verdict: not proven\n")
    check_records(folder)


def check_records(folder: Path) -> None:
    """Each gate has measured what it is there for."""
    check_sweep(record_of(folder, "nccl-sweep"))
    found = checks_of(folder, "node-performance")
    for node in NODES:
        for name in ("gpus", "gpus_alike", "nvlink", "nvlink_errors", "thermal", "copies", "dcgm"):
            assert found[name, node]["verdict"] == "pass", found[name, node]
        for name in ("gemm", "gemm_fp16", "hbm_copy", "cpu_stream"):
            assert (name, node) in found
    # These nodes were running already, so Slurm knows no boot for this job.
    assert checks_of(folder, "start-times")[("boot",)]["verdict"] == "no_baseline"
    found = checks_of(folder, "storage")
    for way in ("write", "read"):
        each = found[(f"{way} {MOUNT}",)]
        assert (each["verdict"], "2 clients, fio" in each["detail"]) == ("pass", True), each
    log = (folder / "jobs/own/results").glob("*/train.log")
    assert "2 processes on cpu, from step 0" in next(log).read_text(encoding="utf-8")
