"""Job folders: what is written, how it is quoted, and which published figure is chosen."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path, PurePosixPath

import pytest
from syrupy.assertion import SnapshotAssertion

from generator.definition.model.definition import Job
from generator.files import assets
from generator.files.file import Files
from generator.plan.job_figures import expectations
from generator.plan.job_settings import known_settings
from generator.recipes import Recipe, recipe, recipe_names
from generator.render import jobs
from tests.bed import parts
from tests.bed.scripts.shellchecked import Script, findings
from tests.jobs.running import job, job_folder, plan_with, settings_of


def recipe_of(name: str) -> Recipe:
    found = recipe(name)
    assert found is not None
    return found


@pytest.mark.parametrize("name", recipe_names())
def test_snapshot(name: str, snapshot: SnapshotAssertion) -> None:
    files = jobs.render(plan_with(job(name)))
    generated = [path for path in sorted(files) if path.suffix in (".env", ".sbatch")]
    assert "\n".join(f"==== {path}\n{files[path].content.decode()}" for path in generated) == snapshot
    listed = [f"{path}{' *' if files[path].executable else ''}" for path in sorted(files)]
    # The name of a library changes with each of its files.
    assert [re.sub("lib/[0-9a-f]{16}/", "lib/DIGEST/", path) for path in listed] == snapshot(name="files")


LIBRARY = sorted((assets.folder("recipes") / "lib").glob("*.sh"))
# Source paths in the scripts are those of the repository, where a script is as deep as in a job's folder.
FROM_THE_ROOT = "--source-path=SCRIPTDIR/../.."


def script_of(path: str, text: str) -> Script:
    """With every file of the repository that its directives name, and theirs."""
    # The directive names what it sources.
    sources = {"library.sh": '. "${JOBS_LIB}/common.sh"\n'} if ". ./library.sh" in text else {}
    texts = [text]
    while texts:
        for named in re.findall(r"# shellcheck source=(\S+\.sh)", texts.pop()):
            if named not in sources:
                sources[named] = (assets.root() / named).read_text()
                texts.append(sources[named])
    return Script(path, text, sources)


@pytest.mark.parametrize("name", recipe_names())
def test_shellcheck_accepts_the_folder(name: str, tmp_path: Path) -> None:
    """Without its copies of the library, which is followed here and has its own test."""
    library = [path.read_bytes() for path in LIBRARY]
    scripts = {
        str(path): file.content
        for path, file in jobs.render(plan_with(job(name))).items()
        if path.suffix in (".sh", ".sbatch") and file.content not in library
    }
    assert scripts
    for content in scripts.values():
        assert subprocess.run(["bash", "-n"], input=content, check=False).returncode == 0
    checked = [script_of(path, content.decode()) for path, content in scripts.items()]
    assert any(script.sources for script in checked)
    assert findings(checked, tmp_path, [FROM_THE_ROOT]) == []


def test_shellcheck_accepts_the_library(tmp_path: Path) -> None:
    for path in LIBRARY:
        assert subprocess.run(["bash", "-n", str(path)], check=False).returncode == 0
    assert LIBRARY
    checked = [script_of(str(path.relative_to(assets.root())), path.read_text()) for path in LIBRARY]
    assert findings(checked, tmp_path, [FROM_THE_ROOT]) == []


def test_shellcheck_finds_what_is_wrong_with_a_script_that_sources_the_library(tmp_path: Path) -> None:
    text = (assets.folder("recipes") / "smoke" / "run.sh").read_text() + 'die gone\necho "${spare}"\n'
    found = findings([script_of("jobs/smoke/run.sh", text)], tmp_path, [FROM_THE_ROOT])
    assert {comment["code"] for comment in found} >= {2154, 2317}
    assert {Path(comment["file"]).name for comment in found} == {"run.sh"}


def test_scripts_are_copied_as_they_stand() -> None:
    files = jobs.render(plan_with(job("nccl-allreduce")))
    source = assets.folder("recipes")
    folder = PurePosixPath("jobs/nccl-allreduce")
    assert files[folder / "run.sh"].content == (source / "nccl-allreduce/run.sh").read_bytes()
    (library,) = {path.parent for path in files if path.parent.parent == PurePosixPath("jobs/lib")}
    assert files[library / "common.sh"].content == (source / "lib/common.sh").read_bytes()
    assert files[folder / "run.sh"].executable
    assert not files[library / "judge.sh"].executable
    assert folder / "recipe.json" not in files


def library_of(files: Files) -> dict[str, bytes]:
    return {str(path): file.content for path, file in files.items() if path.is_relative_to("jobs/lib")}


def test_jobs_share_one_library_and_another_one_has_another_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What jobs that run have read stays as it is when a later build is copied beside it."""
    plan = parts.minimal()
    plan = parts.with_jobs(plan, *(Job(recipe="smoke", name=name) for name in ("one", "other")))
    before = library_of(jobs.render(plan))
    assert before == library_of(jobs.render(plan))
    assert len({PurePosixPath(path).parent for path in before}) == 1
    assert {PurePosixPath(path).name for path in before} >= {"common.sh", "environment.sh", "records.sh"}
    changed = tmp_path / "recipes"
    shutil.copytree(assets.folder("recipes"), changed)
    with (changed / "lib/records.sh").open("a") as file:
        file.write("# another release\n")
    monkeypatch.setattr(assets, "folder", lambda _: changed)
    after = library_of(jobs.render(plan))
    assert not before.keys() & after.keys()
    assert len(before) == len(after)


