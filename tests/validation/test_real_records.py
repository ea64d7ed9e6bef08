"""Records that the jobs' own Bash has written, not our imitation of it, read and judged by the report."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from generator.cli import main
from generator.validation.gather import gather
from generator.validation.record import Run
from tests.jobs.running import JobFolder, job, job_folder, plan_with

BEGIN = "set -euo pipefail; . ./library.sh; load_settings; new_results_folder; "
LINES = r"""
file="${results}/checks.tsv"
record "${file}" plain pass 470.51 460 GB/s "16G on 2 nodes" "published: https://example.com/x" ""
record "${file}" "gemm fp16" fail 601.2 653 TFLOPS 'a "quoted" <b>detail</b> \ with	a tab' "median of 5 nodes" hpc-2
record "${file}" words warn "007" "-0.5" "" "" "" hpc-1,hpc-2
record "${file}" nothing error
for size in 1024 2048 4096; do series "busbw all_reduce" GB/s bytes hpc-1,hpc-2 "${size}" "1.${size}"; done
series "pair busbw" GB/s round hpc-1,hpc-2 1 47.25
version nccl 2.28.3
"""


@pytest.fixture
def smoke(tmp_path: Path) -> JobFolder:
    return job_folder(tmp_path, plan_with(job("smoke")))


def started(folder: JobFolder, script: str) -> int:
    done = subprocess.run(
        ["bash", "-c", BEGIN + script], cwd=folder.path, env=folder.environment, capture_output=True, check=False
    )
    return done.returncode


def run_of(folder: JobFolder) -> Run:
    """The record in the results and its copy in the folder of all runs are one run."""
    found = gather([str(folder.path.parent)])
    assert found.problems == ()
    (run,) = found.runs
    return run


def test_every_value_of_a_job_is_read_as_it_was_written(smoke: JobFolder) -> None:
    assert started(smoke, LINES + 'conclude "four checks"') == 1
    run = run_of(smoke)
    assert (run.verdict, run.doubt, run.summary, len(run.copies)) == ("fail", "", "four checks", 1)
    plain, gemm, words, nothing = run.checks
    assert (plain.value, plain.expected, plain.unit, plain.nodes) == (470.51, 460, "GB/s", [])
    assert (gemm.verdict, gemm.node, gemm.value) == ("fail", "hpc-2", 601.2)
    assert gemm.detail == r'a "quoted" <b>detail</b> \ with a tab'
    assert (words.value, words.expected, words.nodes) == ("007", -0.5, ["hpc-1", "hpc-2"])
    assert (nothing.verdict, nothing.value, nothing.detail) == ("error", None, "")
    assert run.versions["nccl"] == "2.28.3"
    assert {each.name: list(zip(each.xs, each.ys, strict=True)) for each in run.series} == {
        "busbw all_reduce": [(1024, 1.1024), (2048, 1.2048), (4096, 1.4096)],
        "pair busbw": [(1, 47.25)],
    }


@pytest.mark.parametrize(
    ("end", "verdict"),
    [
        ('finish pass "nothing was checked"', "error"),
        ("kill -KILL $$", "error"),
        ("exit 7", "error"),
        ('record "${results}/checks.tsv" x pass 1 1 "" ""; kill -TERM $$; sleep 5', "error"),
        ('record "${results}/checks.tsv" x fail 1 2 "" ""; finish pass "wrongly"', "fail"),
        ('record "${results}/checks.tsv" x pass 1 1 "" ""; conclude good', "pass"),
    ],
)
def test_whatever_ends_a_job_only_a_pass_is_a_pass(
    end: str, verdict: str, smoke: JobFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    started(smoke, end)
    assert run_of(smoke).verdict == verdict
    assert main(["report", str(smoke.path), "--text"]) == (0 if verdict == "pass" else 1)
    assert capsys.readouterr().out.startswith(
        {"pass": "PASS: the job passed", "fail": "FAIL"}.get(verdict, "NOT PROVEN")
    )
