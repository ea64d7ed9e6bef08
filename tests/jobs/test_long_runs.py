"""Long runs without Slurm: what the history of a run says, and what its log says of progress, time and loss."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from pathlib import Path

import pytest

from generator.files import assets
from tests.jobs.running import LIBRARY, SOURCED, job, job_folder, plan_with
from tests.jobs.test_scripts import ERROR, MPT_LOG, WARN, iteration, training, whole_checkpoint
from tests.jobs.training_logs import megatron_log

PRELUDE = f"""
set -eu
{SOURCED}
. {LIBRARY}/long-runs.sh
. {LIBRARY}/run-status.sh
. {LIBRARY}/losses.sh
"""

MEGATRON = (
    " [2026-01-01 00:00:00] iteration{:9d}/     100 | consumed samples: 1 | elapsed time per iteration (ms): 2000.0"
    " | lm loss: 7.1E+00 | number of nan iterations:   0 |\n"
)


def bash(script: str, *arguments: str) -> str:
    done = subprocess.run(
        ["bash", "-c", PRELUDE + script, "run.sh", *arguments],
        cwd=assets.folder("recipes"), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def line(*fields: object) -> str:
    return "\t".join(map(str, fields)) + "\n"


def test_time_left_as_squeue_prints_it() -> None:
    """Source: man squeue, %L."""
    said = {"1-02:03:04": "93784", "02:03:04": "7384", "5:09": "309", "UNLIMITED": "", "NOT_SET": "", "": ""}
    script = 'SLURM_JOB_ID=1; for text in "$@"; do squeue() { echo "${text}"; }; echo "$(seconds_left)"; done'
    assert bash(script, *said).splitlines() == list(said.values())


def test_a_framework_has_until_shortly_before_the_time_limit() -> None:
    script = """
    STOP_BEFORE_END_S=300
    for rest in 100000 ""; do
        seconds_left() { echo "${rest}"; }
        set_stop_time
        printf -v now '%(%s)T' -1
        echo "${STOP_AT:+$(((STOP_AT - now) / 1000))}"
    done
    """
    assert bash(script).splitlines() == ["99", ""]


def test_a_launch_that_hangs_or_does_not_stop_is_signalled(tmp_path: Path) -> None:
    """Seconds since somebody asked for the stop, since the last line, and how long a launch may be silent."""
    cases = {"160 0 900": "TERM", "120 100 50": "KILL", "120 0 50": "none", "- 100 0": "none", "- 100 900": "none"}
    script = """
    results="$1" stop_file="$1/stop" STOP_BEFORE_END_S=300
    sleep() { :; }
    # A third look would find nothing else.
    wait() { rounds=$((rounds + 1)); if ((rounds > 2)); then echo none; exit; fi; builtin wait "$@"; }
    signal_steps() { echo "$1"; exit; }
    for case in "${@:2}"; do
        read -r asked silent STALL_S <<<"${case}"
        rm -f "${stop_file}" "${results}/stalled"
        printf -v now '%(%s)T' -1
        if [[ "${asked}" != - ]]; then touch -d "@$((now - asked))" "${stop_file}"; fi
        touch -d "@$((now - silent))" "${results}/train.log"
        (rounds=0; watch_launch)
        if [[ -e "${results}/stalled" ]]; then echo stalled; fi
    done
    """
    expected = [word for said in cases.values() for word in ([said, "stalled"] if said == "KILL" else [said])]
    assert bash(script, str(tmp_path), *cases).split() == expected


def test_only_a_job_whose_time_is_over_submits_the_next_one(tmp_path: Path) -> None:
    """A person who cancels it wants the end, and after preemption Slurm requeues by itself."""
    script = """
    results="$1" attempts="$1/attempts"
    close_attempt() { echo "$1"; }
    submit_next() { echo "next job"; exit; }
    ended_by() { echo "$1"; exit; }
    for stop_requested in 1 ""; do (on_termination); done
    """
    assert bash(script, str(tmp_path)).splitlines() == ["stopped", "next job", "ended", "SIGTERM"]


def test_launches_without_a_new_checkpoint_are_counted(tmp_path: Path) -> None:
    def launch(before: str, after: str, how: str = "failed") -> str:
        return line("begin", 1, 0, before, 1, 0, "a") + line("end", 1, 9, after, how, "")

    histories = {
        launch("-", "-"): "1 one launch",
        launch("-", "-") + launch("-", "-", "stopped"): "2 2 launches",
        launch("-", "10") + launch("10", "10"): "1 2 launches",
        launch("10", "10") + launch("10", "20"): "0 2 launches",
        launch("-", "-", "lost") + launch("-", "-", "ended"): "2 2 launches",
        # The second one has not ended.
        launch("-", "-") + line("begin", 1, 0, "-", 1, 0, "a"): "1 2 launches",
    }
    for number, text in enumerate(histories):
        (tmp_path / str(number)).write_text(text, encoding="utf-8")
    script = 'for attempts in "$@"; do echo "$(barren_attempts) $(attempts_in_words)"; done'
    found = bash(script, *(str(tmp_path / str(number)) for number in range(len(histories))))
    assert found.splitlines() == list(histories.values())


def test_status_counts_every_step_once(tmp_path: Path) -> None:
    """Two launches of 100 s on 16 GPUs; the second repeats steps 31 to 40, which were not saved."""
    run = tmp_path / "runs/mine"
    run.mkdir(parents=True)
    log = "=== launch 1 of mine, job 7, 2026, from step 0, on a b\n" + "".join(map(MEGATRON.format, (10, 20, 30, 40)))
    log += "=== launch 2 of mine, job 8, 2026, from step 30, on a c\n" + "".join(map(MEGATRON.format, (40, 50, 60, 70)))
    (run / "train.log").write_text(log, encoding="utf-8")
    attempts = line("begin", 7, 1000, "-", 2, 16, "a,b") + line("end", 7, 1100, 30, "failed", "exit status 1; killed")
    attempts += line("begin", 8, 2000, 30, 2, 16, "a,c") + line("end", 8, 2100, 70, "stopped", "")
    (run / "attempts.tsv").write_text(attempts, encoding="utf-8")
    said = bash(f'STAGE_PATH="{tmp_path}"; show_status').splitlines()
    assert said == [
        "run       mine: stopped",
        "progress  step 70 of 100, saved: 70",
        "speed     2 s per step",
        "to go     0 h 01 min at this speed, without interruptions",
        "spent     0 h 03 min in 2 launches (1 of them broke); 0.11 node-hours, 0.89 GPU-hours",
        # 70 steps of 2 s, of 200 s.
        "goodput   70 %: time in steps that count, of the time of all launches",
        "launch 1  job 7, from step 0 on 2 nodes: failed at step 30 after 100 s; exit status 1; killed",
        "launch 2  job 8, from step 30 on 2 nodes: stopped at step 70 after 100 s",
    ]


def test_a_job_that_was_killed_gets_its_end_from_the_next_one(tmp_path: Path) -> None:
    (tmp_path / "attempts.tsv").write_text(line("begin", 7, 1000, "-", 2, 16, "a,b"), encoding="utf-8")
    script = """
    run_dir="$1" attempts="$1/attempts.tsv"
    run_mark() { echo 50; }
    touch -d @1234 "${run_dir}/train.log"
    close_lost_attempt
    close_lost_attempt
    tail -n +2 "${attempts}" | cut -f 1-5
    """
    assert bash(script, str(tmp_path)) == line("end", 7, 1234, 50, "lost")


def test_the_loss_must_fall(tmp_path: Path) -> None:
    logs = {
        "".join(f"step {n} of 30 loss {3 - n / 20} seconds 1\n" for n in range(30)): "pass",
        "".join(f"step {n} loss {n}\n" for n in range(30)): "fail",
        "".join(f"step {n} loss {'nan' if n == 7 else 30 - n}\n" for n in range(30)): "fail",
        # A step that was trained again counts once, with its last loss.
        "step 1 loss 5\nstep 2 loss 9\nstep 2 loss 4\n": "pass",
        "step 1 loss 5\n": "no_baseline",
        "no such line\n": "no_baseline",
    }
    for number, text in enumerate(logs):
        (tmp_path / str(number)).write_text(text, encoding="utf-8")
    script = """
    export results="$1"
    for log in "${@:2}"; do judge_losses "${log}" "${results}/checks.tsv"; done; cut -f 2 "${results}/checks.tsv"
    """
    found = bash(script, str(tmp_path), *(str(tmp_path / str(number)) for number in range(len(logs))))
    assert found.split() == list(logs.values())


def test_a_node_that_is_not_fit_says_why(tmp_path: Path) -> None:
    """Slurm's states and the node's own look; a node that says nothing is not fit."""
    script = """
    export results="$1" run_dir="$1" SLURM_JOB_ID=1 GPUS_PER_NODE=8 GPU_VENDOR=NVIDIA wanted_nodes=2
    requested_nodes() { printf 'n%s\\n' 1 2 3 4 5 6 7; }
    keep_node_facts() { :; }
    sinfo() { printf '%s\\n' 'n1|draining' 'n2|allocated*' 'n3|mixed' 'n4|allocated' 'n5|allocated' 'n6|allocated'; }
    nvidia-smi() {
        if [[ "$1" == --list-gpus ]]; then seq -f "GPU %g: x" "$((node == 4 ? 7 : 8))"
        elif [[ "${node}" == 5 ]]; then echo "Yes, No"; else echo "No, No"; fi
    }
    timeout() { shift; "$@"; }
    bounded() { shift; "$@"; }
    srun() { for node in 3 4 5 6; do (SLURMD_NODENAME="n${node}" look_at_node); done; }
    choose_nodes >/dev/null && echo "${run_nodes[*]}"
    """
    (tmp_path / "checks.tsv").touch()
    # Two of seven are asked for, and n3 and n6 are fit.
    assert bash(script, str(tmp_path)) == "n3 n6\n"
    checks = [row.split("\t") for row in (tmp_path / "checks.tsv").read_text(encoding="utf-8").splitlines()]
    assert {row[7]: row[5].removeprefix("left out: ") for row in checks} == {
        "n1": "Slurm says draining",
        "n2": "Slurm says allocated*",
        "n4": "7 of 8 GPUs",
        "n5": "a GPU waits for a reset to remap memory rows",
        "n7": "it does not answer",
    }


def test_too_few_fit_nodes_lead_to_the_next_job_only_if_others_can_help(tmp_path: Path) -> None:
    """Two are wanted; a node that begins with `b` is bad."""
    cases = {
        "a1": "1 nodes for a run that wants 2",
        "b1 b2": "no node of this job is fit to train, so it is not the nodes: b1: broken",
        "a1 b1": "next job: 1 nodes are fit to train and 2 are needed; left out: b1",
        "a1 a2 b1": "a1 a2, without b1",
    }
    script = """
    export results="$1" wanted_nodes=2
    sinfo() { :; }
    ask_nodes() {
        for node in "$@"; do if [[ "${node}" == b* ]]; then echo broken >"${results}/gate/${node}.bad"; fi; done
    }
    submit_next() { echo "next job: $1"; exit; }
    for list in "${@:2}"; do
        requested_nodes() { printf '%s\n' ${list}; }
        (choose_nodes; echo "${run_nodes[*]}, without ${bad_nodes[*]}") 2>&1 | tail -n 1 | sed 's/.*ERROR: //'
    done
    """
    assert bash(script, str(tmp_path), *cases).splitlines() == list(cases.values())


def test_a_full_file_system_is_noticed_before_anything_starts(tmp_path: Path) -> None:
    """A folder that cannot take a mebibyte; /proc takes none, also from root."""
    script = 'SLURM_JOB_ID=1; can_write "$1" && echo yes; can_write /proc || echo "no: ${problem##*: }"'
    assert bash(script, str(tmp_path)) == "yes\nno: No such file or directory\n"
    assert list(tmp_path.iterdir()) == []


FILLS = """#!/usr/bin/env bash
# Trains without an end, and keeps every checkpoint, of 1 MB.
cd "${CHECKPOINT_DIR}" || exit 1
for ((step = 1; ; step++)); do
    echo "step ${step} loss $((100 - step))"
    head -c 1000000 /dev/zero >"step-${step}" && echo "${step}" >latest || exit 9
