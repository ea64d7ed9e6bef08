"""`DATA` selects what a training job learns from; files come from the first place that has them, and limits are waited
for."""

from __future__ import annotations

import gzip
import shutil
import subprocess
from pathlib import Path

import pytest

from generator.files import assets
from tests.jobs.running import FAKES, JobFolder, imported, job, job_folder, plan_with, settings_of, with_library
from tests.jobs.test_scripts import ERROR, GPT, MPT_LOG, PASS, training
from tests.jobs.training_logs import megatron_log


def gpt(tmp_path: Path, **settings: str) -> JobFolder:
    folder = imported(job_folder(tmp_path, plan_with(job("gpt3-175b", 16))))
    folder.environment |= GPT | {f"SET_{name}": value for name, value in settings.items()}
    return folder


def arguments_of(folder: JobFolder) -> list[str]:
    return Path(folder.environment["FAKE_LOG"] + ".torchrun").read_text(encoding="utf-8").splitlines()


def test_jobs_of_a_file_system_share_what_is_the_same() -> None:
    paths = {settings_of(plan_with(job(recipe, 2)))["STAGE_PATH"] for recipe in ("mpt", "gpt3-175b", "opt-175b")}
    assert paths == {"/data/training"}
    assert settings_of(plan_with(job("smoke")))["STAGE_PATH"].endswith("/smoke")


def test_mock_needs_no_data(tmp_path: Path) -> None:
    folder = gpt(tmp_path, DATA="mock")
    for step in ("20-download.sh", "30-concatenate.sh", "40-preprocess.sh"):
        ran = folder.run(step)
        assert (ran.returncode, "DATA is mock" in ran.stdout) == (PASS, True), ran.stderr
    assert not (tmp_path / "stage/data").exists()
    folder, ran = training(tmp_path / "run", "gpt3-175b", megatron_log(1500), 16, SET_DATA="mock")
    assert ran.returncode == PASS, ran.stdout + ran.stderr
    assert {"--mock-data", "NullTokenizer"} <= set(arguments_of(folder))


def test_a_corpus_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    for recipe, step in (("gpt3-175b", "20-download.sh"), ("mpt", "20-data.sh"), ("opt-175b", "run.sh")):
        folder = job_folder(tmp_path / recipe, plan_with(job(recipe)))
        ran = folder.run(step, SET_DATA="pile")
        assert ran.returncode == ERROR
        assert "DATA is 'pile'" in ran.stdout + ran.stderr


def test_a_second_corpus_goes_through_the_same_steps(tmp_path: Path) -> None:
    """C4 is compressed with gzip, and has other names."""
    place = tmp_path / "copy"
    place.mkdir()
    for number in range(3):
        with gzip.open(place / f"c4-train.{number:05d}-of-01024.json.gz", "wt") as file:
            file.write(f'{{"text": "document {number}"}}\n')
    folder = gpt(tmp_path, DATA="c4", DATASET_FILES="3", DATASET_URL=f"https://mirror.invalid/c4 {place}")
    # The mirror does not have the first file, so the local copy is used, and the mirror asked for nothing else.
    gone = "c4-train.00000-of-01024.json.gz"
    steps = [folder.run(step, FAKE_MISSING=gone) for step in ("20-download.sh", "30-concatenate.sh")]
    assert [ran.returncode for ran in steps] == [PASS, PASS], steps[0].stderr + steps[1].stderr
    assert "ODC-BY" in steps[0].stderr + steps[0].stdout
    assert len(Path(folder.environment["FAKE_LOG"] + ".curl").read_text(encoding="utf-8").splitlines()) == 1
    chunks = tmp_path / "stage/data/c4/chunks"
    assert "".join(path.read_text(encoding="utf-8") for path in sorted(chunks.glob("*.jsonl"))).count("document") == 3
    assert folder.run("40-preprocess.sh").returncode == PASS
    assert len(list((tmp_path / "stage/data/c4/preprocessed").glob("*.bin"))) == 2


