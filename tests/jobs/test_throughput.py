"""Throughput and loss of training jobs: read from the frameworks' logs, judged by published figures, and never passed
by a log that does not show them."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass

import pytest

from generator.catalog import vm_size
from generator.plan import throughput
from generator.recipes import models
from tests.bed import parts
from tests.jobs.running import job, plan_with, with_library
from tests.jobs.training_logs import (
    PUBLIC_MEGATRON,
    PUBLIC_OLD_MEGATRON,
    composer_log,
    megatron_line,
    megatron_log,
    straggler_line,
)

SETTINGS = (
    "MODEL=mine NUM_LAYERS=32 HIDDEN_SIZE=4096 SEQUENCE=2048 VOCABULARY=50304 GLOBAL_BATCH=64 GPU_PEAK_TFLOPS=989.5"
)
RUNNER = """
set -euo pipefail
. ./library.sh
. $JOBS_LIB/throughput.sh
export SLURM_JOB_NUM_NODES=2 GPUS_PER_NODE=8 NODES_OF_RUN="$(printf '%s\\n' hpc-2 hpc-10)" {settings}
for results in "$1"/*; do
    cp "${{results}}/table" throughput.tsv
    "$(cat "${{results}}/reader")_progress" "${{results}}/log" >"${{results}}/progress.tsv"
    judge_progress "${{results}}/progress.tsv" "${{results}}/checks.tsv"
    judge_stragglers "${{results}}/log" "${{results}}/checks.tsv"
done
"""
TABLE = (
    "#metric\tgpus\tpublished\twarn\tfail\tsource\tmodel\n"
    "tokens_per_gpu\t{gpus}\t999999\t999999\t999999\tpublished: somewhere\tlarger\n"
    "tokens_per_gpu\t{gpus}\t{published}\t{warn}\t{fail}\tpublished: somewhere\tmine\n"
)


def table(gpus: int, published: float, fail: str = "") -> str:
    return TABLE.format(gpus=gpus, published=published, warn=published * 0.9, fail=fail or published * 0.5)


def words(gpus: int) -> str:
    return table(gpus, 200000, "-").replace("tokens_per_gpu", "words_per_s")


@dataclass(frozen=True)
class Case:
    """A log, and what is said of it: verdict of each check, and value where it matters."""

    name: str
    log: str
    expected: dict[str, str]
    values: dict[str, str]
    reader: str = "megatron"
    table: str = ""


CAUSAL = 64 * 2048 / 1.2345 / 16 * 72 * 32 * 4096**2 * (1 + 1 / 24 + 50304 / (12 * 4096 * 32)) / 1e12
FULL = 2100 * (6 * (12 * 32 * 4096**2 + 50304 * 4096) + 12 * 32 * 4096 * 2048) / 1e12
TOKENS = f"{64 * 2048 / 1.2345 / 16:.4g}"
WORDS = f"{64 * 2048 / 1.2345:.0f}"
WELL = {"loss_falls": "pass", "tokens_per_gpu": "pass", "model_tflops": "pass", "mfu": "pass", "straggler": "pass"}
CASES = (
    Case("all is well", megatron_log(100), WELL, {"tokens_per_gpu": TOKENS, "model_tflops": "150", "mfu": "15.16"}),
    Case("a published figure is reached", megatron_log(100), WELL, {}, table=table(16, 7000)),
    Case("below nine tenths", megatron_log(100), {"tokens_per_gpu": "warn"}, {}, table=table(16, 8000)),
    Case("below half", megatron_log(100), {"tokens_per_gpu": "fail"}, {}, table=table(16, 14000)),
    Case("of more GPUs: warns at most", megatron_log(100), {"tokens_per_gpu": "warn"}, {}, table=table(64, 14000)),
    Case("of far more GPUs: says nothing", megatron_log(100), WELL, {}, table=table(72, 14000)),
    Case("another framework: it warns", megatron_log(100), {"tokens_per_gpu": "warn"}, {}, table=table(16, 9e4, "-")),
    Case(
        "the nearest decides", megatron_log(100), WELL, {}, table=table(16, 7000) + table(8, 70000).split("\n", 1)[1]
    ),
    Case("words of the job", megatron_log(100), {"words_per_s": "warn"}, {"words_per_s": WORDS}, table=words(16)),
    Case("words of fewer GPUs", megatron_log(100), WELL, {}, table=words(8)),
    Case("no line", "starting\n", {"progress": "error", "straggler": "no_baseline"}, {}),
    Case("an empty log", "", {"progress": "error", "straggler": "no_baseline"}, {}),
    Case(
        "one line",
        megatron_line(10, 10, "8.0E+00", 1000),
        {"loss_falls": "no_baseline", "tokens_per_gpu": "no_baseline", "model_tflops": "no_baseline"},
        {},
    ),
    Case(
        "the loss rises",
        "".join(megatron_line(each, 5, f"{each}.0E+00", 1000) for each in range(1, 6)),
        {"loss_falls": "fail", "tokens_per_gpu": "pass"},
        {},
    ),
    Case("the last loss is NaN", megatron_log(90) + megatron_line(100, 100, "nan", 1234.5), {"loss_falls": "fail"}, {}),
    Case("a loss of inf", megatron_log(90) + megatron_line(100, 100, "inf", 1234.5), {"loss_falls": "fail"}, {}),
    Case(
        "cut off in a number: the line does not count",
        megatron_log(20) + megatron_line(30, 30, "1.0E+00", 1)[:170],
        {"loss_falls": "pass", "tokens_per_gpu": "no_baseline"},
        {},
    ),
    Case(
        "two processes in one line: it does not count",
        megatron_log(20) + megatron_line(30, 30, "1.0E+00", 1)[:170] + " Traceback (most recent call last):\n",
        {"loss_falls": "pass", "tokens_per_gpu": "no_baseline"},
        {},
    ),
    Case(
        "no time",
        megatron_log(90).replace("elapsed time per iteration (ms)", "elapsed"),
        {"tokens_per_gpu": "fail", "model_tflops": "pass"},
        {},
    ),
    Case(
        "without --log-throughput the work is calculated",
        "".join(megatron_line(each, 50, f"{9 - each / 10}E+00", 1234.5, tflops=None) for each in range(10, 51, 10)),
        {"model_tflops": "pass"},
        {"model_tflops": f"{CAUSAL:.4g}"},
    ),
    Case("a public log", PUBLIC_MEGATRON * 2, {"loss_falls": "fail"}, {"model_tflops": "237.9"}),
    Case("an older public log", PUBLIC_OLD_MEGATRON * 2, {"tokens_per_gpu": "pass"}, {"tokens_per_gpu": "1503"}),
    Case(
        "more than the GPU can do",
        megatron_log(100).replace("150.0", "1000.0"),
        {"model_tflops": "pass", "mfu": "error"},
        {"mfu": "101.1"},
    ),
    Case("a slow rank", megatron_log(100, slow=371.2), {"straggler": "warn"}, {"straggler": "92.3"}),
    Case(
        "slow once is not slow",
        megatron_log(100) + straggler_line(100, 3),
        {"straggler": "pass"},
        {"straggler": "98.2"},
    ),
    Case("a rank that is not there", megatron_log(100, rank=16), {"straggler": "error"}, {}),
    Case(
        "Composer",
        composer_log(24),
        WELL | {"straggler": "no_baseline"},
        {"tokens_per_gpu": "2100", "model_tflops": f"{FULL:.4g}"},
        reader="composer",
    ),
    Case("Composer, too short", composer_log(12), {"tokens_per_gpu": "no_baseline"}, {}, reader="composer"),
    Case("Composer, no speed", composer_log(10), {"tokens_per_gpu": "fail", "mfu": "fail"}, {}, reader="composer"),
    Case(
        "Composer, cut off in a number",
        composer_log(24, until=20) + "[batch=21/24]:\n\t Train loss/train/total: 1",
        {"loss_falls": "fail", "tokens_per_gpu": "fail"},
        {},
        reader="composer",
    ),
    Case("Composer, nothing", "Starting training...\n", {"progress": "error"}, {}, reader="composer"),
)  # fmt: skip


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, list[str]]]:
    folder, work = tmp_path_factory.mktemp("cases"), tmp_path_factory.mktemp("job")
    for number, case in enumerate(CASES):
        place = folder / f"{number:03d}"
        place.mkdir()
        for name, text in (("log", case.log), ("table", case.table), ("reader", case.reader)):
            (place / name).write_text(text, encoding="utf-8")
    with_library(work)
    command = ["bash", "-c", RUNNER.format(settings=SETTINGS), "-", str(folder)]
    ran = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    return {
        case.name: {
            fields[0]: fields[1:]
            for fields in (
                line.split("\t")
                for line in (folder / f"{number:03d}/checks.tsv").read_text(encoding="utf-8").splitlines()
            )
        }
        for number, case in enumerate(CASES)
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_log_is_judged(judged: dict[str, dict[str, list[str]]], case: Case) -> None:
    found = judged[case.name]
    assert {name: found[name][0] for name in case.expected} == case.expected
    assert {name: found[name][1] for name in case.values} == case.values


def test_the_slow_rank_has_a_node(judged: dict[str, dict[str, list[str]]]) -> None:
    """Rank 9 of 2 x 8 is on the second node of the job, which is not the second by name."""
    straggler = judged["a slow rank"]["straggler"]
    assert straggler[4:] == ["rank 9 on hpc-10 was the slowest of 10 intervals", "ours", "hpc-10"]


def test_words_are_those_of_as_many_gpus(judged: dict[str, dict[str, list[str]]]) -> None:
    assert "words_per_s" not in judged["words of fewer GPUs"]


def test_a_published_figure_is_named(judged: dict[str, dict[str, list[str]]]) -> None:
    found = judged["of more GPUs: warns at most"]["tokens_per_gpu"]
    assert found[4:6] == ["14000 was published for 64 GPUs", "published: somewhere"]


# ---------------------------------------------------------------- the plan


def rows(size: str, model: str) -> list[tuple[str, ...]]:
    return list(throughput.throughput_table(vm_size(size) or parts.A100, models.model(model)).rows)


def test_figures_hold_for_model_and_gpu() -> None:
    h100 = rows("Standard_ND96isr_H100_v5", "mpt-30b")
    assert [(row[1], row[2]) for row in h100 if row[0] == "tokens_per_gpu"][:2] == [("8", "2002"), ("16", "2263")]
    # Memory beyond the published GPU's makes nothing slower; an A100 with 80 GB is judged by its own figures alone.
    assert rows("Standard_ND96isr_H200_v5", "mpt-30b") == h100
    assert {row[2] for row in rows("Standard_ND96amsr_A100_v4", "mpt-30b")} == {"916", "55.3"}
    assert {row[1] for row in rows("Standard_ND96asr_v4", "mpt-30b")} == {"32", "128"}
    assert rows("Standard_ND96isr_MI300X_v5", "mpt-30b") == []


def test_a_figure_of_metaseq_convicts_nobody() -> None:
    """It was published as the least, so it is its own limit; 40 GB are too little to compare with 80."""
    (row,) = rows("Standard_ND96amsr_A100_v4", "opt-125m")
    assert row[:5] == ("words_per_s", "8", "200000", "200000", "-")
    assert rows("Standard_ND96asr_v4", "opt-125m") == []


def test_a_job_has_table_and_peak() -> None:
    plan = plan_with(job("mpt", 4))
    assert dict(plan.jobs[0].settings)["GPU_PEAK_TFLOPS"] == "312"
    (found,) = plan.jobs[0].tables
    assert json.dumps(found.rows[0]).startswith('["mfu"')