done
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small file system")
def test_a_checkpoint_that_finds_no_room_ends_the_run_with_a_record(tmp_path: Path) -> None:
    """Run, results and logs are on a file system of 5 MiB; a second launch would be of no use."""
    folder = job_folder(tmp_path, plan_with(job("own", 1)), ("hpc-1",))
    (folder.path / "fills.sh").write_text(FILLS, encoding="utf-8")
    (folder.path / "fills.sh").chmod(0o755)
    settings = {"SET_SCRIPT": "fills.sh", "SET_LAUNCHER": "srun", "SET_RUN_NAME": "mine"}
    small = """
    cp -a "$1" "$1.whole" && mount -t tmpfs -o size=5m none "$1" && cp -a "$1.whole/." "$1/" || exit 99
    cd "$2" || exit 99
    ./run.sh >/dev/null 2>&1
    status=$?
    cat results/4711/run.json "$1/stage/runs/mine/attempts.tsv"
    exit "${status}"
    """
    ran = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "bash", "-c", small, "-", str(tmp_path), str(folder.path)],
        env=folder.environment | settings, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == ERROR, ran.stdout + ran.stderr
    record, _, launches = ran.stdout.partition("\nbegin\t")
    summary = json.loads(record)["summary"]
    assert "stage/runs/mine is full: remove what is not needed, then continue with: sbatch" in summary
    assert launches.count("begin") == 0
    assert "\tfailed\texit status 9" in launches