def test_your_own_files_go_through_the_same_steps(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    # Its last line has no end, and an empty line is no document.
    (own / "a.jsonl").write_text('{"text": "plain"}\n \n{"text": "cut"}', encoding="utf-8")
    with gzip.open(own / "b.jsonl.gz", "wt") as file:
        file.write('{"text": "packed"}\n')
    (own / "notes.txt").write_text("no data", encoding="utf-8")
    folder = gpt(tmp_path, DATA="files", DATA_FILES=str(own))
    for step in ("20-download.sh", "30-concatenate.sh"):
        ran = folder.run(step)
        assert ran.returncode == PASS, ran.stdout + ran.stderr
    (chunk,) = (tmp_path / "stage/data").glob("files-own-*/chunks/*.jsonl")
    found = chunk.read_text(encoding="utf-8").splitlines()
    assert found == ['{"text": "plain"}', '{"text": "cut"}', '{"text": "packed"}']
    ran = folder.run("40-preprocess.sh", FAKE_BAD_DOCUMENT="KeyError: 'text'")
    assert (ran.returncode, f"{chunk} has no tokens: KeyError: 'text'. Every line" in ran.stderr) == (ERROR, True)
    assert list(chunk.parent.parent.glob("preprocessed/*.bin")) == []
    # With a file more, which is the first one, both chunks and their tokens are made anew, and only then.
    tool = Path(folder.environment["FAKE_LOG"] + ".python")
    assert folder.run("40-preprocess.sh").returncode == PASS
    calls = tool.read_text(encoding="utf-8").count("--output-prefix")
    for added in (0, 1):
        if added:
            (own / "0.jsonl").write_text('{"text": "later"}\n', encoding="utf-8")
        for step in ("20-download.sh", "30-concatenate.sh", "40-preprocess.sh"):
            assert folder.run(step).returncode == PASS
        assert ('{"text": "later"}' in chunk.read_text(encoding="utf-8").splitlines()) == bool(added)
        assert tool.read_text(encoding="utf-8").count("--output-prefix") == calls + 2 * added
    # Another folder of that name is another corpus.
    other = tmp_path / "other/own"
    other.mkdir(parents=True)
    (other / "c.jsonl").write_text('{"text": "other"}', encoding="utf-8")
    for step in ("20-download.sh", "30-concatenate.sh"):
        assert folder.run(step, SET_DATA_FILES=str(other)).returncode == PASS
    texts = [path.read_text(encoding="utf-8") for path in (tmp_path / "stage/data").glob("files-own-*/chunks/*.jsonl")]
    assert '{"text": "other"}\n' in texts


def test_one_file_is_tried_before_nodes_wait(tmp_path: Path) -> None:
    folder = gpt(tmp_path)
    ran = folder.run("20-download.sh", FAKE_MISSING="example_train_0.jsonl.zst")
    assert ran.returncode == ERROR
    assert "no source of slimpajama has chunk1/example_train_0.jsonl.zst" in ran.stderr + ran.stdout
    assert folder.log == ""


def test_a_broken_archive_ends_the_step(tmp_path: Path) -> None:
    folder = gpt(tmp_path, DATA="c4", DATASET_FILES="1")
    raw = tmp_path / "stage/data/c4/raw"
    raw.mkdir(parents=True)
    (raw / "c4-train.00000-of-01024.json.gz").write_text("cut off", encoding="utf-8")
    assert folder.run("30-concatenate.sh").returncode == ERROR
    assert list((tmp_path / "stage/data/c4/chunks").glob("*.lines")) == []


LIMITS = """
set -euo pipefail
. ./library.sh
. "${JOBS_LIB}/images.sh"
sleep() { echo "$1" >>waits; }
while IFS='|' read -r name limited header retries; do
    rm -f waits "${FAKE_LOG}.curl"
    status=0
    export FAKE_LIMITED="${limited}" FAKE_LIMIT_HEADER="${header}" RATE_LIMIT_WAITS="${retries}"
    download "https://huggingface.co/${name}" "${PWD}/${name}" >/dev/null 2>&1 || status=$?
    echo "${name} ${status} $(cat "${name}" 2>/dev/null || echo none) $(paste -s -d , waits 2>/dev/null)"
done
"""
LIMIT_CASES = {
    # name, refusals, header of the refusal, waits at most: status, content, seconds of each wait
    'a|0||100': "a 0 content of a ",
    'b|2|RateLimit: "resolvers";r=0;t=55|100': "b 0 content of b 56,56",
    "c|1|Retry-After: 7|100": "c 0 content of c 8",
    "d|1|retry-after: 4000|100": "d 0 content of d 300",
    "e|1|X-Other: 1|100": "e 0 content of e 61",
    # Far more often than an error would be tried again.
    'f|20|RateLimit: "resolvers";r=0;t=1|100': "f 0 content of f " + ",".join(["2"] * 20),
    "g|9|Retry-After: 1|3": "g 1 none 2,2,2",
}  # fmt: skip


def test_a_rate_limit_is_waited_for(tmp_path: Path) -> None:
    with_library(tmp_path)
    ran = subprocess.run(
        ["bash", "-c", LIMITS],
        input="".join(f"{case}\n" for case in LIMIT_CASES),
        cwd=tmp_path,
        env={"PATH": f"{FAKES}:/usr/bin:/bin", "FAKE_LOG": str(tmp_path / "log")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout.splitlines() == list(LIMIT_CASES.values()), ran.stderr
    assert sorted(path.name for path in tmp_path.iterdir() if "partial" in path.name) == []


def test_nodes_together_stay_below_what_the_source_allows(tmp_path: Path) -> None:
    """Two nodes: each waits before a file, so that both together keep to the number, and not for what is there."""
    (tmp_path / "bin").mkdir()
    sleep = tmp_path / "bin/sleep"
    sleep.write_text(f'#!/bin/sh\necho "$1" >>{tmp_path}/waits\n')
    sleep.chmod(0o755)
    folder = gpt(tmp_path, DOWNLOADS_PER_5_MINUTES="1800")
    folder.environment["PATH"] = f"{tmp_path}/bin:{folder.environment['PATH']}"
    raw = tmp_path / "stage/data/slimpajama/raw"
    raw.mkdir(parents=True)
    (raw / "example_train_chunk2_shard0.jsonl.zst").write_text("there")
    assert folder.run("20-download.sh").returncode == PASS
    # One of five was there before, and one is fetched before the nodes begin.
    assert (tmp_path / "waits").read_text().split() == ["0.333"] * 3
    (tmp_path / "waits").unlink()
    copy = tmp_path / "copy/chunk1"
    copy.mkdir(parents=True)
    (copy / "example_train_0.jsonl.zst").write_text("copied")
    shutil.rmtree(raw)
    own = {"SET_DATASET_URL": str(copy.parent), "SET_DATASET_FILES": "1", "SLURM_JOB_ID": "4712"}
    assert folder.run("20-download.sh", **own).returncode == PASS
    assert not (tmp_path / "waits").exists()


def test_the_limit_is_that_of_the_source() -> None:
    assert settings_of(plan_with(job("gpt3-175b", 16)))["DOWNLOADS_PER_5_MINUTES"] == "2700"


# ---------------------------------------------------------------- MPT


def test_mpt_takes_small_splits_and_your_files(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "a.jsonl").write_text('{"text": "x"}\n', encoding="utf-8")
    mine = {"DATA_FILES": str(own), "DATA_FILES_EVAL": str(own)}
    cases: dict[str, tuple[dict[str, str], str, tuple[str, str], str]] = {
        "c4-small": ({}, "mds-c4-2048", ("train_small", "val_small"), "--splits train_small val_small"),
        "files": (mine, "mds-files-own-*-2048", ("train", "val"), f"--path {own}"),
    }
    for name, (settings, folder_name, splits, expected) in cases.items():
        folder = imported(job_folder(tmp_path / name, plan_with(job("mpt"))))
        ran = folder.run("20-data.sh", SET_DATA=name, **{f"SET_{key}": value for key, value in settings.items()})
        assert ran.returncode == PASS, ran.stdout + ran.stderr
        (data,) = (tmp_path / name / "stage/data").glob(folder_name)
        assert {path.name for path in data.iterdir()} == set(splits)
        assert expected in Path(folder.environment["FAKE_LOG"] + ".python").read_text(encoding="utf-8")
    assert folder.run("20-data.sh", SET_DATA="files", SET_DATA_FILES=str(own), SLURM_JOB_ID="1").returncode == PASS
    empty = folder.run("20-data.sh", SET_DATA="files", SET_STAGE_PATH=str(tmp_path / "other"), SLURM_JOB_ID="2")
    assert empty.returncode == ERROR
    assert "set DATA_FILES" in empty.stdout + empty.stderr


def test_mpt_reads_from_a_container_and_writes_to_one(tmp_path: Path) -> None:
    blob = tmp_path / "blob"
    for split in ("train", "val"):
        (blob / "c4" / split).mkdir(parents=True)
        (blob / "c4" / split / "index.json").write_text("{}", encoding="utf-8")
    (tmp_path / "nvme").mkdir()
    folder, ran = training(
        tmp_path / "job", "mpt", MPT_LOG, 2,
        SET_DATA_REMOTE=f"{blob}/c4", SET_CHECKPOINT_DIR=f"{blob}/checkpoints", SET_NVME_MOUNT=str(tmp_path / "nvme"),
    )  # fmt: skip
    assert ran.returncode == PASS, ran.stdout + ran.stderr
    given = Path(folder.environment["FAKE_LOG"] + ".composer").read_text(encoding="utf-8").splitlines()
    assert f"variables.data_remote={blob}/c4" in given
    assert f"variables.data_local={tmp_path}/nvme/mds-4711" in given
    assert f"save_folder={blob}/checkpoints/mpt-30b-4711/checkpoints" in given
    mounts = next(line for line in folder.log.splitlines() if "composer" in line)
    assert f"{blob}/c4:{blob}/c4:ro" in mounts
    assert f"{blob}/checkpoints:{blob}/checkpoints" in mounts


def test_mpt_data_goes_to_the_container_once(tmp_path: Path) -> None:
    blob = tmp_path / "blob"
    folder = job_folder(tmp_path, plan_with(job("mpt")))
    remote = {"SET_DATA_REMOTE": f"{blob}/c4"}
    cut_off = blob / "c4/train"
    cut_off.mkdir(parents=True)
    (cut_off / "shard.00000.mds").write_text("cut off")
    local = tmp_path / "stage/data/mds-c4-2048"
    for split in ("train", "val"):
        (local / split).mkdir(parents=True)
        (local / split / "index.json").write_text("{}")
        (local / split / "shard.00000.mds").write_text("whole")
    for _ in range(2):
        ran = folder.run("20-data.sh", **remote)
        assert ran.returncode == PASS, ran.stdout + ran.stderr
    found = {str(path.relative_to(blob / "c4")): path.read_text() for path in (blob / "c4").glob("*/*")}
    names = ("index.json", "shard.00000.mds")
    wanted = zip(names, ("{}", "whole"), strict=True)
    assert found == {f"{split}/{name}": text for name, text in wanted for split in ("train", "val")}
    assert not Path(folder.environment["FAKE_LOG"] + ".python").exists()
    assert "copying" not in ran.stdout + ran.stderr


@pytest.mark.parametrize(("script", "setting"), [("20-data.sh", "DATA_REMOTE"), ("run.sh", "CHECKPOINT_DIR")])
def test_mpt_writes_to_no_container_that_is_not_mounted(tmp_path: Path, script: str, setting: str) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/mountpoint").write_text("#!/bin/sh\nexit 32\n")
    (tmp_path / "bin/mountpoint").chmod(0o755)
    folder = job_folder(tmp_path, plan_with(job("mpt")))
    folder.environment["PATH"] = f"{tmp_path}/bin:{folder.environment['PATH']}"
    if script == "run.sh":
        (tmp_path / "stage/data/mds-c4-2048/train").mkdir(parents=True)
        (tmp_path / "stage/data/mds-c4-2048/train/index.json").write_text("{}")
    ran = folder.run(script, **{f"SET_{setting}": f"{tmp_path}/blob/x"})
    assert ran.returncode == ERROR
    assert "is on no mounted file system" in ran.stdout + ran.stderr
    assert not (tmp_path / "blob").exists()


def test_mpt_without_its_data_does_not_start(tmp_path: Path) -> None:
    folder = job_folder(tmp_path, plan_with(job("mpt")))
    ran = folder.run()
    assert ran.returncode == ERROR
    assert "run the step that prepares the data first" in ran.stdout + ran.stderr


@pytest.mark.parametrize("recipe", ["gpt3-175b", "mpt"])
def test_licences_are_named_on_the_page(recipe: str) -> None:
    page = (assets.folder("recipes") / recipe / "README.md").read_text(encoding="utf-8")
    assert "ODC-BY" in page
