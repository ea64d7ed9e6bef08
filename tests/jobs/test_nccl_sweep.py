"""The recipe `nccl-sweep`, and what all collectives have in common: what a run makes of what the programs print."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from generator import catalog
from tests.bed import parts
from tests.jobs.running import JobFolder, job, job_folder, plan_with

PASS, FAIL, ERROR, WARN, NO_BASELINE = 0, 1, 2, 3, 4
GIB = 1024**3
TABLE = "#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong\n"
FROM, TO = 4 * GIB, 16 * GIB
WALK = """
set -euo pipefail
. ./library.sh
. "${JOBS_LIB}/collective.sh"
load_settings
for folder in "$@"; do
    (
        export SLURM_JOB_ID="${folder##*/}"
        collective="$(cat "${folder}/collective")"
        new_results_folder
        judge_collective "${collective}" "${folder}/output" "${results}/checks.tsv" "${folder}/nccl"
        conclude judged
    ) >"${folder}/log" 2>&1 || true
done
"""
"""One shell goes through all cases."""


@dataclass
class Case:
    collective: str
    status: int
    bus: float | str = 400
    wrong: tuple[str, str] = ("0", "0")
    nodes: int = 3
    algorithm: str = "RING"
    drop: int | None = None
    """A size that the output lacks."""
    bad: int | None = None
    """A size whose values are wrong."""
    bounds: str = "0 OK"
    text: str = ""
    """In the detail of the check that decides."""

    @property
    def ranks(self) -> int:
        return 8 * self.nodes

    def sizes(self) -> Iterator[tuple[int, int]]:
        """Sizes that are asked for, and what the row names: whole blocks of 16 bytes for each rank."""
        divided = self.collective in ("all_gather", "reduce_scatter", "alltoall")
        for asked in (FROM, 2 * FROM, TO):
            yield asked, asked // (16 * self.ranks) * (16 * self.ranks) if divided else asked

    def output(self) -> str:
        header = "".join(
            f"#  Rank {rank:2d} Group  0 Pid {rank} on hpc-{rank // 8 + 1} device {rank % 8} [0x{rank % 8:x}] GPU\n"
            for rank in range(self.ranks)
        )
        rows = ""
        for asked, size in self.sizes():
            wrong = ("7", self.wrong[1]) if asked == self.bad else self.wrong
            if asked != self.drop:
                rows += f" {size} 1 float none -1 1.0 1.0 {self.bus} {wrong[0]} 1.0 1.0 {self.bus} {wrong[1]}\n"
        return f"{header}{TABLE}{rows}# Out of bounds values : {self.bounds}\n# Avg bus bandwidth    : 1.0\n"

    def log(self) -> str:
        names = {"all_reduce": "AllReduce", "all_gather": "AllGather", "reduce_scatter": "ReduceScatter"}
        if self.collective not in names:
            return "NCCL version 2.27.3+cuda12.9\n"
        share = [size if self.collective == "all_reduce" else size // self.ranks for _, size in self.sizes()]
        return "".join(
            f"hpc-1:1:1 [0] NCCL INFO {names[self.collective]}: {size} Bytes -> Algo {self.algorithm} proto SIMPLE "
            "channel{Lo..Hi}={0..15}\n"
            for size in share
        )


NA = ("0", "N/A")
CASES = (
    # Derived floors: 368 GB/s of the ports for a ring, 46 GB/s of one port for what NCCL sends from GPU to GPU.
    Case("all_reduce", WARN, 367, text="derived floor 368.0 GB/s"),
    Case("all_reduce", NO_BASELINE, 369),
    Case("all_gather", WARN, 367, text="17179868928 bytes, 24 ranks on 3 nodes; derived floor 368.0 GB/s"),
    Case("reduce_scatter", NO_BASELINE, 369, text="algorithm RING"),
    Case("all_gather", NO_BASELINE, 100, algorithm="NVLS", text="no published figure"),
    Case("alltoall", WARN, 45, NA, text="derived floor 46.0 GB/s = 0.92 x 400 Gb/s / 8"),
    Case("alltoall", NO_BASELINE, 47, NA, text="algorithm unknown"),
    Case("sendrecv", WARN, 45, NA),
    # In place alltoall and sendrecv check nothing; the others do.
    Case("alltoall", NO_BASELINE, 47, ("0", "0")),
    Case("all_gather", FAIL, 400, NA),
    Case("all_reduce", FAIL, 400, NA),
    Case("alltoall", FAIL, 47, ("N/A", "N/A")),
    Case("sendrecv", FAIL, 47, ("3", "N/A")),
    Case("reduce_scatter", FAIL, 400, ("0", "3")),
    Case("all_gather", FAIL, 400, bad=2 * FROM, text="wrong values at 8589934464 bytes"),
    Case("all_gather", FAIL, 400, bounds="1 FAILED"),
    Case("all_gather", ERROR, "nan", text="no bandwidth"),
    Case("all_gather", FAIL, 0),
    # A sweep that is not whole.
    Case("all_reduce", ERROR, drop=FROM, text="no row for 4294967296 bytes"),
    Case("sendrecv", ERROR, wrong=NA, drop=2 * FROM, text="no row for 8589934592 bytes"),
    Case("alltoall", ERROR, wrong=NA, drop=TO, text="no row for 17179869184 bytes"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> JobFolder:
    path = tmp_path_factory.mktemp("sweep")
    array = parts.node_array("hpc", catalog.vm_size("Standard_ND96isr_H100_v5"), max_nodes=64)
    made = job_folder(path, plan_with(job("nccl-sweep", 3), array), ("hpc-1", "hpc-2", "hpc-3"))
    made.environment |= {"SET_SWEEP_FROM": "4G", "SET_MESSAGE_SIZE": "16G", "SET_RUNS_DIR": ""}
    return made


@pytest.fixture(scope="module")
def records(folder: JobFolder, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    root = tmp_path_factory.mktemp("cases")
    places = []
    for number, case in enumerate(CASES):
        place = root / str(number)
        place.mkdir()
        for name, text in (("collective", case.collective), ("output", case.output()), ("nccl", case.log())):
            (place / name).write_text(text, encoding="utf-8")
        places.append(str(place))
    subprocess.run(["bash", "-c", WALK, "walk", *places], cwd=folder.path, env=folder.environment, check=True)
    return [
        json.loads((folder.path / "results" / str(number) / "run.json").read_text(encoding="utf-8"))
        for number in range(len(CASES))
    ]


def test_every_case(records: list[dict[str, Any]]) -> None:
    words = {"pass": PASS, "fail": FAIL, "error": ERROR, "warn": WARN, "no_baseline": NO_BASELINE}
    found = [(case, words[record["verdict"]]) for case, record in zip(CASES, records, strict=True)]
    assert [(case, status) for case, status in found if case.status != status] == []
    for case, record in zip(CASES, records, strict=True):
        details = "\n".join(each["detail"] for each in record["checks"])
        assert case.text in details, (case, details)


def test_a_whole_sweep_leaves_its_curve(records: list[dict[str, Any]]) -> None:
    for case, record in zip(CASES, records, strict=True):
        curves = {each["name"]: each["points"] for each in record["series"]}
        if case.drop is None and isinstance(case.bus, int) and case.bus:
            sizes = [size for _, size in case.sizes()]
            assert curves[f"busbw {case.collective}"] == [[size, case.bus] for size in sizes], case
        else:
            assert not curves.get(f"busbw {case.collective}") or case.bus == 0, case


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"SET_COLLECTIVES": "all_reduce gather"}, "COLLECTIVES has 'gather'"),
        ({"SET_SWEEP_FROM": "3G"}, "a sweep from 3G by factors of two does not reach 16G"),
        ({"SET_SWEEP_FROM": "0"}, "does not reach"),
        ({"SET_SWEEP_FROM": "x"}, "SWEEP_FROM is 'x'"),
        ({"SET_LAUNCH": "pmi2"}, "LAUNCH is 'pmi2'; set pmix, container or mpirun"),
        ({"SET_LAUNCH": "container"}, "setting CONTAINER is empty"),
        ({"SET_LAUNCH": "pmix", "SET_CONTAINER": "x"}, "starts no container"),
        ({"SLURM_JOB_ID": ""}, "without Slurm, HOSTFILE must name a file of hosts"),
        ({"SLURM_JOB_ID": "", "SET_HOSTFILE": "settings.env"}, "settings.env is not a file of hosts"),
        ({"SLURM_JOB_ID": "", "SET_HOSTFILE": "none"}, "none is not a file of hosts"),
        (
            {"SET_LAUNCH": "mpirun", "SET_HOSTFILE": "two"},
            "the hosts in two are not the nodes of the job: hpc-1 hpc-2 hpc-3",
        ),
    ],
)
def test_what_cannot_run_says_so(settings: dict[str, str], said: str, folder: JobFolder) -> None:
    (folder.path / "two").write_text("hpc-1 slots=8\nhpc-2 slots=8\n", encoding="utf-8")
    number = 5000 + len(list((folder.path / "results").glob("*")))
    done = folder.run(**({"SLURM_JOB_ID": str(number)} | settings))
    assert done.returncode == ERROR
    assert said in done.stderr
    if settings.get("SLURM_JOB_ID") != "":
        assert json.loads((folder.path / f"results/{number}/run.json").read_text())["verdict"] == "error"


def test_ranks_alone_are_no_measurement(folder: JobFolder, tmp_path: Path) -> None:
    checks = {
        "all_reduce ranks\tpass\n": False,
        "all_reduce ranks\terror\n": True,
        "all_reduce ranks\tpass\nall_reduce\twarn\n": True,
        "all_gather\tpass\n": False,
        "gpus\tpass\n": False,
    }
    script = ". ./library.sh; . $JOBS_LIB/collective.sh; for results; do is_judged all_reduce && echo 1 || echo 0; done"
    places = []
    for number, text in enumerate(checks):
        places.append(tmp_path / str(number))
        places[-1].mkdir()
        (places[-1] / "checks.tsv").write_text(text, encoding="utf-8")
    done = subprocess.run(
        ["bash", "-c", script, "x", *map(str, places)], cwd=folder.path, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [str(int(expected)) for expected in checks.values()]


def test_gpus_of_amd_are_those_of_the_kernel(folder: JobFolder, tmp_path: Path) -> None:
    """Processors are nodes of the same list. Source: Linux, drivers/gpu/drm/amd/amdkfd/kfd_topology.c."""
    nodes = tmp_path / "class/kfd/kfd/topology/nodes"
    for number, count in enumerate((0, 0, 1216, 1216, 1216)):
        (nodes / str(number)).mkdir(parents=True)
        text = f"cpu_cores_count {0 if count else 48}\nsimd_count {count}\nmem_banks_count 1\n"
        (nodes / str(number) / "properties").write_text(text, encoding="utf-8")
    script = ". ./library.sh; . $JOBS_LIB/collective.sh; GPU_VENDOR=AMD; gpus_here; CF_SYS=/proc/none gpus_here || true"
    environment = folder.environment | {"CF_SYS": str(tmp_path)}
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder.path, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "3\n0\n"


def test_host_files(folder: JobFolder) -> None:
    def hosts(*arguments: str, **environment: str) -> tuple[int, str]:
        done = subprocess.run(
            ["./hosts.sh", *arguments], cwd=folder.path, env=folder.environment | environment, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout or done.stderr

    assert hosts() == (0, "hpc-1 slots=8\nhpc-2 slots=8\nhpc-3 slots=8\n")
    listed = "".join(f"{name} slots=4\n" for name in ("hpc-1", "hpc-2", "hpc-7", "gpu-08", "gpu-09", "gpu-10", "login"))
    assert hosts("--slots", "4", "hpc-[1-2,7],gpu-[08-10]", "login") == (0, listed)
    for arguments in (
        ("hpc-[1-",), ("hpc-[2-1]",), ("hpc-[]",), ("hpc 1; rm",), ("-x",), ("--slots", "0", "a"), ("--slots",), ("",),
        ("--partition",), ("--partition", "a", "--partition", "b"), ("--azslurm", "hpc-1"),
    ):  # fmt: skip
        status, said = hosts(*arguments, SLURM_JOB_NODELIST="")
        assert (status, said.startswith("hpc")) == (2, False), arguments


def test_hosts_of_cyclecloud_are_those_that_are_ready(folder: JobFolder, tmp_path: Path) -> None:
    """`azslurm nodes` prints a table: https://github.com/Azure/cyclecloud-scalelib, src/hpc/autoscale/clilib.py."""
    (tmp_path / "azslurm").write_text(
        '#!/bin/bash\nprintf "%s\\n" "$*" >&2\n'
        'printf "%s\\n" "hpc-10  hpc-10  Ready" "hpc-2  hpc-2  Ready" "hpc-3  hpc-3  Acquiring" "hpc-4  Ready"\n'
    )
    (tmp_path / "azslurm").chmod(0o755)
    path = {"PATH": f"{tmp_path}:{folder.environment['PATH']}"}
    done = subprocess.run(
        ["./hosts.sh", "--azslurm"], cwd=folder.path, env=folder.environment | path, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert done.stdout == "hpc-2 slots=8\nhpc-10 slots=8\n"
    assert "nodes --output-columns name,hostname,status --output-format table_headerless" in done.stderr
