"""Steps that train a smaller model first: with everything that the large run needs, and nothing of its layout."""

from __future__ import annotations

import json
import re
from pathlib import Path, PurePosixPath

import pytest

from generator.catalog import vm_size
from generator.plan.ledger import ledgers
from generator.recipes import recipe, recipe_names
from generator.render import jobs
from generator.rules import all_rules
from tests.bed import parts
from tests.jobs.running import job, job_folder, plan_with
from tests.jobs.test_scripts import ERROR, PASS
from tests.jobs.training_logs import megatron_log

CHECKS = {"50-check-375m.sbatch": "gpt3-375m", "60-check-857m.sbatch": "gpt3-857m"}
LARGE: dict[str, str | int | bool] = {
    "TENSOR_PARALLEL": 8,
    "PIPELINE_PARALLEL": 16,
    "GLOBAL_BATCH": 1536,
    "EXTRA_ARGUMENTS": "--fp8-format hybrid",
}


def test_checks_stand_between_the_data_and_the_run() -> None:
    planned = plan_with(job("gpt3-175b", 16)).jobs[0]
    assert [step.file for step in planned.steps][-4:] == ["40-preprocess.sbatch", *CHECKS, "job.sbatch"]
    assert planned.commands[-3:] == (
        'check_375m=$(sbatch --parsable --dependency=afterok:"${preprocess}" 50-check-375m.sbatch)',
        'check_857m=$(sbatch --parsable --dependency=afterok:"${check_375m}" 60-check-857m.sbatch)',
        'sbatch --dependency=afterok:"${check_857m}" job.sbatch',
    )
    assert {dict(step.options)["nodes"] for step in planned.steps if step.file in CHECKS} == {2}


def test_a_check_shares_all_but_the_model() -> None:
    planned = plan_with(job("gpt3-175b", 16, MODEL="gpt3-175b", CHUNKS=7, DATA="c4", SPARE_NODES=1, **LARGE)).jobs[0]
    own = {step.file: dict(step.settings) for step in planned.steps if step.settings}
    assert {file: settings["MODEL"] for file, settings in own.items()} == CHECKS
    for settings in own.values():
        assert not {"CHUNKS", "CONTAINER", "DATA", "MEGATRON_COMMIT", "STAGE_PATH", "TOKENIZER"} & set(settings)
        assert (settings["TENSOR_PARALLEL"], settings["PIPELINE_PARALLEL"], settings["EXTRA_ARGUMENTS"]) == (
            "1",
            "1",
            "",
        )
        assert (settings["SPARE_NODES"], settings["GLOBAL_BATCH"]) == ("0", "256")
    assert {dict(step.options)["nodes"] for step in planned.steps if step.settings} == {2}
    assert dict(planned.steps[-1].options)["nodes"] == 17


def test_a_job_whose_model_is_no_larger_has_no_check() -> None:
    files = {
        model: [step.file for step in plan_with(job("gpt3-175b", 2, MODEL=model)).jobs[0].steps if step.settings]
        for model in ("gpt3-375m", "gpt3-857m", "gpt3-1.3b")
    }
    assert files == {"gpt3-375m": [], "gpt3-857m": ["50-check-375m.sbatch"], "gpt3-1.3b": list(CHECKS)}


def test_a_partition_of_one_node_is_checked_on_it() -> None:
    plan = plan_with(job("gpt3-175b", 1, MODEL="gpt3-1.3b"), parts.node_array("hpc", parts.A100, max_nodes=1))
    assert {dict(step.options)["nodes"] for step in plan.jobs[0].steps} == {1}


def test_checkpoints_of_checks_are_in_the_ledger() -> None:
    plan = plan_with(job("gpt3-175b", 16))
    (ledger,) = ledgers(plan.jobs, plan.mounts)
    rows = {row.what: row.needed_bytes for row in ledger.rows}
    assert rows["checkpoints: gpt3-375m"] == 2 * 14 * 64_108_544 == 1_795_039_232
    assert rows["checkpoints: gpt3-857m"] < 0.01 * rows["checkpoints"]


HINTED = sorted(
    {name for rule in all_rules() for name in re.findall(r"settings: \{(\w+):", rule.fix)} | {"DATASET_FILES"}
)


@pytest.mark.parametrize("name", recipe_names("training"))
def test_each_setting_that_a_hint_names_may_be_said_as_it_is(name: str) -> None:
    found = recipe(name)
    assert found
    assert {"KEEP_CHECKPOINTS", "MODEL", "CHECKPOINT_MAX_SECONDS"} <= set(HINTED)
    usual = plan_with(job(name, 16))
    given = [dict(found.default_settings), *(dict(step.settings) for step in found.steps)]
    for setting in HINTED:
        for value in {settings[setting] for settings in given if setting in settings}:
            plan = plan_with(job(name, 16, **{setting: value}))
            found_rows = ledgers(plan.jobs, plan.mounts)
            if value == dict(usual.jobs[0].settings)[setting]:
                assert found_rows == ledgers(usual.jobs, usual.mounts)


def test_a_part_of_the_data_takes_a_part_of_the_room() -> None:
    def data(**settings: int) -> dict[str, int]:
        plan = plan_with(job("gpt3-175b", 16, **settings))
        return {
            row.what: row.needed_bytes for row in ledgers(plan.jobs, plan.mounts)[0].rows if row.what.startswith("data")
        }

    every = data()
    assert set(every) == {"data: compressed", "data: concatenated", "data: tokens"}
    for what, size in data(DATASET_FILES=20).items():
        assert size == round(every[what] * 20 / 59166)
    assert data(DATASET_FILES=100000) == every


def test_a_check_runs_with_its_own_settings_and_is_judged_by_no_figure_of_the_large_model(tmp_path: Path) -> None:
    size = vm_size("Standard_ND96isr_H100_v5")
    assert size is not None
    plan = plan_with(job("gpt3-175b", 16, DATA="mock"), parts.node_array("hpc", size, max_nodes=16))
    folder = job_folder(tmp_path, plan)
    (tmp_path / "output").write_text(megatron_log(100))
    assert folder.run("10-setup.sh").returncode == PASS
    given = {"FAKE_OUTPUT": str(tmp_path / "output"), "SLURM_SUBMIT_DIR": str(folder.path)}
    ran = folder.run("50-check-375m.sbatch", **given)
    assert ran.returncode == PASS, ran.stdout + ran.stderr
    arguments = Path(folder.environment["FAKE_LOG"] + ".torchrun").read_text().splitlines()
    assert arguments[arguments.index("--num-layers") + 1] == "12"
    assert "--save" in arguments
    checks = {row["check"]: row for row in json.loads(folder.results("run.json"))["checks"]}
    assert "nobody published" in checks["model_tflops"]["detail"]
    # One that fails says how to go on with itself, and submits nothing: the run behind it must not start.
    failed = folder.run("50-check-375m.sbatch", **given, SLURM_JOB_ID="4712", FAKE_STATUS="9")
    assert failed.returncode == ERROR
    assert "50-check-375m.sbatch" in (folder.path / "results/4712/run.json").read_text()


def test_only_checks_have_settings_in_their_batch_file() -> None:
    files = jobs.render(plan_with(job("gpt3-175b", 16)))
    text = {path.name: file.content.decode() for path, file in files.items() if path.suffix == ".sbatch"}
    assert {name for name, lines in text.items() if "export SET_" in lines} == set(CHECKS)
    assert b"MODEL=gpt3-175b" in files[PurePosixPath("jobs/gpt3-175b/settings.env")].content
