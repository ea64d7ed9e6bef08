"""Runs of the recipe `nccl-allreduce`, and what nccl-tests and NCCL print in one."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.jobs.running import JobFolder

PASS, FAIL, ERROR, WARN, NO_BASELINE = 0, 1, 2, 3, 4
GIB = 1024**3
HEADER = "#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong\n"


def header(ranks: int, nodes: int) -> str:
    """As nccl-tests lists the ranks of one test (NVIDIA/nccl-tests, src/common.cu)."""
    return "".join(
        f"#  Rank {rank:2d} Group  0 Pid {rank} on hpc-{rank // (ranks // nodes) + 1} device {rank} [0x{rank:x}] GPU\n"
        for rank in range(ranks)
    )


def row(bus: str = "189.6", wrong: str = "0", size: int = 8 * GIB) -> str:
    return f"  {size}  2147483648  float  sum  -1  87025  98.71  {bus}  {wrong}  86961  98.78  {bus}  0\n"


def footer(average: str = "189.6", bounds: str = "0 OK") -> str:
    return f"# Out of bounds values : {bounds}\n# Avg bus bandwidth    : {average}\n"


def output(bus: str = "189.6", *, ranks: int = 16, nodes: int = 2, size: int = 8 * GIB, wrong: str = "0") -> str:
    return header(ranks, nodes) + HEADER + row(bus, wrong, size) + footer(bus)


def nccl_log(algorithm: str | None = "RING", size: int = 8 * GIB, mnnvl: int | None = None) -> str:
    """Rank 0's log in the form of NCCL 2.24 and later; earlier forms are in `test_nccl_logs`."""
    line = "hpc-1:1:1 [0] NCCL INFO"
    fabric = f"{line} comm 0x1 rank 0 nRanks 16 nNodes 2 localRanks 8 localRank 0 MNNVL {mnnvl}\n"
    used = f"{line} AllReduce: {size} Bytes -> Algo {algorithm} proto SIMPLE channel{{Lo..Hi}}={{0..15}}\n"
    return (fabric if mnnvl is not None else "") + (used if algorithm else "")


JUDGE = """
set -euo pipefail
. ./library.sh
. "${JOBS_LIB}/collective.sh"
load_settings
new_results_folder
judge_collective "${COLLECTIVES}" "${FAKE_OUTPUT}" "${results}/checks.tsv" ${FAKE_NCCL_LOG:+"${FAKE_NCCL_LOG}"}
conclude "judged"
"""
"""What run.sh does once the program has ended well."""


@dataclass
class Runs:
    """Runs of one job folder: job ids count up, and every run finds the results of those before it."""

    folder: JobFolder
    temporary: Path
    nodes: int
    count: int = 4711

    def variables(self, printed: str, log: str | None, given: dict[str, str]) -> dict[str, str]:
        self.count += 1
        (self.temporary / "output").write_text(printed, encoding="utf-8")
        (self.temporary / "nccl").write_text(log or "", encoding="utf-8")
        variables = {
            "FAKE_OUTPUT": str(self.temporary / "output"),
            "FAKE_NCCL_LOG": str(self.temporary / "nccl") if log is not None else "",
            "SET_NCCL_TEST_BINARY": "all_reduce_perf",
            "SLURM_JOB_ID": str(self.count),
        }
        return variables | given

    def job(self, printed: str, log: str | None = "", /, **environment: str) -> int:
        """The exit status of the whole job; without a log NCCL says nothing of its algorithm."""
        self.done = self.folder.run(**self.variables(printed, log, environment))
        return self.done.returncode

    def __call__(self, printed: str, log: str | None = "", /, **environment: str) -> int:
        """The same without launching anything: what the job makes of a run that printed this."""
        variables = self.variables(printed, log, environment)
        self.done = subprocess.run(
            ["bash", "-c", JUDGE],
            cwd=self.folder.path,
            env=self.folder.environment | variables,
            capture_output=True,
            text=True,
            check=False,
        )
        assert not self.done.stderr, self.done.stderr
        return self.done.returncode

    @property
    def results(self) -> Path:
        return self.folder.path / "results" / str(self.count)

    @property
    def record(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.results / "run.json").read_text(encoding="utf-8"))
        return found

    @property
    def rows(self) -> dict[str, dict[str, Any]]:
        return {each["check"]: each for each in self.record["checks"]}

    @property
    def detail(self) -> str:
        detail: str = self.rows["all_reduce"]["detail"]
        return detail


Make = Callable[..., Runs]
