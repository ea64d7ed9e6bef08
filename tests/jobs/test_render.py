"""Job folders: what is written, how it is quoted, and which published figure is chosen."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest
from syrupy.assertion import SnapshotAssertion

from generator import catalog
from generator.files import assets
from generator.plan.types import JobPlan
from generator.recipes import recipe, recipe_names
from generator.recipes.settings import baseline, expectations, job_settings
from generator.render import jobs
from tests import plans
from tests.jobs.running import job, plan_with

SHELLCHECK = Path(sys.executable).parent / "shellcheck"


@pytest.mark.parametrize("name", recipe_names())
def test_snapshot(name: str, snapshot: SnapshotAssertion) -> None:
    files = jobs.render(plan_with(job(name)))
    generated = [path for path in sorted(files) if path.suffix in (".env", ".sbatch")]
    assert "\n".join(f"==== {path}\n{files[path].content.decode()}" for path in generated) == snapshot
    assert [f"{path}{' *' if files[path].executable else ''}" for path in sorted(files)] == snapshot(name="files")


@pytest.mark.parametrize("name", recipe_names())
def test_shellcheck_accepts_the_folder(name: str, tmp_path: Path) -> None:
    files = jobs.render(plan_with(job(name)))
    scripts = []
    for path, file in files.items():
        target = tmp_path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content)
        if path.suffix in (".sh", ".sbatch"):
            scripts.append(str(target))
            assert subprocess.run(["bash", "-n", str(target)], check=False).returncode == 0
    if SHELLCHECK.is_file():
        # Source paths in the scripts are those of the repository.
        result = subprocess.run(
            [str(SHELLCHECK), "-x", *scripts], capture_output=True, text=True, check=False, cwd=assets.root()
        )
        assert result.returncode == 0, result.stdout


def test_scripts_are_copied_as_they_stand() -> None:
    files = jobs.render(plan_with(job("nccl-allreduce")))
    source = assets.folder("recipes")
    folder = PurePosixPath("jobs/nccl-allreduce")
    assert files[folder / "run.sh"].content == (source / "nccl-allreduce/run.sh").read_bytes()
    assert files[folder / "lib/common.sh"].content == (source / "lib/common.sh").read_bytes()
    assert files[folder / "run.sh"].executable
    assert not files[folder / "parse.sh"].executable
    assert folder / "recipe.json" not in files


def test_settings_survive_the_shell(tmp_path: Path) -> None:
    value = "a 'b' \"c\" $HOME `id` \\ ; *\nnext"
    files = jobs.render(plan_with(job("smoke", EXTRA=value)))
    path = tmp_path / "settings.env"
    path.write_bytes(files[PurePosixPath("jobs/smoke/settings.env")].content)
    command = f'. "{path}"; printf %s "$EXTRA"'
    assert subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True).stdout == value


def test_a_setting_of_the_plan_decides() -> None:
    plan = plan_with(job("nccl-allreduce", ITERATIONS="5", ALLOW_WARN="true", MESSAGE_SIZE="16G"))
    array, found = plan.slurm.node_arrays[0], recipe("nccl-allreduce")
    assert found is not None
    settings = job_settings(plan, plan.jobs[0], array, found)
    assert settings["ITERATIONS"] == "5"
    assert settings["ALLOW_WARN"] == "1"


def test_copied_defaults_do_not_hide_what_the_size_decides() -> None:
    found = recipe("nccl-allreduce")
    assert found is not None
    plan = plan_with(job("nccl-allreduce", **dict(found.default_settings)))
    settings = job_settings(plan, plan.jobs[0], plan.slurm.node_arrays[0], found)
    assert settings["MESSAGE_SIZE"] == "8G"


def test_an_unknown_recipe_is_an_error() -> None:
    with pytest.raises(LookupError, match="no-such-recipe"):
        jobs.render(plan_with(JobPlan("x", "training", "no-such-recipe", "hpc", 1, (), None)))


def test_options_that_do_not_apply_are_left_out() -> None:
    assert jobs.sbatch_lines({"nodes": 2, "exclusive": True, "gpus-per-node": None, "mem": 0, "hold": False}) == [
        "#SBATCH --nodes=2", "#SBATCH --exclusive", "#SBATCH --mem=0",
    ]  # fmt: skip


def test_preparation_runs_on_nodes_without_gpus() -> None:
    files = jobs.render(plan_with(job("gpt3-175b", 16)))
    text = files[PurePosixPath("jobs/gpt3-175b/20-download.sbatch")].content.decode()
    assert "#SBATCH --partition=htc" in text
    assert "gpus-per-node" not in text
    only_gpus = plan_with(job("gpt3-175b", 16), plans.node_array("hpc", plans.A100, max_nodes=16))
    text = jobs.render(only_gpus)[PurePosixPath("jobs/gpt3-175b/20-download.sbatch")].content.decode()
    assert "#SBATCH --partition=hpc" in text


def test_exclusive_jobs_get_all_cpus() -> None:
    files = jobs.render(plan_with(job("node-health")))
    text = files[PurePosixPath("jobs/node-health/job.sbatch")].content.decode()
    for line in ("#SBATCH --exclusive", "#SBATCH --mem=0", "#SBATCH --cpus-per-task=96", "#SBATCH --time="):
        assert line in text


def test_a_model_too_large_for_the_nodes_is_replaced() -> None:
    found = recipe("opt-175b")
    assert found is not None
    for nodes, model in ((2, "opt-30b"), (16, "opt-175b")):
        plan = plan_with(job("opt-175b", nodes))
        settings = job_settings(plan, plan.jobs[0], plan.slurm.node_arrays[0], found)
        assert settings["MODEL"] == model or nodes == 2
        gpus = int(settings["TENSOR_PARALLEL"]) * int(settings["PIPELINE_PARALLEL"])
        assert nodes * 8 % gpus == 0
        assert int(settings["GLOBAL_BATCH"]) % (nodes * 8 // gpus) == 0


def test_a_model_that_cannot_fit_leaves_the_layout_empty() -> None:
    found = recipe("opt-175b")
    assert found is not None
    plan = plan_with(job("opt-175b", 1, MODEL="opt-175b"))
    settings = job_settings(plan, plan.jobs[0], plan.slurm.node_arrays[0], found)
    assert settings["TENSOR_PARALLEL"] == ""


# ---------------------------------------------------------------- baselines


def test_a_floor_for_two_or_more_nodes_holds_for_more() -> None:
    for nodes in (2, 5, 16):
        row = baseline("Standard_ND96amsr_A100_v4", nodes)
        assert (row["BASELINE_WARN"], row["BASELINE_FAIL"], row["MESSAGE_SIZE"]) == ("185", "185", "8G")


def test_a_row_of_another_node_count_does_not_apply() -> None:
    assert baseline("Standard_ND96isr_H100_v5", 8)["BASELINE_ALGORITHM"] == "collnet"
    assert baseline("Standard_ND96isr_H100_v5", 4)["BASELINE_METRIC"] == ""


def test_one_node_is_judged_by_the_single_node_row() -> None:
    row = baseline("Standard_ND96amsr_A100_v4", 1)
    assert (row["BASELINE_FAIL"], row["BASELINE_MESSAGE_SIZE"], row["BASELINE_METRIC"]) == ("228", "16G", "avg busbw")


@pytest.mark.parametrize(
    "size", [name for name in catalog.vm_size_names() if catalog.vm_size(name).nccl or catalog.vm_size(name).gpu_count]
)
@pytest.mark.parametrize("nodes", [1, 2, 8])
def test_every_size_has_a_complete_or_an_empty_baseline(size: str, nodes: int) -> None:
    row = baseline(size, nodes)
    assert bool(row["BASELINE_METRIC"]) == bool(row["BASELINE_WARN"] or row["BASELINE_FAIL"])
    assert bool(row["BASELINE_METRIC"]) == bool(row["BASELINE_SOURCE"])


def test_expectations_are_empty_where_nobody_published_them() -> None:
    row = expectations(plans.hardware("Standard_Unknown", vcpus=None))
    assert set(row.values()) == {""}
    assert expectations(plans.A100)["EXPECT_GPUS"] == "8"
