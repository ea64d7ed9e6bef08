"""The scripts of the recipes, run with fakes: the exit status is the verdict, and nothing passes by accident."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from generator.files import assets
from tests.jobs.running import (
    AZNHC_GOOD,
    SOURCED,
    JobFolder,
    a100_devices,
    imported,
    job,
    job_folder,
    plan_with,
    write_aznhc,
)
from tests.jobs.training_logs import composer_log, megatron_line, megatron_log

PASS, FAIL, ERROR, WARN, NO_BASELINE = 0, 1, 2, 3, 4


def common(expression: str) -> str:
    command = ["bash", "-c", f"{SOURCED}{expression}"]
    return subprocess.run(
        command, cwd=assets.folder("recipes"), capture_output=True, text=True, check=True
    ).stdout.strip()


# ---------------------------------------------------------------- verdicts


@pytest.mark.parametrize(
    ("value", "warn", "fail", "verdict"),
    [
        ("190", "185", "170", "pass"),
        ("9.5", "", "23.0", "fail"),  # as text 9.5 is above 23.0
        ("99.0", "", "228.0", "fail"),
        ("1e3", "", "228", "pass"),
        ("180", "185", "170", "warn"),
        ("185", "185", "185", "pass"),
        ("184.99", "185", "185", "fail"),
        ("0", "", "1", "fail"),
        ("-200", "", "1", "fail"),
        ("nan", "", "1", "fail"),
        ("inf", "", "1", "fail"),
        ("", "", "1", "fail"),
        ("200 GB/s", "", "1", "fail"),
        ("200", "", "", "no_baseline"),
        ("nan", "", "", "fail"),
    ],
)
def test_judge(value: str, warn: str, fail: str, verdict: str) -> None:
    assert common(f"judge '{value}' '{warn}' '{fail}'") == verdict


@pytest.mark.parametrize(
    ("verdicts", "result"),
    [
        ("pass pass", "pass"), ("pass warn", "warn"), ("warn no_baseline", "no_baseline"), ("pass error", "error"),
        ("error fail", "fail"), ("pass nonsense", "error"), ("", "error"),
    ],
)  # fmt: skip
def test_worst(verdicts: str, result: str) -> None:
    assert common(f"worst {verdicts}") == result


def test_warnings_pass_only_when_allowed() -> None:
    assert common("exit_status warn") == "3"
    assert common("ALLOW_WARN=1; exit_status warn") == "0"
    assert common("exit_status nonsense") == "2"


# ---------------------------------------------------------------- smoke


def test_smoke_writes_nothing_into_the_root_of_the_shared_file_system(tmp_path: Path) -> None:
    """It belongs to root; here not even root can write."""
    folder = job_folder(tmp_path, plan_with(job("smoke")))
    assert folder.run(SET_SHARED_DIR="/proc").returncode == PASS


def test_smoke_fails_without_the_shared_file_system(tmp_path: Path) -> None:
    folder = job_folder(tmp_path, plan_with(job("smoke")))
    assert folder.run(SET_SHARED_DIR=str(tmp_path / "gone")).returncode == FAIL


def test_smoke_fails_for_a_node_that_does_not_answer(tmp_path: Path) -> None:
    folder = job_folder(tmp_path, plan_with(job("smoke")))
    assert folder.run(FAKE_DEAD="hpc-2").returncode == FAIL
    checks = json.loads(folder.results("run.json"))["checks"]
    assert {each["nodes"][0]: each["verdict"] for each in checks} == {"hpc-1": "pass", "hpc-2": "fail"}


def test_results_of_an_earlier_run_are_never_read(tmp_path: Path) -> None:
    folder = job_folder(tmp_path, plan_with(job("smoke")))
    assert folder.run().returncode == PASS
    assert folder.run().returncode == ERROR


# ---------------------------------------------------------------- node health


def health(
    tmp_path: Path, aznhc: str | None = AZNHC_GOOD, nodes: tuple[str, ...] = ("hpc-2",), /, **environment: str
) -> tuple[JobFolder, int]:
    """The job on nodes that are all alike, so one of them shows what a fault leads to."""
    folder = job_folder(tmp_path, plan_with(job("node-health", len(nodes))), nodes)
    folder.environment |= a100_devices(tmp_path)
    folder.environment["SET_AZNHC_DIR"] = str(tmp_path / "aznhc")
    if aznhc is not None:
        write_aznhc(tmp_path / "aznhc", aznhc)
    return folder, folder.run(**environment).returncode


def test_health_passes(tmp_path: Path) -> None:
    folder, status = health(tmp_path, AZNHC_GOOD, ("hpc-1", "hpc-2"))
    assert status == PASS, folder.results("run.json")
    rows = json.loads(folder.results("run.json"))["checks"]
    checks = {row["check"]: row["verdict"] for row in rows if row["nodes"] == ["hpc-1"]}
    assert set(checks) == {"vm_size", "cpus", "memory", "gpus", "row_remaps", "nvme_disks", "ib_ports_active", "aznhc"}


@pytest.mark.parametrize(
    ("aznhc", "status"),
    [
        ("standard_nd128isr_gb300_v6 is currently not supported\n", FAIL),
        ("ERROR:  nhc:  Health check failed\nHealth checks completed with exit code: 1.\n", FAIL),
        ("SUCCESS:  nhc:  Health check passed\n", FAIL),
        ("WARNING:  nhc:  near\nHealth checks completed with exit code: 0.\n", WARN),
        ("", FAIL),
        (None, ERROR),
    ],
)
def test_health_reads_the_image_checks_fail_closed(tmp_path: Path, aznhc: str | None, status: int) -> None:
    assert health(tmp_path, aznhc)[1] == status


@pytest.mark.parametrize(
    "environment",
    [
        {"FAKE_GPUS": "7"},
        {"FAKE_REMAPS": "Yes, No"},
        {"FAKE_VM_SIZE": "Standard_D4as_v5"},
        {"SET_EXPECT_NVME": "9"},
        {"SET_EXPECT_IB_PORTS": "9"},
        {"SET_EXPECT_IB_GBPS": "400"},
        {"SET_EXPECT_MEMORY_KIB": "2857830712"},
    ],
)  # fmt: skip
def test_health_fails_for_what_is_missing(tmp_path: Path, environment: dict[str, str]) -> None:
    folder, status = health(tmp_path, **environment)
    assert status == FAIL
    assert folder.results("failed_nodes.txt").split() == ["hpc-2"]


def test_health_fails_for_the_one_node_that_is_dead(tmp_path: Path) -> None:
    folder, status = health(tmp_path, AZNHC_GOOD, ("hpc-1", "hpc-2"), FAKE_DEAD="hpc-2")
    assert status == FAIL
    assert folder.results("failed_nodes.txt").split() == ["hpc-2"]


def test_health_without_sudo_is_an_error(tmp_path: Path) -> None:
    assert health(tmp_path, FAKE_NO_SUDO="1")[1] == ERROR


def test_image_checks_can_be_left_out(tmp_path: Path) -> None:
    assert health(tmp_path, None, SET_AZNHC="skip")[1] == PASS


# ---------------------------------------------------------------- training


def iteration(number: int, of: int = 100, loss: str = "7.123456E+00", nan: int = 0) -> str:
    return megatron_line(number, of, loss, 1234.5, nan=nan)


def training(
    tmp_path: Path, recipe: str, output: str, nodes: int = 2, /, **environment: str
) -> tuple[JobFolder, subprocess.CompletedProcess[str]]:
    names = tuple(f"hpc-{number + 1}" for number in range(nodes))
    folder = job_folder(tmp_path, plan_with(job(recipe, nodes)), names)
    (tmp_path / "output").write_text(output)
    assert folder.run("10-setup.sh").returncode in (0, 2)
    for split in ("train", "val"):
        (tmp_path / "stage/data/mds-c4-2048" / split).mkdir(parents=True)
        (tmp_path / "stage/data/mds-c4-2048" / split / "index.json").write_text("{}")
    return folder, folder.run(FAKE_OUTPUT=str(tmp_path / "output"), **environment)


@pytest.mark.parametrize(
    ("output", "environment", "status"),
    [
        (megatron_log(100), {}, PASS),
        (megatron_log(100, until=90), {}, FAIL),
        (megatron_log(100, until=90) + iteration(100, loss="nan"), {}, FAIL),
        (megatron_log(100, until=90) + iteration(100, loss="1.0E+00", nan=1), {}, FAIL),
        ("", {}, ERROR),
        (megatron_log(100), {"FAKE_STATUS": "9"}, ERROR),
        (iteration(100), {"SET_TENSOR_PARALLEL": "3"}, ERROR),
        (iteration(100), {"SET_TENSOR_PARALLEL": ""}, ERROR),
        (iteration(100), {"SET_GLOBAL_BATCH": "7", "SET_TENSOR_PARALLEL": "4", "SET_PIPELINE_PARALLEL": "1"}, ERROR),
    ],
)
def test_opt_verdict(tmp_path: Path, output: str, environment: dict[str, str], status: int) -> None:
    _, result = training(tmp_path, "opt-175b", output, **environment)
    assert result.returncode == status, result.stdout + result.stderr


def test_opt_mounts_what_it_writes_and_names_its_run(tmp_path: Path) -> None:
    folder, result = training(tmp_path, "opt-175b", megatron_log(100), SET_SAVE_INTERVAL="50")
    assert result.returncode == PASS
    step = next(line for line in folder.log.splitlines() if "torchrun" in line)
    assert "--cpus-per-task=96" in step
    arguments = Path(folder.environment["FAKE_LOG"] + ".torchrun").read_text().splitlines()
    save = arguments[arguments.index("--save") + 1]
    assert save.startswith(str(tmp_path / "stage"))
    assert save.endswith("-4711/checkpoints")
    assert "--mock-data" in arguments
    port = int(arguments[arguments.index("--master_port") + 1])
    assert 20000 <= port < 32768


def test_a_run_is_continued_only_on_request(tmp_path: Path) -> None:
    folder, first = training(tmp_path, "opt-175b", megatron_log(100), SET_RUN_NAME="mine")
    assert first.returncode == PASS
    again = folder.run(FAKE_OUTPUT=str(tmp_path / "output"), SET_RUN_NAME="mine", SLURM_JOB_ID="4712")
    assert again.returncode == ERROR
    resumed = folder.run(FAKE_OUTPUT=str(tmp_path / "output"), SET_RUN_NAME="mine", SET_RESUME="1", SLURM_JOB_ID="4713")
    assert resumed.returncode == PASS


def whole_checkpoint(checkpoints: Path, number: int) -> Path:
    """What Megatron-LM leaves of a checkpoint that all ranks have written, as far as a recipe looks at it."""
    folder = checkpoints / f"iter_{number:07d}"
    folder.mkdir(parents=True)
    for name in ("metadata.json", ".metadata"):
        (folder / name).write_text("{}")
    return folder


def test_old_checkpoints_are_pruned_but_never_the_latest(tmp_path: Path) -> None:
    checkpoints = tmp_path / "stage/runs/mine/checkpoints"
    for number in (10, 20, 30, 40, 50):
        whole_checkpoint(checkpoints, number)
    (checkpoints / "latest_checkpointed_iteration.txt").write_text("40")
    _, result = training(
        tmp_path,
        "opt-175b",
        megatron_log(100),
        SET_RUN_NAME="mine",
        SET_RESUME="1",
        SET_SAVE_INTERVAL="10",
        SET_KEEP_CHECKPOINTS="1",
    )
    assert result.returncode == PASS
    assert sorted(path.name for path in checkpoints.iterdir() if path.is_dir()) == ["iter_0000040", "iter_0000050"]


# ---------------------------------------------------------------- GPT-3 data

GPT = {
    "SET_DATASET_LAST_INDEX": "2 1",
    "SET_DATASET_FILES": "5",
    "SET_DATASET_FILES_PER_CHUNK": "2",
    "SET_DOWNLOADS_PER_NODE": "2",
    "SET_DOWNLOADS_PER_5_MINUTES": "0",
}


def gpt(tmp_path: Path) -> JobFolder:
    folder = job_folder(tmp_path, plan_with(job("gpt3-175b", 16)))
    folder.environment |= GPT
    return folder


def test_download_is_complete_or_fails_and_resumes(tmp_path: Path) -> None:
    folder = gpt(tmp_path)
    missing = folder.run("20-download.sh", FAKE_MISSING="example_train_1.jsonl.zst")
    assert missing.returncode == ERROR
    assert "3 of 5 files" in missing.stdout + missing.stderr
    assert folder.run("20-download.sh", SLURM_JOB_ID="4712").returncode == PASS
    files = sorted(path.name for path in (tmp_path / "stage/data/slimpajama/raw").glob("*.zst"))
    assert len(files) == 5
    assert files[0] == "example_train_chunk1_shard0.jsonl.zst"
    assert not list((tmp_path / "stage/data/slimpajama/raw").glob("*.partial"))


def test_a_token_stays_off_the_command_line(tmp_path: Path) -> None:
    folder = gpt(tmp_path)
    assert folder.run("20-download.sh", HF_TOKEN="hf_secret").returncode == PASS
    assert "hf_secret" not in Path(folder.environment["FAKE_LOG"] + ".curl").read_text()


def test_concatenation_counts_filters_and_resumes(tmp_path: Path) -> None:
    folder = gpt(tmp_path)
    raw = tmp_path / "stage/data/slimpajama/raw"
    raw.mkdir(parents=True)
    assert folder.run("30-concatenate.sh").returncode == ERROR
    for name in (f"chunk{chunk}_shard{shard}" for chunk, last in ((1, 2), (2, 1)) for shard in range(last + 1)):
        lines = [{"text": name, "meta": {"redpajama_set_name": source}} for source in ("RedPajamaC4", "RedPajamaBook")]
        (raw / f"example_train_{name}.jsonl.zst").write_text("".join(json.dumps(line) + "\n" for line in lines))
    chunks = tmp_path / "stage/data/slimpajama/chunks"
    chunks.mkdir(parents=True)
    (chunks / "train_chunk_000.jsonl").write_text("cut off")  # an interrupted run: no line count beside it
    assert folder.run("30-concatenate.sh").returncode == PASS
    text = "".join(path.read_text() for path in sorted(chunks.glob("*.jsonl")))
    assert text.count("RedPajamaC4") == 5
    assert "RedPajamaBook" not in text
    assert "cut off" not in text
    assert [path.read_text().strip() for path in sorted(chunks.glob("*.lines"))] == ["2", "2", "1"]
    (chunks / "train_chunk_003.jsonl.lines").write_text("2")
    done = folder.run("30-concatenate.sh")
    assert (done.returncode, "4 chunks in " in done.stderr, "an earlier one had more files" in done.stderr) == (
        ERROR, True, True
    )  # fmt: skip


def test_tokenizing_makes_one_pair_per_chunk(tmp_path: Path) -> None:
    folder = imported(gpt(tmp_path))
    chunks = tmp_path / "stage/data/slimpajama/chunks"
    chunks.mkdir(parents=True)
    for number in range(3):
        (chunks / f"train_chunk_{number:03d}.jsonl").write_text("{}\n")
    assert folder.run("40-preprocess.sh").returncode == PASS
    out = tmp_path / "stage/data/slimpajama/preprocessed"
    assert len(list(out.glob("*.bin"))) == len(list(out.glob("*.idx"))) == 3
    (chunks / "train_chunk_002.jsonl").unlink()
    (out / "train_chunk_002_text_document.idx").unlink()
    done = folder.run("40-preprocess.sh")
    assert (done.returncode, "2 of 3 files .idx in " in done.stderr) == (ERROR, True)
    (out / "train_chunk_003_text_document.bin").touch()
    done = folder.run("40-preprocess.sh")
    assert (done.returncode, "4 files .bin in " in done.stderr) == (ERROR, True)


def gpt_training(tmp_path: Path, files: int, chunks: int = 2) -> tuple[JobFolder, subprocess.CompletedProcess[str]]:
    data, bpe = tmp_path / "stage/data/slimpajama/preprocessed", tmp_path / "stage/tokenizers/gpt2"
    data.mkdir(parents=True)
    bpe.mkdir(parents=True)
    for name in ("vocab.json", "merges.txt"):
        (bpe / name).write_text("{}")
    for number in range(files):
        (data / f"robin_{number:02d}_text_document.bin").write_text("x")
    return training(tmp_path, "gpt3-175b", megatron_log(1500), 16, SET_CHUNKS=str(chunks))


def test_the_three_data_sets_are_disjoint(tmp_path: Path) -> None:
    folder, result = gpt_training(tmp_path, 7)
    assert result.returncode == PASS, result.stdout + result.stderr
    arguments = Path(folder.environment["FAKE_LOG"] + ".torchrun").read_text().splitlines()
    sets: dict[str, list[str]] = {}
    for option in ("--train-data-path", "--test-data-path", "--valid-data-path"):
        start = arguments.index(option) + 1
        sets[option] = []
        for value in arguments[start:]:
            if not value.startswith(str(tmp_path)) or not value.endswith("_text_document"):
                break
            sets[option].append(value)
    assert [len(files) for files in sets.values()] == [3, 2, 2]
    assert len({file for files in sets.values() for file in files}) == 7
    assert all("robin_" in file for files in sets.values() for file in files)
    assert arguments[arguments.index("--merge-file") + 1].endswith("merges.txt")


@pytest.mark.parametrize("files", [0, 1, 4])
def test_too_few_files_are_refused(tmp_path: Path, files: int) -> None:
    _, result = gpt_training(tmp_path, files)
    assert result.returncode == ERROR
    assert "more than 4 are needed" in result.stdout + result.stderr


# ---------------------------------------------------------------- MPT

MPT_LOG = composer_log(24, tokens=900)


def test_mpt_data_is_moved_into_place_once(tmp_path: Path) -> None:
    folder = imported(job_folder(tmp_path, plan_with(job("mpt"))))
    for _ in range(2):
        assert folder.run("20-data.sh").returncode == PASS
    data = tmp_path / "stage/data/mds-c4-2048"
    assert (data / "train/index.json").exists()
    assert (data / "val/index.json").exists()
    assert len(Path(folder.environment["FAKE_LOG"] + ".python").read_text().splitlines()) == 1


@pytest.mark.parametrize(
    ("output", "environment", "status"),
    [
        (MPT_LOG, {}, PASS),
        (MPT_LOG.replace("total: 8.8000", "total: nan"), {}, FAIL),
        (MPT_LOG.replace("llmfoundry.command_utils.train: Done.", "Done."), {}, FAIL),
        ("", {}, FAIL),
        (MPT_LOG, {"FAKE_STATUS": "1"}, ERROR),
        (MPT_LOG, {"SET_GLOBAL_BATCH": "2047"}, ERROR),
        (MPT_LOG, {"SET_MICRO_BATCH": "7"}, ERROR),
    ],
)
def test_mpt_verdict(tmp_path: Path, output: str, environment: dict[str, str], status: int) -> None:
    _, result = training(tmp_path, "mpt", output, **environment)
    assert result.returncode == status, result.stdout + result.stderr


def test_mpt_passes_every_override_to_every_node(tmp_path: Path) -> None:
    folder, result = training(tmp_path, "mpt", MPT_LOG, SET_EXTRA_OVERRIDES="max_seq_len=1024 seed=7")
    assert result.returncode == PASS
    lines = Path(folder.environment["FAKE_LOG"] + ".composer").read_text().splitlines()
    assert lines.count("seed=7") == 2
    ranks = [lines[number + 1] for number, line in enumerate(lines) if line == "--node_rank"]
    assert ranks == ["0", "1"]
    assert f"save_folder={tmp_path}/stage/runs/mpt-30b-4711/checkpoints" in lines


@pytest.mark.parametrize(
    "container",
    [
        pytest.param({}, id="image of MosaicML"),
        pytest.param({"FAKE_NO_HOOK": "1"}, id="node without the hook"),
        pytest.param({"FAKE_IMAGE_ENV": ""}, id="image without PYTORCH_VERSION"),
        pytest.param(
            {"FAKE_IMAGE_ENV": "PYTORCH_VERSION=2.6 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 NCCL_TOPO_FILE=/etc/mine.xml"},
            id="image that brings its own",
        ),
    ],
)
def test_mpt_starts_whatever_the_container_makes_of_the_environment(tmp_path: Path, container: dict[str, str]) -> None:
    folder, result = training(tmp_path, "mpt", MPT_LOG, **container)
    assert result.returncode == PASS, result.stdout + result.stderr
    rows = [line.split() for line in Path(folder.environment["FAKE_LOG"] + ".world").read_text().splitlines()]
    assert {(row[0], row[1], row[4]) for row in rows} == {("16", "10.0.0.4", "/opt/microsoft/ndv4-topo.xml")}
    assert [row[3] for row in rows] == ["0", "8"]
    assert len({row[2] for row in rows}) == 1
    assert 20000 <= int(rows[0][2]) < 32768
