"""Readers of what GPU tools print, and the judgement of a fleet: `recipes/lib/gpu-tools.sh`, `fio.sh` and `fleet.sh`.

Excerpts are as they were published; lines that no reader looks at are left out.
"""

# ruff: noqa: E501
from __future__ import annotations

import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.jobs.running import LIBRARY, with_library

EXCERPTS = {
    # https://github.com/NVIDIA/DCGM/issues/122: a GPU at a third of its speed, which DCGM's own diagnosis passed
    "ubergemm-dcgm3-bad": "GEMM [I] (ADAPTER#0)  Ending with 6698.442948608 GFlops\n",
    "ubergemm-dcgm3": "GEMM [I] (ADAPTER#2)  Ending with 19239.381499904 GFlops\n",
    # Azure/ai-infrastructure-on-azure, infrastructure_validations/slurm/gpu_test: lines count after "starting...."
    "ubergemm-dcgm4": "GFlops:9.1e+05\nstarting....\nGFlops:1.7933e+06\nGFlops:1.8137e+06\n",
    "ubergemm-tuning-only": "GFlops:1.7933e+06\n",
    "ubergemm-nan": "starting....\nGFlops:1.7933e+06\nGFlops:nan\n",
    # https://docs.nvidia.com/datacenter/dcgm/latest/user-guide/feature-overview.html
    "proftester-dcgm2": (
        "Skipping WatchFields() since DCGM validation is disabled\n"
        "Worker 0:0[1004]: TensorEngineActive: generated ???, dcgm 0.000 (250362.2 gflops)\n"
        "Worker 0:0[1004]: TensorEngineActive: generated ???, dcgm 0.000 (252917.0 gflops)\n"
        "Worker 0:0[1004]: TensorEngineActive: generated ???, dcgm 0.000 (253971.7 gflops)\n"
        "Worker 0:0[1004]: TensorEngineActive: generated ???, dcgm 0.000 (253700.2 gflops)\n"
        "Worker 0:0[1004]: Message: Bus ID 00000000:00:04.0 mapped to cuda device ID 0\n"
    ),
    # NVIDIA/DCGM, dcgmproftester/PhysicalGpu.cpp since 3.3: three digits, a space before the field
    "proftester-dcgm3": (
        "Worker 0:0 [1004]: TensorEngineActive:  generated ???, dcgm 0 (1.78e+05 gflops).\n"
        "Worker 1:0 [1004]: TensorEngineActive:  generated ???, dcgm 0 (9.99e+04 gflops).\n"
        "Worker 0:0 [1004]: TensorEngineActive:  generated ???, dcgm 0 (1.90e+05 gflops).\n"
    ),
    # https://github.com/NVIDIA/DCGM/issues/239: a release that prints no rate
    "proftester-silent": "Worker 0:0[1004]: TensorEngineActive: target max, dcgm 0\n",
    # microsoft/superbenchmark, tests/benchmarks/micro_benchmarks/test_cublaslt_function.py
    "cublaslt": "16   16    16    0       1.111      2.222\n",
    "cublaslt-failed": "cuBLAS API failed\n",
    # microsoft/superbenchmark, tests/data/gpu_stream.log
    "gpu_stream": (
        'Device 0: "NVIDIA Graphics Device"  152 SMs(10.0)  Memory: 4000MHz x 8192-bit = 8192 GB/s PEAK   ECC is ON\n'
        "STREAM_COPY_double_gpu_0_buffer_4294967296_block_128\t6711.67\t81.93\n"
        "STREAM_TRIAD_double_gpu_0_buffer_4294967296_block_128\t7378.19\t90.07\n"
        "STREAM_TRIAD_double_gpu_0_buffer_4294967296_block_256\t7414.01\t90.50\n"
    ),
    # NVIDIA/nvbandwidth README.md; the sum is of microsoft/superbenchmark, tests/data/nvbandwidth_results.log (v0.6)
    "nvbandwidth-readme": (
        "Running device_to_device_memcpy_write_ce.\nmemcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)\n"
        "          0         1         2\n0      0.00    276.07    276.36\n1    276.19      0.00    276.29\n"
        "2    274.89    276.29      0.00\n\nSUM device_to_device_memcpy_write_ce 1656.09\n"
    ),
    "nvbandwidth-v0.6": (
        "nvbandwidth Version: v0.6\nRunning host_to_device_memcpy_ce.\nmemcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n"
        "           0         1         2\n 0    369.36    269.33    412.11\n 1    323.36    299.33    312.11\n\n"
        "SUM host_to_device_memcpy_ce 1985.60\n\nRunning device_to_host_memcpy_ce.\n"
        "memcpy CE CPU(row) <- GPU(column) bandwidth (GB/s)\n           0         1\n 0    295.15    312.11\n"
    ),
    # https://github.com/NVIDIA/k8s-test-infra/issues/371
    "nvlink": (
        "GPU 0: NVIDIA GB200 (UUID: GPU-d1b93026-6d5b-03bd-3a71-f85b47a61bde)\n         Link 0: 53.125 GB/s\n"
        "         Link 1: 53.125 GB/s\nGPU 1: NVIDIA GB200 (UUID: GPU-39ac7bce-e3d6-b426-008e-fa47897c72d5)\n"
        "         Link 0: <inactive>\n         Link 1: 53.125 GB/s\n"
    ),
    # https://github.com/NVIDIA/srt-slurm/pull/307
    "nvlink-errors": (
        "GPU 0: NVIDIA GB300\n\t Link 0: Replay Errors: 0\n\t Link 0: Recovery Errors: 0\n\t Link 0: CRC Errors: 0\n"
    ),
    "no-gpus": "No devices were found\n",
    # facebookresearch/gcm, gcm/tests/health_checks_tests/test_check_dcgmi.py (DCGM 3)
    "dcgm3-fail": (
        '{"DCGM GPU Diagnostic": {"test_categories": [{"category": "Deployment", "tests": [{"name": "Blacklist", "results":'
        ' [{"status": "Pass"}]}, {"name": "Persistence Mode", "results": [{"status": "Fail"}]}, {"name": "Environment'
        ' Variables", "results": [{"status": "Warn"}]}, {"name": "Inforom", "results": [{"status": "Pass"}]}]}]}}\n'
    ),
    # NVIDIA/DCGM, testing/python3/dcgm_diag_schema.json (DCGM 4)
    "dcgm4-skip": (
        '{"DCGM Diagnostic":{"test_categories":[{"category":"Hardware","tests":[{"name":"memory","results":[{"entity_group":'
        '"GPU","entity_group_id":1,"entity_id":0,"status":"Skip"}],"test_summary":{"status":"Skip"}}]}]},"metadata":'
        '{"version":"4.5.2"}}\n'
    ),
    "dcgm4-fail": (
        '{"DCGM Diagnostic":{"test_categories":[{"category":"Hardware","tests":[{"name":"pcie","results":[{"entity_group":'
        '"GPU","entity_group_id":1,"entity_id":3,"status":"Fail","warnings":[{"error_category":1,"error_id":44,'
        '"error_severity":2,"warning":"bandwidth of 5 GB/s is below 20"}]}],"test_summary":{"status":"Fail"}}]}]}}\n'
    ),
    "dcgm4-launch": '{"DCGM Diagnostic":{"runtime_error":"Another diag is running"}}\n',
    "dcgm-half": '{"DCGM Diagnostic":{"test_cat',
    "empty": "",
}  # fmt: skip
READ = [
    ("gemm_of_ubergemm ubergemm-dcgm3-bad", "6.7"),
    ("gemm_of_ubergemm ubergemm-dcgm3", "19.2"),
    ("gemm_of_ubergemm ubergemm-dcgm4", "1803.5"),
    ("gemm_of_ubergemm ubergemm-tuning-only", None),
    ("gemm_of_ubergemm ubergemm-nan", None),
    ("gemm_of_ubergemm empty", None),
    ("gemm_of_proftester proftester-dcgm2 0", "253.8"),
    ("gemm_of_proftester proftester-dcgm2 1", None),
    ("gemm_of_proftester proftester-dcgm3 0", "190.0"),
    ("gemm_of_proftester proftester-dcgm3 1", "99.9"),
    ("gemm_of_proftester proftester-silent 0", None),
    ("gemm_of_cublaslt cublaslt 16", "2.2"),
    ("gemm_of_cublaslt cublaslt 8192", None),
    ("gemm_of_cublaslt cublaslt-failed 16", None),
    ("memory_of_gpu_stream gpu_stream COPY", "6711.7"),
    ("memory_of_gpu_stream gpu_stream TRIAD", "7414.0"),
    ("memory_of_gpu_stream gpu_stream SCALE", None),
    ("cells_of_nvbandwidth nvbandwidth-readme device_to_device_memcpy_write_ce",
     "0 1 276.07\n0 2 276.36\n1 0 276.19\n1 2 276.29\n2 0 274.89\n2 1 276.29"),
    ("cells_of_nvbandwidth nvbandwidth-v0.6 host_to_device_memcpy_ce",
     "0 0 369.36\n0 1 269.33\n0 2 412.11\n1 0 323.36\n1 1 299.33\n1 2 312.11"),
    ("cells_of_nvbandwidth nvbandwidth-v0.6 device_to_host_memcpy_ce", None),
    ("cells_of_nvbandwidth nvbandwidth-v0.6 device_to_device_memcpy_read_ce", None),
    ("links_of_nvlink nvlink", "0 2 0\n1 1 1"),
    ("links_of_nvlink no-gpus", None),
    ("errors_of_nvlink nvlink-errors", "0 0 0 Replay Errors\n0 0 0 Recovery Errors\n0 0 0 CRC Errors"),
    ("errors_of_nvlink empty", None),
    ("dcgm_summary dcgm3-fail", "fail\tPersistence Mode\npass\tBlacklist Inforom\nwarn\tEnvironment Variables"),
    ("dcgm_summary dcgm4-skip", "skip\tmemory\nversion\t4.5.2"),
    ("dcgm_summary dcgm4-fail", "fail\tpcie\nwhy\tpcie: GPU 3: bandwidth of 5 GB/s is below 20"),
    ("dcgm_summary dcgm4-launch", "error\tAnother diag is running"),
    ("dcgm_summary dcgm-half", None),
    ("dcgm_summary empty", None),
]  # fmt: skip
"""A call of a reader on an excerpt, and what it prints; None: it fails and prints nothing."""