def test_the_recipe_says_what_it_needs() -> None:
    """The gate of prove.sh is one step without need of GPUs, and a definition may train with it, too."""
    found = json.loads((assets.folder("recipes") / "own/recipe.json").read_text(encoding="utf-8"))
    assert (found["kind"], found["trains"], len(found["steps"]), found["steps"][0]["restarts"]) == (
        "validation",
        True,
        1,
        True,
    )


def test_a_job_of_spare_nodes_alone_is_refused(tmp_path: Path) -> None:
    folder = job_folder(tmp_path, plan_with(job("own", 1)), ("hpc-1",))
    ran = folder.run(SET_SPARE_NODES="1", SET_LAUNCHER="srun", SET_SCRIPT="run.sh")
    assert (ran.returncode, "SPARE_NODES=1: none is left to train on" in ran.stderr) == (ERROR, True)


def test_megatron_is_launched_again_until_that_is_no_use(tmp_path: Path) -> None:
    """It always breaks before a checkpoint; the record says so, and how to go on."""
    folder, result = training(tmp_path, "opt-175b", "", FAKE_STATUS="9", SET_SAVE_INTERVAL="50", SET_RUN_NAME="mine")
    assert result.returncode == ERROR
    assert "3 launches in a row have ended at step 0" in json.loads(folder.results("run.json"))["summary"]
    log = (tmp_path / "stage/runs/mine/train.log").read_text(encoding="utf-8")
    assert log.count("=== launch") == 3
    arguments = Path(folder.environment["FAKE_LOG"] + ".torchrun").read_text(encoding="utf-8").splitlines()
    assert "--exit-signal-handler" in arguments


