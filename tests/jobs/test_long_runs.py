"""Long runs without Slurm: what the history of a run says, and what its log says of progress, time and loss."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from generator.files import assets
from tests.jobs.test_scripts import ERROR, iteration, training

PRELUDE = """
set -eu
. ./lib/common.sh
. ./lib/long-runs.sh
. ./lib/run-status.sh
. ./lib/losses.sh
"""

MEGATRON = (
    " [2026-01-01 00:00:00] iteration{:9d}/     100 | consumed samples: 1 | elapsed time per iteration (ms): 2000.0"
    " | lm loss: 7.1E+00 | number of nan iterations:   0 |\n"
)


def bash(script: str, *arguments: str) -> str:
    """What the library prints, in the folder of the recipes."""
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


def test_launches_without_a_new_checkpoint_are_counted(tmp_path: Path) -> None:
    def launch(before: str, after: str, how: str = "failed") -> str:
        return line("begin", 1, 0, before, 1, 0, "a") + line("end", 1, 9, after, how, "")

    histories = {
        launch("-", "-"): "1 1",
        launch("-", "-") + launch("-", "-", "stopped"): "2 2",
        launch("-", "10") + launch("10", "10"): "1 2",
        launch("10", "10") + launch("10", "20"): "0 2",
        launch("-", "-", "lost") + launch("-", "-", "ended"): "2 2",
    }
    for number, text in enumerate(histories):
        (tmp_path / str(number)).write_text(text, encoding="utf-8")
    script = 'for attempts in "$@"; do echo "$(barren_attempts) $(count_attempts)"; done'
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


def test_a_full_file_system_is_noticed_before_anything_starts(tmp_path: Path) -> None:
    """A folder that cannot take a mebibyte; /proc takes none, also from root."""
    script = 'SLURM_JOB_ID=1; can_write "$1" && echo yes; can_write /proc || echo "no: ${problem##*: }"'
    assert bash(script, str(tmp_path)) == "yes\nno: No such file or directory\n"
    assert list(tmp_path.iterdir()) == []


def test_the_recipe_says_what_it_needs() -> None:
    """The gate of prove.sh is one step without need of GPUs, and a definition may train with it, too."""
    found = json.loads((assets.folder("recipes") / "own/recipe.json").read_text(encoding="utf-8"))
    assert (found["kind"], found["trains"], len(found["steps"]), found["steps"][0]["restarts"]) == (
        "validation",
        True,
        1,
        True,
    )


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