def bash(script: str, folder: Path) -> str:
    with_library(folder)
    sources = ". ./library.sh\n" + "".join(f". {LIBRARY}/{name}\n" for name in ("gpu-tools.sh", "fio.sh", "fleet.sh"))
    done = subprocess.run(["bash", "-c", sources + script], cwd=folder, capture_output=True, text=True, check=False)
    assert done.stderr == "", done.stderr
    return done.stdout


@pytest.mark.parametrize("columns", ["blanks", "tabs"])
def test_readers_take_what_tools_printed_elsewhere_and_nothing_else(columns: str, tmp_path: Path) -> None:
    for name, text in EXCERPTS.items():
        (tmp_path / name).write_text(
            re.sub(r"^ +| {2,}", "\t", text, flags=re.MULTILINE) if columns == "tabs" else text
        )
    script = "".join(f'text="$({call})"; echo "= $?"; echo "${{text}}"\n' for call, _ in READ)
    answers = bash(script, tmp_path).split("= ")[1:]
    for (call, expected), answer in zip(READ, answers, strict=True):
        status, _, text = answer.partition("\n")
        if expected is None:
            assert (status != "0", text.strip()) == (True, ""), call
        else:
            assert (status, sorted(text.strip().split("\n"))) == ("0", sorted(expected.split("\n"))), call


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_the_rate_of_fio_is_what_it_moved(tmp_path: Path) -> None:
    """The reader against fio itself; half a line, a failed fio and another way of writing give no rate."""
    out = bash(
        """fio --name=x --directory=. --rw=write --bs=1M --size=8M --group_reporting --output-format=terse --terse-version=3 >whole
        fio --name=x --directory=/no --rw=write --bs=1M --size=8M --output-format=terse --terse-version=3 >failed 2>&1
        head -c 300 whole >half
        cat whole whole >twice
        fio_rate whole write
        awk -F ';' '{ printf "%.1f\\n", $47 * 1.024 / $50 }' whole
        for bad in "whole read" "failed write" "half write" "twice write"; do fio_rate ${bad} && echo "${bad} passed"; done
        true""",
        tmp_path,
    )
    rate, expected = (float(word) for word in out.split())
    assert rate == pytest.approx(expected, rel=0.15)