def test_every_script_finds_the_library_it_was_built_with(tmp_path: Path) -> None:
    """Beside the folders of the jobs, in the folder itself as a run has it, or nowhere, which it says."""
    folder = job_folder(tmp_path, plan_with(job("smoke")))
    show = ["bash", "-c", 'set -euo pipefail; . ./library.sh; echo "${JOBS_LIB}"']

    def said(**environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            show, cwd=folder.path, env=folder.environment | environment, capture_output=True, text=True, check=False
        )

    library = folder.library
    assert said().stdout == f"{library}\n"
    began_with = tmp_path / "began-with"
    shutil.copytree(library, began_with)
    assert said(JOBS_LIB=str(began_with)).stdout == f"{began_with}\n"
    own = folder.path / "lib" / library.name
    shutil.move(library, own)
    assert said().stdout == f"{own}\n"
    shutil.rmtree(own)
    done = said()
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"{library} is missing: copy jobs/lib of the deployment folder beside the folder of the job\n"


def test_a_job_that_another_one_submits_has_the_library_of_its_own_folder(tmp_path: Path) -> None:
    folder = job_folder(tmp_path, plan_with(job("smoke")))
    (folder.path / "run.sh").write_text('#!/bin/sh\necho "${JOBS_LIB-none}"\n')
    done = folder.run("job.sbatch", JOBS_LIB="/gone", SLURM_SUBMIT_DIR=str(folder.path))
    assert (done.stdout, done.stderr) == ("none\n", "")


def test_settings_survive_the_shell(tmp_path: Path) -> None:
    value = "a 'b' \"c\" $HOME `id` \\ ; *\nnext"
    files = jobs.render(plan_with(job("smoke", EXTRA=value)))
    path = tmp_path / "settings.env"
    path.write_bytes(files[PurePosixPath("jobs/smoke/settings.env")].content)
    command = f'. "{path}"; printf %s "$EXTRA"'
    assert subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True).stdout == value


def test_what_the_definition_gives_decides() -> None:
    settings = settings_of(plan_with(job("nccl-allreduce", ITERATIONS=5, ALLOW_WARN=True, MESSAGE_SIZE="2G")))
    assert (settings["ITERATIONS"], settings["ALLOW_WARN"], settings["MESSAGE_SIZE"]) == ("5", "1", "2G")


@pytest.mark.parametrize("name", recipe_names())
def test_a_given_value_that_equals_a_default_stays(name: str) -> None:
    """So that a value which the VM size would decide can be set back to the recipe's own."""
    found = recipe(name)
    assert found is not None
    given = dict(found.default_settings)
    settings = settings_of(plan_with(job(name, **given)))
    assert {key: settings[key] for key in given} == given


def test_the_message_size_follows_the_published_figure_unless_it_is_given() -> None:
    assert settings_of(plan_with(job("nccl-allreduce")))["MESSAGE_SIZE"] == "8G"
    assert dict(recipe_of("nccl-allreduce").default_settings)["MESSAGE_SIZE"] == "16G"
    assert settings_of(plan_with(job("nccl-allreduce", MESSAGE_SIZE="16G")))["MESSAGE_SIZE"] == "16G"


