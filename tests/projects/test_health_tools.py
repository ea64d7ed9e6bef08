"""What became of a tool: absent, asked wrongly, out of time measured nothing; what ran and ended otherwise failed."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from generator.files import assets
from tests.bed.scripts.healthy import Healthy, healthy
from tests.projects.conftest import MakeNode
from tests.projects.test_health_deep import DIAGNOSTIC, deep, tools

_FILES = assets.folder("projects") / "slurm_nhc/specs/default/cluster-init/files"
NCCL_RESULT = "# Avg bus bandwidth    : 463.2 "
CUDA_802 = "node-1: Test CUDA failure common.cu:1120 'system not yet initialized'"
NVB_802 = (
    "[CUDA_ERROR_SYSTEM_NOT_READY] system not yet initialized in expression cuInit(0) in main() : nvbandwidth.cpp:270"
)
LOADER = "all_reduce_perf: error while loading shared libraries: libmpi.so.40: cannot open shared object file"
USAGE = "USAGE: all_reduce_perf \n\t[-t,--nthreads <num threads>] \n\t[-g,--ngpus <gpus per thread>]"
HOST_ENGINE = "Error: unable to establish a connection to the specified host: localhost"


class Case(NamedTuple):
    """A call that ended, and what it is taken for; sources are those of `tools.sh`."""

    tool: str
    code: int
    output: str
    outcome: str
    words: str
    cure: str = "reboot"


def _of(tool: str, *rows: tuple[Any, ...]) -> list[Case]:
    return [Case(tool, *row) for row in rows]


CASES = [
    # NVIDIA/nccl-tests: 0 pass, 1 internal, 2 CUDA, 3 NCCL, 4 its own time limit, 6 usage, 7 wrong data.
    *_of("all_reduce_perf",
        (0, NCCL_RESULT, "ran", ""), (0, "# nThread 1 nGpus 1", "failed", "printed no result"),
        (0, USAGE, "not_measured", ""), (6, USAGE, "not_measured", "exit code 6"),
        (6, "invalid option", "not_measured", "exit code 6: invalid option"),
        (1, "internal error", "failed", "exit code 1: internal error"),
        (2, f"# nThread 1\n{CUDA_802}\n", "failed", f"exit code 2: {CUDA_802}"),
        (3, "Test NCCL failure", "failed", "exit code 3: Test NCCL failure"), (4, "", "failed", "exit code 4"),
        (139, "", "failed", "was ended by signal 11"), (124, "", "failed", "did not answer in time"),
        (75, "", "not_measured", "no time left"),
        (127, LOADER, "not_measured", "cannot be loaded: all_reduce_perf: error while loading"),
        (127, "", "not_measured", "is not installed"), (126, "bash: Permission denied", "not_measured", ""),
        # Open MPI's own refusals, before any rank has run.
        (1, "There are not enough slots available in the system", "not_measured", ""),
        (1, "mpirun has detected an attempt to run as root.", "not_measured", ""),
    ),
    # NVIDIA/nvbandwidth: 0 also for waived and unknown tests, 1 for wrong arguments and for every CUDA or NVML error.
    *_of("nvbandwidth",
        (0, " 0     55.10     55.20\n", "ran", ""),
        (0, "Running device_to_device_memcpy_read_ce.\nWaived: \n", "not_measured", ""),
        (0, "ERROR: Testcase nothing not found!", "not_measured", ""),
        (1, "ERROR: Invalid Arguments \nnvbandwidth --nothing", "not_measured", ""),
        (1, NVB_802, "failed", "exit code 1: [CUDA_ERROR_SYSTEM_NOT_READY]"),
        (0, "Running host_to_device_memcpy_ce.\nERROR: CUDA_ERROR_ECC", "failed", ""),
    ),
    # linux-rdma/perftest: 1 for everything.
    *_of("ib_write_bw",
        (0, "anything", "ran", ""), (1, " Unsupported memory type", "not_measured", ""),
        (1, "ib_write_bw: unrecognized option '--use_cuda=0'", "not_measured", ""),
        (1, "Couldn't listen to port 18510", "not_measured", ""),
        (1, "Failed status 12: wr_id 0 syndrom 0x81", "failed", "Failed status 12"),
    ),
    # NVIDIA/DCGM: its codes modulo 256.
    *_of("dcgmi",
        (0, "| Denylist | Pass |", "ran", ""), (226, "", "failed", "exit code 226"),
        (205, "", "failed", "exit code 205", "service"), (237, "", "failed", "exit code 237", "reset"),
        (238, "", "failed", "exit code 238", "service"), (199, "", "failed", "exit code 199"),
        (139, "", "failed", "signal 11"), (1, "| PCIe | Fail - GPU 3 |", "failed", ""),
        *((code, HOST_ENGINE, "not_measured", f"{code}")
          for code in (1, 217, 215, 216, 206, 203, 198, 235, 254)),
    ),
]  # fmt: skip
RESULTS = {"all_reduce_perf": "Avg bus bandwidth[[:space:]]*:[[:space:]]*[0-9]", "dcgmi": "[Pp]ass",
           "nvbandwidth": r"[[:space:]][0-9]+\.[0-9]+[[:space:]]", "ib_write_bw": ""}  # fmt: skip
DECIDE = """
set -euo pipefail
CYCLEFORGE_BUDGET_S=60 CYCLEFORGE_ROWS=/run/rows
. "$1/tools.sh"
shift
while (($#)); do
    OUTPUT="$3"
    outcome "$1" "$2" "$4"
    printf '%s\\x1f%s\\x1f%s\\x1e' "${OUTCOME}" "${OUTCOME_CURE}" "${REPLY}"
    shift 4
done
"""


def test_every_end_of_a_tool_is_what_its_source_says() -> None:
    """One process for all of them."""
    words = [str(word) for case in CASES for word in (case.tool, case.code, case.output, RESULTS[case.tool])]
    run = subprocess.run(
        ["bash", "-c", DECIDE, "decide", str(_FILES), *words], capture_output=True, text=True, check=True
    )
    found = [row.split("\x1f") for row in run.stdout.split("\x1e")[:-1]]
    assert [(case, row[0]) for case, row in zip(CASES, found, strict=True) if row[0] != case.outcome] == []
    assert [(case, row) for case, row in zip(CASES, found, strict=True) if case.words not in row[2]] == []
    failed = [(case, row[1]) for case, row in zip(CASES, found, strict=True) if case.outcome == "failed"]
    assert [(case, cure) for case, cure in failed if cure != case.cure] == []


TWICE = """
set -euo pipefail
CYCLEFORGE_BUDGET_S=60 CYCLEFORGE_ROWS="$2/rows" PATH="$2:${PATH}"
. "$1/tools.sh"
run_for_result all_reduce_perf 20 result all_reduce_perf || true
printf '%s\\n' "${OUTCOME}" "${REPLY}"
"""


def test_a_failure_stays_one_when_there_is_no_second_answer(tmp_path: Path) -> None:
    """The second try measures nothing, here because the tool is gone; with the time of the run it is the same."""
    program = tmp_path / "all_reduce_perf"
    program.write_text('#!/bin/bash\nrm "$0"\necho "Test NCCL failure"\nexit 3\n')
    program.chmod(0o755)
    run = subprocess.run(["bash", "-c", TWICE, "twice", str(_FILES), str(tmp_path)], capture_output=True, text=True,
                         check=True)  # fmt: skip
    assert run.stdout.splitlines() == ["failed", "all_reduce_perf ended with exit code 3: Test NCCL failure"]


ASK = r"""
set -euo pipefail
CYCLEFORGE_BUDGET_S=60
. "$1/tools.sh"
for length in 0 1 8187 8188 8189 8190 8191 8192 8193 200000; do
    code=0
    run_tool 60 bash -c 'printf "%0$1d\n\n" 7; exit 3' tool "${length}" || code=$?
    printf '%s %s %s\n' "${length}" "${#OUTPUT}" "${code}"
done
run_tool 60 bash -c 'printf "a\0\n\nb"' && printf '%q\n' "${OUTPUT}"
"""


def test_output_is_whole_whoever_reads_it_and_its_end_is_told_apart() -> None:
    """Bash itself reads up to 8192 bytes, with the exit code behind them; a program reads what comes after."""
    run = subprocess.run(["bash", "-c", ASK, "ask", str(_FILES)], capture_output=True, text=True, check=True)
    *rows, text = run.stdout.splitlines()
    assert [row.split()[2] for row in rows] == ["3"] * len(rows)
    assert [row for row in rows if row.split()[1] != str(max(1, int(row.split()[0])))] == []
    assert text == r"$'a\n\nb'", "zero bytes are nothing that Bash can hold"


@pytest.fixture
def node(make_node: MakeNode) -> Healthy:
    made = healthy(make_node("slurm_nhc"), deep_s=300)
    tools(made)
    return made


def _rows(node: Healthy, check: str) -> list[dict[str, Any]]:
    return [row for row in node.result("deep")["checks"] if row["check"] == check]


def test_a_node_whose_cuda_does_not_initialise_takes_no_job(node: Healthy) -> None:
    """CUDA 802: counters, nvidia-smi and DCGM look healthy meanwhile. Source: NVIDIA/NVSentinel issue 889."""
    node.fake("nvbandwidth", f"echo '{NVB_802}'; exit 1")
    node.fake("mpirun", f'echo "{CUDA_802}"; exit 2')
    assert deep(node)["verdict"] == "fail"
    for check in ("gpu_copy_to_device", "gpu_copy_peer", "nccl_all_reduce", "nccl_loopback"):
        (row,) = _rows(node, check)
        assert row["verdict"] == "fail"
        assert "system not yet initialized" in row["detail"]
    assert node.health("gate")[0] == 3
    assert "system not yet initialized" in node.reason()


@pytest.mark.parametrize(("tool", "check", "healthy_body"), [
    ("nvbandwidth", "gpu_copy_peer", "printf ' 0\\n 0 250.10 250.20\\n'"),
    ("mpirun", "nccl_all_reduce", "printf '# Avg bus bandwidth    : 231.5\\n'"),
    ("dcgmi", "gpu_diagnostic", f"echo '{DIAGNOSTIC.format(verdict='Pass')}'"),
])  # fmt: skip
def test_a_tool_that_crashes_once_is_asked_again(node: Healthy, tool: str, check: str, healthy_body: str) -> None:
    node.only(*(("nccl_environment",) if tool == "mpirun" else ()), check, kind="deep")
    once = 'if mkdir "$FAKE_STATE/crashed" 2>/dev/null; then kill -SEGV $$; fi'
    node.fake(tool, f"{once}\n{healthy_body}")
    deep(node)
    assert (node.state / "crashed").exists()
    assert node.verdict(check, "deep") == "pass"
    node.fake(tool, "kill -SEGV $$")
    node.forget()
    deep(node)
    (row,) = _rows(node, check)
    assert (row["verdict"], "was ended by signal 11" in row["detail"]) == ("fail", True)


def test_what_broke_first_is_said_although_a_second_try_measures_nothing(node: Healthy) -> None:
    """Of all-reduce, which counts its tries itself; and a test of InfiniBand without a row of figures has failed."""
    broken = 'mkdir "$FAKE_STATE/broken" 2>/dev/null && { echo "Test NCCL failure"; exit 3; }'
    node.fake("mpirun", f'if [[ "$*" != *P2P_DISABLE* ]]; then {broken}; fi\necho "USAGE: all_reduce_perf"; exit 6')
    node.fake("ib_write_bw", "echo done")
    deep(node)
    (row,) = _rows(node, "nccl_all_reduce")
    assert (row["verdict"], "Test NCCL failure" in row["detail"]) == ("fail", True)
    assert [row["verdict"] for row in _rows(node, "ib_write_host")] == ["fail"] * 8


def test_a_device_that_fails_once_is_measured_again_and_only_that_one(node: Healthy) -> None:
    """A queue pair that was not ready in time is no broken link; the second answer counts."""
    node.only("ib_write", kind="deep")
    _, _, real = (node.bin / "ib_write_bw").read_text().split("\n", 2)
    fail = "Failed status 12: wr_id 0 syndrom 0x81"
    first = f'mkdir "$FAKE_STATE/failed" 2>/dev/null && {{ echo "{fail}"; exit 1; }}'
    once = f'case "$*" in *mlx5_ib4*localhost) {first} ;; esac'
    node.fake("ib_write_bw", f"{once}\n{real}")
    deep(node)
    assert node.verdict("ib_write", "deep") == "pass"
    asked = [call for call in node.calls("ib_write_bw") if call.endswith("localhost")]
    assert sum("mlx5_ib4" in call for call in asked) == 2
    assert sum("mlx5_ib5" in call for call in asked) == 1