SETTINGS = "export FLEET_FAIL_PERCENT=7 FLEET_WARN_PERCENT=3.5\n"


def fleet(tmp_path: Path, cases: dict[str, str], figures: str = "") -> dict[str, list[list[str]]]:
    """What `judge_fleet` says of each case, a table of values."""
    (tmp_path / "figures.tsv").write_text("#check\n" + figures)
    for name, text in cases.items():
        (tmp_path / f"{name}.values").write_text(text)
    out = bash(SETTINGS + 'for file in *.values; do judge_fleet figures.tsv "${file}" >"${file}.out"; done', tmp_path)
    assert out == ""
    return {
        name: [line.split("\t") for line in (tmp_path / f"{name}.values.out").read_text().splitlines()]
        for name in cases
    }


def values(check: str, rates: dict[tuple[str, str], float], tool: str = "tool", unit: str = "GB/s") -> str:
    return "".join(f"{check}\t{node}\t{item}\t{rate:.2f}\t{unit}\t{tool}\t\n" for (node, item), rate in rates.items())


def test_fifty_fleets_with_slow_nodes(tmp_path: Path) -> None:
    """Figures that scatter by 2 %: a node that is 15 % slower, or one of its GPUs, is named, and nobody else fails; so do
    two at a time. A healthy fleet has no failures. 16 nodes with 8 GPUs, and 5 with one figure each."""
    generator = random.Random(7)
    cases, culprits = {}, {}
    for number in range(50):
        nodes, items = ((16, 8), (5, 1))[number % 2]
        bad = generator.sample(range(nodes), 0 if number % 5 == 0 else 2 if nodes > 5 and number % 3 == 0 else 1)
        rates = {}
        for node in range(nodes):
            slow_item = generator.randrange(items) if number % 4 < 2 else None
            for item in range(items):
                is_slow = node in bad and slow_item in (None, item)
                rates[f"n{node}", f"GPU {item}"] = 700 * generator.uniform(0.98, 1.02) * (0.85 if is_slow else 1)
        cases[f"c{number}"] = values("gemm", rates)
        culprits[f"c{number}"] = sorted(f"n{node}" for node in bad)
    for name, lines in fleet(tmp_path, cases).items():
        assert sorted(line[7] for line in lines if line[1] == "fail") == culprits[name], (name, lines)
        assert {line[1] for line in lines if line[7] not in culprits[name]} <= {"pass", "warn"}