def test_megatron_that_was_stopped_has_not_passed(tmp_path: Path) -> None:
    """It ends with status 0 when its time is over; here nobody takes the next job, which is an error, too."""
    folder, result = training(tmp_path, "opt-175b", iteration(50), SET_RUN_NAME="mine")
    assert result.returncode != 0
    record = json.loads(folder.results("run.json"))
    assert {each["check"]: each["verdict"] for each in record["checks"]}["next_job"] == "error"
    assert "sbatch --export='ALL,SET_RUN_NAME=mine,SET_RESUME=1' job.sbatch" in record["summary"]


def test_mpt_that_its_clock_has_stopped_has_not_passed(tmp_path: Path) -> None:
    """LLM Foundry says that it is done also then."""
    stopped = f"exit_clock: stopped after batch 24, as asked\n{MPT_LOG}"
    folder, result = training(tmp_path, "mpt", stopped, SET_RUN_NAME="mine")
    assert result.returncode != 0
    record = json.loads(folder.results("run.json"))
    assert {each["check"]: each["verdict"] for each in record["checks"]}["next_job"] == "error"
    clock = folder.path / "exit_clock.py"
    assert clock.is_file()
    assert {f"code_paths=['{clock}']", "callbacks.exit_clock={}"} <= set(folder.results("overrides.txt").splitlines())
    assert f"{folder.path}:{folder.path}" in next(line for line in folder.log.splitlines() if "composer" in line)