def test_what_divides_a_node_stands_in_the_header_too() -> None:
    plan = plan_with(job("nccl-allreduce", GPUS_PER_NODE=4))
    settings, options = settings_of(plan), dict(plan.jobs[0].steps[-1].options)
    assert (settings["GPUS_PER_NODE"], settings["TASKS_PER_NODE"], settings["CPUS_PER_TASK"]) == ("4", "4", "24")
    assert (options["gpus-per-node"], options["ntasks-per-node"], options["cpus-per-task"]) == (4, 4, 24)


def test_numbers_of_a_model_can_be_given() -> None:
    """Parallel layout, batch and checkpoints follow from them."""
    usual, smaller = plan_with(job("opt-175b", 16)), plan_with(job("opt-175b", 16, NUM_LAYERS=48))
    assert settings_of(smaller)["NUM_LAYERS"] == "48"
    assert settings_of(smaller)["MODEL"] == "opt-175b"
    before, after = usual.jobs[0].checkpoint, smaller.jobs[0].checkpoint
    assert before is not None
    assert after is not None
    assert 0.5 < after.checkpoint_bytes / before.checkpoint_bytes < 0.52


@pytest.mark.parametrize("name", recipe_names())
def test_all_settings_of_a_job_are_known(name: str) -> None:
    """DATA_DIR is read by the plan alone; a message size stands where a figure was published for one."""
    known = set(known_settings(recipe_of(name)))
    assert known - {"DATA_DIR"} == set(settings_of(plan_with(job(name))))


def test_options_that_do_not_apply_are_left_out() -> None:
    step = plan_with(job("smoke", 1)).jobs[0].steps[-1]
    assert jobs.sbatch_lines(step.options) == [
        "#SBATCH --job-name=smoke", "#SBATCH --partition=hpc", "#SBATCH --nodes=1", "#SBATCH --ntasks-per-node=1",
        "#SBATCH --time=00:45:00", "#SBATCH --output=%x_%j.out",
    ]  # fmt: skip
    assert jobs.sbatch_lines((("exclusive", True), ("mem", 0))) == ["#SBATCH --exclusive", "#SBATCH --mem=0"]


def test_preparation_runs_on_nodes_without_gpus() -> None:
    files = jobs.render(plan_with(job("gpt3-175b", 16)))
    text = files[PurePosixPath("jobs/gpt3-175b/20-download.sbatch")].content.decode()
    assert "#SBATCH --partition=htc" in text
    assert "gpus-per-node" not in text
    only_gpus = plan_with(job("gpt3-175b", 16), parts.node_array("hpc", parts.A100, max_nodes=16))
    text = jobs.render(only_gpus)[PurePosixPath("jobs/gpt3-175b/20-download.sbatch")].content.decode()
    assert "#SBATCH --partition=hpc" in text


def test_exclusive_jobs_get_all_cpus() -> None:
    files = jobs.render(plan_with(job("node-health")))
    text = files[PurePosixPath("jobs/node-health/job.sbatch")].content.decode()
    for line in ("#SBATCH --exclusive", "#SBATCH --mem=0", "#SBATCH --cpus-per-task=96", "#SBATCH --time="):
        assert line in text


def test_a_model_too_large_for_the_nodes_is_replaced() -> None:
    for nodes, model in ((2, "opt-30b"), (16, "opt-175b")):
        plan = plan_with(job("opt-175b", nodes))
        settings = settings_of(plan)
        assert settings["MODEL"] == plan.jobs[0].model
        assert settings["MODEL"] == model or nodes == 2
        gpus = int(settings["TENSOR_PARALLEL"]) * int(settings["PIPELINE_PARALLEL"])
        assert nodes * 8 % gpus == 0
        assert int(settings["GLOBAL_BATCH"]) % (nodes * 8 // gpus) == 0


def test_spare_nodes_are_within_the_partition() -> None:
    plan = plan_with(Job(recipe="mpt", partition="hpc", settings={"SPARE_NODES": 2}))
    assert (plan.jobs[0].nodes, dict(plan.jobs[0].steps[-1].options)["nodes"]) == (14, 16)


def test_a_model_that_cannot_fit_leaves_the_layout_empty() -> None:
    assert settings_of(plan_with(job("opt-175b", 1, MODEL="opt-175b")))["TENSOR_PARALLEL"] == ""


def test_expectations_are_empty_where_nobody_published_them() -> None:
    row = expectations(parts.hardware("Standard_Unknown", vcpus=None))
    assert set(row.values()) == {""}
    assert expectations(parts.A100)["EXPECT_GPUS"] == "8"