def test_floors_and_damage(tmp_path: Path) -> None:
    """What decides where, and that no damaged line passes."""
    figures = (
        "gemm\tubergemm\t769\t742\t715\tTFLOPS\tpublished\t-\tAzure\n"
        "hbm\tany\t1700\t1530\t-\tGB/s\tderived\t0.9 x 1700\tguide\n"
    )
    four = {(f"n{node}", "GPU 0"): 1700.0 for node in range(4)}
    one = {("n0", "GPU 0"): 760.0, ("n0", "GPU 1"): 700.0}
    cases = {
        "floor": values("gemm", one, "ubergemm", "TFLOPS"),
        "other-tool": values("gemm", one, "ubergemm below a minute", "TFLOPS"),
        "warns": values("gemm", {("n0", "GPU 0"): 730.0}, "ubergemm", "TFLOPS"),
        "passes": values("gemm", {("n0", "GPU 0"): 742.0}, "ubergemm", "TFLOPS"),
        "unit": values("gemm", one, "ubergemm", "GFLOPS"),
        "derived-alone": values("hbm", {("n0", "GPU 0"): 1690.0}),
        "derived-low": values("hbm", dict.fromkeys(four, 1500.0)),
        "derived-fleet": values("hbm", four),
        "two-nodes": values("x", {("n0", "a"): 5, ("n0", "b"): 5, ("n1", "a"): 4, ("n1", "b"): 5}),
        "mixed-tools": values("x", four, "fio") + values("x", {("n4", "GPU 0"): 1700.0}, "dd"),
        "zero": values("x", four | {("n4", "GPU 0"): 0.0}),
        "text": values("x", four) + "x\tn4\tGPU 0\tnan\tGB/s\ttool\t\n",
        "half": values("x", four) + "x\tn4\tGPU 0\t17",
        "twice": values("x", four) + values("x", {("n0", "GPU 0"): 1700.0}),
        "empty": "",
    }
    found = fleet(tmp_path, cases, figures)
    words = {name: {line[7]: line[1] for line in lines} for name, lines in found.items()}
    everyone = dict.fromkeys(("n0", "n1", "n2", "n3"), "pass")
    assert words["floor"] == {"n0": "fail"}
    assert found["floor"][0][6].startswith("published: ")
    assert words["other-tool"] == {"n0": "no_baseline"}
    assert (words["warns"], words["passes"]) == ({"n0": "warn"}, {"n0": "pass"})
    assert words["unit"] == {"n0": "error"}
    assert words["derived-alone"] == {"n0": "no_baseline"}
    assert set(words["derived-low"].values()) == {"warn"}
    assert found["derived-low"][0][6].startswith("derived: 0.9 x 1700")
    assert words["derived-fleet"] == everyone
    assert set(words["two-nodes"].values()) == {"no_baseline"}
    assert set(words["mixed-tools"].values()) == {"no_baseline"}
    for name in ("zero", "text", "half"):
        assert words[name] == everyone | {"n4": "error"}, name
    assert words["twice"] == everyone | {"n0": "error"}
    assert found["empty"] == []


def test_earlier_runs_stand_in_for_other_nodes(tmp_path: Path) -> None:
    """Three of them, with the same tool; where there are nodes enough to compare they do not count."""
    lines = [f"x\ttool\tGB/s\t{100 + run}\t{run}\n" for run in range(3)]
    (tmp_path / "history").write_text("".join(lines) + "x\tother\tGB/s\t1\t1\nhalf\ttool\n")
    (tmp_path / "short").write_text("".join(lines[:2]) * 2)
    (tmp_path / "figures.tsv").write_text("#check\n")
    (tmp_path / "low").write_text(values("x", {("n0", "a"): 85}))
    (tmp_path / "good").write_text(values("x", {("n0", "a"): 95}))
    (tmp_path / "fleet").write_text(values("x", {(f"n{node}", "a"): 50 for node in range(5)}))
    calls = ("low history", "good history", "good short", "fleet history")
    script = "".join(f"judge_fleet figures.tsv {call} | cut -f 2 | sort -u\n" for call in calls)
    assert bash(SETTINGS + script, tmp_path).split() == ["fail", "pass", "no_baseline", "pass"]