# ---------------------------------------------------------------- spare nodes, checkpoints that are not whole


def arguments_of(log: str, after: str) -> list[str]:
    lines = Path(log).read_text(encoding="utf-8").splitlines()
    return [value for option, value in itertools.pairwise(lines) if option == after]


@pytest.mark.parametrize("recipe", ["opt-175b", "mpt"])
def test_a_spare_node_takes_the_place_of_one_that_does_not_answer(tmp_path: Path, recipe: str) -> None:
    """Three nodes for a run of two; the first one is silent, so the others are ranks 0 and 1 and meet at the second."""
    log = MPT_LOG if recipe == "mpt" else megatron_log(100)
    spare = {"SET_SPARE_NODES": "1", "SET_GLOBAL_BATCH": "2048", "SET_MICRO_BATCH": "1", "FAKE_DEAD": "hpc-1"}
    folder, ran = training(tmp_path, recipe, log, 3, **spare)
    assert ran.returncode == WARN, ran.stdout + ran.stderr
    (gate,) = (each for each in json.loads(folder.results("run.json"))["checks"] if each["check"] == "node_gate")
    assert (gate["nodes"], gate["detail"]) == (["hpc-1"], "left out: it does not answer")
    (step,) = (line for line in folder.log.splitlines() if "--container-workdir" in line)
    assert {"--nodes=2", "--nodelist=hpc-2\\,hpc-3", "--ntasks=2"} <= set(step.split())
    if recipe == "mpt":
        world = Path(folder.environment["FAKE_LOG"] + ".world").read_text(encoding="utf-8").splitlines()
        assert [line.split()[:1] + line.split()[3:4] for line in world] == [["16", "0"], ["16", "8"]]
    else:
        given = folder.environment["FAKE_LOG"] + ".torchrun"
        assert (arguments_of(given, "--nnodes"), arguments_of(given, "--master_addr")) == (["2"], ["hpc-2"])


def broken_megatron(checkpoints: Path, tracker: str | None) -> None:
    """Two whole checkpoints, and one whose parts were not all written."""
    for number in (10, 20, 30):
        whole_checkpoint(checkpoints, number)
    (checkpoints / "iter_0000030/metadata.json").unlink()
    if tracker is not None:
        (checkpoints / "latest_checkpointed_iteration.txt").write_text(tracker, encoding="utf-8")


MENDED = """
RUN_NAME=mine RESUME=1 results="$1"
. "${JOBS_LIB}/megatron-checkpoints.sh"
if [[ "$2" == mpt ]]; then . ./mpt/checkpoints.sh; fi
for run_dir in "${@:3}"; do
    checkpoints="${run_dir}/checkpoints"
    (mend_mark >/dev/null 2>&1) || echo "died"
    run_mark && echo
done
"""


def test_megatron_goes_on_from_the_newest_whole_checkpoint(tmp_path: Path) -> None:
    """A full file system leaves the tracker empty; who was killed may leave none, or half a checkpoint."""
    cases = {"empty": "", "half": "30", "cut": "2x", "none": None, "whole": "10", "other": "release"}
    for name, tracker in cases.items():
        broken_megatron(tmp_path / name / "checkpoints", tracker)
    (tmp_path / "new/checkpoints").mkdir(parents=True)
    # The only one is not whole: a person decides. Another format has a folder for each rank.
    broken_megatron(tmp_path / "lost/checkpoints", "30")
    for number in (10, 20):
        (tmp_path / f"lost/checkpoints/iter_{number:07d}/.metadata").unlink()
    (tmp_path / "older/checkpoints/iter_0000030/mp_rank_00").mkdir(parents=True)
    (tmp_path / "older/checkpoints/latest_checkpointed_iteration.txt").write_text("30", encoding="utf-8")
    names = (*cases, "new", "lost", "older")
    found = bash(MENDED, str(tmp_path), "megatron", *(str(tmp_path / name) for name in names)).split()
    assert found == ["20", "20", "20", "20", "10", "release", "died", "30", "30"]
    checks = (tmp_path / "checks.tsv").read_text(encoding="utf-8").splitlines()
    assert [row.split("\t")[:3] for row in checks] == [["checkpoint", "warn", "20"]] * 4


def test_a_checkpoint_that_is_removed_stops_being_whole_first(tmp_path: Path) -> None:
    """Whatever ends the job in the middle leaves none that only looks whole."""
    broken_megatron(tmp_path / "checkpoints", "20")
    script = """
    run_dir="$1" SAVE_INTERVAL=10 KEEP_CHECKPOINTS=1
    . "${JOBS_LIB}/megatron-checkpoints.sh"
    log() { :; }
    rm() { echo "${@: -1}"; command rm "$@"; }
    prune_checkpoints
    """
    oldest = tmp_path / "checkpoints/iter_0000010"
    assert bash(script, str(tmp_path)).splitlines() == [f"{oldest}/metadata.json", str(oldest)]


def composer_checkpoints(folder: Path) -> None:
    """Sharded ones of batches 9 and 10, and one of batch 11 without what is written last."""
    for batch in (9, 10, 11):
        (folder / f"ep0-ba{batch}").mkdir(parents=True)
        (folder / f"ep0-ba{batch}/__0_0.distcp").write_text("part", encoding="utf-8")
        if batch < 11:
            (folder / f"ep0-ba{batch}/.metadata").write_text("all", encoding="utf-8")


def test_mpt_goes_on_from_the_newest_whole_checkpoint(tmp_path: Path) -> None:
    """Composer begins anew where `latest` is gone, or what it names."""
    cases = {"none": None, "half": "ep0-ba11", "gone": "ep0-ba7", "whole": "ep0-ba9"}
    for name, named in cases.items():
        composer_checkpoints(tmp_path / name / "checkpoints")
        if named:
            (tmp_path / name / "checkpoints/latest-rank0.pt").symlink_to(named)
    (tmp_path / "new/checkpoints").mkdir(parents=True)
    (tmp_path / "lost/checkpoints").mkdir(parents=True)
    (tmp_path / "lost/checkpoints/latest-rank0.pt").symlink_to("ep0-ba7")
    (tmp_path / "full/checkpoints").mkdir(parents=True)
    for batch, text in ((5, "state"), (6, "")):
        (tmp_path / f"full/checkpoints/ep0-ba{batch}-rank0.pt").write_text(text, encoding="utf-8")
    names = (*cases, "new", "lost", "full")
    found = bash(MENDED, str(tmp_path), "mpt", *(str(tmp_path / name) for name in names)).split()
    assert found == ["10", "10", "10", "9", "died", "7", "5"]


@pytest.mark.parametrize(
    ("recipe", "command"),
    [("opt-175b", "echo 10 >{}/latest_checkpointed_iteration.txt"), ("mpt", "ln -sfn ep0-ba9 {}/latest-rank0.pt")],
)
def test_a_checkpoint_that_cannot_be_read_has_a_way_back(tmp_path: Path, recipe: str, command: str) -> None:
    """A launch goes on from the newest whole one, and if that is of no use says how to go on from the one before."""
    checkpoints = tmp_path / "stage/runs/mine/checkpoints"
    broken_megatron(checkpoints, "30")
    composer_checkpoints(checkpoints)
    again = {"SET_RUN_NAME": "mine", "SET_RESUME": "1", "SET_SAVE_INTERVAL": "10ba" if recipe == "mpt" else "10"}
    folder, ran = training(tmp_path, recipe, "", FAKE_STATUS="9", SET_MAX_SAME_STEP="1", **again)
    assert ran.returncode != 0
    said = json.loads(folder.results("run.json"))["summary"]
    assert f"If that checkpoint is damaged: {command.format(checkpoints)}; then sbatch" in said
    log = folder.results("train.log")
    assert f", from step {10 if recipe == 'mpt' else 20}, on " in log
    if recipe != "mpt":
        assert arguments_of(folder.environment["FAKE_LOG"] + ".torchrun", "--load") == [str(checkpoints)]
