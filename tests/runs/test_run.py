"""`cycleforge run`, typed by a user, through real ssh, on real Slurm."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from generator.cyclecloud.jobs.prepared import PROGRAM, Prepared, shared_folders
from tests.bed.plans import plan_from
from tests.runs.bed import NAME, User, kill, wait_for_line


def test_a_job_of_the_folder_to_its_verdict(user: User) -> None:
    words = ("run", NAME, "smoke", "--set", "ALLOW_WARN=1", "--fetch", "got")
    told = user.types(*words, "--json")
    assert told.status == 0, told.err
    assert told.json["verdict"] == "pass"
    assert told.json["summary"] == "1 of 1 nodes answered"
    (run,) = user.runs("smoke")
    assert told.json["run"] == run
    job = told.json["steps"][0]["job"]
    assert "verdict pass: 1 of 1 nodes answered" in told.err, "the log was followed"
    assert (user.here / "got/results" / job / "run.json").is_file()
    assert "ALLOW_WARN=1" in (user.jobs / run / "settings.env").read_text().splitlines()
    assert "ALLOW_WARN=0" in (user.here / "output" / NAME / "jobs/smoke/settings.env").read_text().splitlines()
    # The folder of all runs, which the report reads.
    assert (user.jobs / "runs" / f"smoke-{job}" / "run.json").is_file()
    again = user.types(*words)
    assert (again.status, again.out) == (5, "")
    assert "got already exists" in again.err
    assert user.runs("smoke") == [run], "nothing was submitted"


def test_an_own_folder_ends_with_its_own_status(user: User) -> None:
    user.own("mine", job='echo "word is $WORD"; exit 7')
    told = user.types("run", NAME, "mine", "--set", "WORD=a b", "--wait")
    assert told.status == 7
    assert "word is a b" in told.err
    assert told.out.startswith("verdict fail: job.sbatch, job ")
    # Its result is known: the same command begins anew.
    user.types("run", NAME, "mine", "--set", "WORD=a b", "--wait")
    assert len(user.runs("mine")) == 2


def test_killed_and_continued(user: User) -> None:
    user.own("long", job="echo begun; until [[ -e go ]]; do sleep 0.1; done; echo done; exit 3")
    first = user.starts("run", NAME, "long", "--wait")
    wait_for_line(first, "begun")
    kill(first)
    (run,) = user.runs("long")
    second = user.starts("run", NAME, "long", "--wait", "--json")
    said = wait_for_line(second, "begun")
    assert f"run {run}, which ann@" in said
    second.send_signal(signal.SIGINT)
    _, err = second.communicate()
    assert second.returncode == 130
    assert "run the same command to reattach" in err
    (user.jobs / run / "go").touch()
    user.wait_for("the job has ended", lambda: user.cloud.slurm("squeue", "-h") == "")
    last = user.types("run", NAME, "long")
    assert last.status == 3, "what nobody was told is told, and not run again"
    assert user.submitted(run) == [f"{run}.job.sbatch"]


def test_a_connection_that_is_lost_at_each_request(user: User) -> None:
    """With its answer, or before anything was sent, which is less."""
    number, happened = 0, True
    while happened:
        number += 1
        for how in ("before", "after") if number == 2 else ("after",):
            happened = lose_once(user, number, how)
    assert number > 6, "look, copy, submit, follow, look and the end were each lost once"


def lose_once(user: User, number: int, how: str) -> bool:
    """A run whose request of this number is lost; whether there were as many."""
    name = f"lost-{how}-{number}"
    user.own(name, _10_first="echo one", job="echo two")
    user.loses(number, how)
    told = user.types("run", NAME, name, "--wait")
    requests = user.keeps()
    if told.status:
        assert told.status == 4, told.err
        assert told.out == ""
        assert "Traceback" not in told.err
        told = user.types("run", NAME, name, "--wait")
    assert told.status == 0, told.err
    assert told.out.startswith("verdict pass")
    (run,) = user.runs(name)
    assert user.submitted(run) == [f"{run}.10-first.sbatch", f"{run}.job.sbatch"]
    return requests >= number


def test_a_failed_step_is_where_it_goes_on(user: User) -> None:
    user.own("steps", _10_first="echo one >>ran", _20_second="echo two >>ran; [[ -e mended ]]", job="echo three >>ran")
    told = user.types("run", NAME, "steps", "--wait", "--json")
    assert told.status == 1
    assert "20-second.sbatch" in told.json["summary"]
    (run,) = user.runs("steps")
    assert (user.jobs / run / "ran").read_text().split() == ["one", "two"]
    (user.jobs / run / "mended").touch()
    told = user.types("run", NAME, "steps", "--wait")
    assert told.status == 0, told.err
    assert "continues at 20-second.sbatch" in told.err
    assert (user.jobs / run / "ran").read_text().split() == ["one", "two", "two", "three"]
    told = user.types("run", NAME, "steps", "--from", "20-second", "--wait")
    assert told.status == 0, told.err
    assert (user.jobs / run / "ran").read_text().split()[4:] == ["two", "three"]
    assert user.runs("steps") == [run]


def test_from_a_step_at_the_first_time(user: User) -> None:
    user.own("later", _10_first="exit 1", job="echo fine")
    told = user.types("run", NAME, "later", "--from", "job", "--wait", "--json")
    assert told.status == 0, told.err
    assert [step["step"] for step in told.json["steps"]] == ["job.sbatch"]


def test_an_array_is_as_good_as_its_worst_task(user: User) -> None:
    folder = user.own("array", job="exit $((SLURM_ARRAY_TASK_ID % 3))")
    path = folder / "job.sbatch"
    path.write_text(path.read_text().replace("%x_%j", "%x_%A_%a").replace("\n", "\n#SBATCH --array=0-4\n", 1))
    told = user.types("run", NAME, "array", "--wait", "--json")
    assert told.status == 2, told.err
    assert len(told.json["steps"][0]["tasks"]) == 5


def test_a_cancelled_job_has_not_passed(user: User) -> None:
    user.own("sleeper", job="echo begun; sleep 600")
    process = user.starts("run", NAME, "sleeper", "--wait")
    wait_for_line(process, "begun")
    user.cloud.slurm("scancel", "--user=root")
    out, _ = process.communicate()
    assert process.returncode not in (0, None)
    assert "CANCELLED" in out


def test_two_people_at_once_share_one_run(user: User) -> None:
    user.own("both", job="sleep 1; exit 5")
    processes = [user.starts("run", NAME, "both", "--wait") for _ in range(2)]
    said = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [5, 5], said
    (run,) = user.runs("both")
    assert user.submitted(run) == [f"{run}.job.sbatch"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("smok",), "did you mean 'smoke'?"),
        (("smoke", "--set", "NODS=2"), "did you mean 'NODES'?"),
        (("smoke", "--set", "NODES=two"), "NODES takes a number"),
        (("smoke", "--set", "NODES=3"), "partition 'htc' has up to 2"),
        (("smoke", "--set", "PARTITION=gpu"), "follows from the definition"),
        (("smoke", "--set", "A"), "takes NAME=VALUE"),
        (("smoke", "--from", "setup"), "steps: job"),
        (("cluster_defs",), "there is no job.sbatch in cluster_defs"),
    ],
)
def test_what_cannot_be_meant(user: User, words: tuple[str, ...], text: str) -> None:
    user.loses(99, "before")
    told = user.types("run", NAME, *words)
    assert told.status == 2
    assert text in told.err
    assert user.keeps() == 0, "the cluster was not asked"


def test_what_slurm_refuses_is_said(user: User) -> None:
    folder = user.own("refused", job="true")
    path = folder / "job.sbatch"
    path.write_text(path.read_text().replace("\n", "\n#SBATCH --partition=nowhere\n", 1))
    told = user.types("run", NAME, "refused", "--wait")
    assert told.status == 4
    assert "invalid partition" in told.err.lower()


def test_the_lines_of_print_do_the_same(user: User) -> None:
    user.own("printed", _10_first="echo one >>ran", job='echo "$WORD" >>ran')
    user.loses(99, "before")
    told = user.types("run", NAME, "printed", "--set", "WORD=it's $HOME", "--fetch", "printed-back", "--print")
    assert told.status == 0
    assert user.keeps() == 0, "the cluster was not asked"
    subprocess.run(["bash", "-euc", told.out], cwd=user.here, env=user.environment, check=True, timeout=120)
    assert (user.here / "printed-back/ran").read_text() == "one\nit's $HOME\n"
    built = user.types("run", NAME, "smoke", "--fetch", "smoke-back", "--print")
    subprocess.run(["bash", "-euc", built.out], cwd=user.here, env=user.environment, check=True, timeout=120)
    assert [path.read_text() for path in (user.here / "smoke-back/results").glob("*/verdict")] == ["pass\n"]


def test_a_job_whose_node_is_lost_goes_on_where_slurm_lets_it(user: User) -> None:
    """The VM of its node is gone without a word, and with it a job that may not be repeated."""
    body = 'echo "attempt ${SLURM_RESTART_COUNT:-0}"; [[ ${SLURM_RESTART_COUNT:-0} == 1 ]] || sleep 600'
    user.own("lost-node", job=body)
    user.own("lost-once", job=f"#SBATCH --no-requeue\n{body}")
    process, other = (user.starts("run", NAME, name, "--wait", "--json") for name in ("lost-node", "lost-once"))
    for each in (process, other):
        wait_for_line(each, "attempt 0")
    (node,) = set(user.cloud.slurm("squeue", "-h", "--states=RUNNING", "--format=%N").split())
    (run,) = user.runs("lost-node")
    job = user.cloud.slurm("squeue", "-h", f"--name={run}.job.sbatch", "--format=%i").strip()
    with user.cloud.with_settings("SlurmdTimeout=5"):
        user.cloud.kill(node)
        # Two minutes later, by itself.
        user.cloud.wait_job(job, "PENDING")
    user.cloud.slurm("scontrol", "update", f"JobId={job}", "StartTime=now+1")
    wait_for_line(process, "attempt 1")
    out, err = process.communicate()
    user.cloud.start(node)
    user.wait_for("the node is back", user.cloud.all_resumed)
    assert process.returncode == 0, err
    assert '"exit": "0:0"' in out
    assert user.submitted(run) == [f"{run}.job.sbatch"]
    out, err = other.communicate()
    assert other.returncode != 0, err
    assert '"state": "NODE_FAIL"' in out


@pytest.mark.parametrize("ended", [False, True])
def test_a_number_that_never_arrived_is_found_again(user: User, ended: bool) -> None:
    """The scheduler lost power between sbatch and its answer: the job may be there, running or over."""
    name = f"unanswered-{ended}".lower()
    waits = "until [[ -e go ]]; do sleep 0.1; done"
    user.own(name, _10_first="true" if ended else waits, job=f"{waits}; exit 9")
    assert user.types("run", NAME, name).status == 0
    (run,) = user.runs(name)
    if ended:
        (user.jobs / run / "go").touch()
        user.wait_for("the jobs have ended", lambda: user.cloud.slurm("squeue", "-h") == "")
    for path in (user.jobs / run / ".cycleforge").glob("*.sbatch.*"):
        if path.suffix != ".asked":
            path.unlink()
    (user.jobs / run / "go").touch()
    told = user.types("run", NAME, name, "--wait")
    assert told.status == 9, told.err
    assert user.submitted(run) == [f"{run}.10-first.sbatch", f"{run}.job.sbatch"]


def test_a_step_that_was_never_submitted_is_not_waited_for(user: User) -> None:
    """The one before it failed so soon that there was nothing to submit it for."""
    user.own("soon", _10_first="until [[ -e go ]]; do sleep 0.1; done; exit 3", job="true")
    assert user.types("run", NAME, "soon").status == 0
    (run,) = user.runs("soon")
    (user.jobs / run / "go").touch()
    user.wait_for("the jobs have ended", lambda: user.cloud.slurm("squeue", "-h") == "")
    for path in (user.jobs / run / ".cycleforge").glob("job.sbatch.*"):
        path.unlink()
    lines = user.asks(f"bash jobs/{run}/.cycleforge/{PROGRAM} follow {run}").splitlines()
    assert [line.split("\t")[:2] for line in lines] == [["state", "10-first.sbatch"], ["over"]]
    assert user.types("run", NAME, "soon", "--wait").status == 3


def test_a_program_that_ends_too_early_each_time_is_not_started_for_ever(user: User) -> None:
    user.own("broken", job="until [[ -e go ]]; do sleep 0.1; done")
    assert user.types("run", NAME, "broken").status == 0
    (run,) = user.runs("broken")
    program = user.jobs / run / ".cycleforge" / PROGRAM
    whole = program.read_text()
    program.write_text("printf 'state\\tjob.sbatch\\t1\\tRUNNING\\t\\n'; echo disk on fire; exit 1\n")
    told = user.types("run", NAME, "broken", "--wait")
    assert told.status == 4
    assert "what follows the job there ended: disk on fire" in told.err
    program.write_text(whole)
    (user.jobs / run / "go").touch()
    assert user.types("run", NAME, "broken", "--wait").status == 0


def test_what_slurm_has_forgotten_is_not_proven(user: User) -> None:
    # It waits, because a run that has ended when its command ends was told, and begins anew when it is typed again.
    user.own("forgotten", job="until [[ -e go ]]; do sleep 0.1; done")
    assert user.types("run", NAME, "forgotten").status == 0
    (run,) = user.runs("forgotten")
    (user.jobs / run / "go").touch()
    user.wait_for("the job has ended", lambda: user.cloud.slurm("squeue", "-h") == "")
    state = user.jobs / run / ".cycleforge"
    # As after MinJobAge: its number says nothing to Slurm, and there are no accounts.
    (state / "job.sbatch.ids").write_text("99999\n")
    (state / "job.sbatch.tasks").unlink(missing_ok=True)
    told = user.types("run", NAME, "forgotten", "--wait")
    assert told.status == 4
    assert "its exit status is unknown" in told.out


def test_a_full_disk_gets_nothing(user: User) -> None:
    folder = user.own("large", job="true")
    (folder / "data").write_bytes(b"0" * 200_000)
    user.cloud.ok('mkdir -p "$HOME/jobs" && mount -t tmpfs -o size=64k tmpfs "$HOME/jobs"')
    try:
        told = user.types("run", NAME, "large", "--wait")
        left = user.cloud.ok('ls -A "$HOME/jobs"')
    finally:
        user.cloud.ok('umount "$HOME/jobs"')
    assert told.status == 4
    assert "No space left on device" in told.err
    assert left == ""
    assert user.submitted("large") == []


def test_a_folder_without_a_way_to_the_cluster(user: User) -> None:
    config = user.here / "output" / NAME / "ssh_config"
    aside = config.rename(config.with_name("aside"))
    told = user.types("run", NAME, "smoke")
    aside.rename(config)
    assert told.status == 2
    assert f"hint: `cycleforge build {NAME}` makes it" in told.err


def test_a_job_that_another_one_continues(user: User) -> None:
    """As a long run does before its time limit."""
    user.own(
        "relay",
        job="if [[ -e begun ]]; then echo second; exit 0; fi; touch begun; seq 100; "
        'sbatch --job-name="$SLURM_JOB_NAME" --dependency=afterany:$SLURM_JOB_ID job.sbatch; exit 4',
    )
    told = user.types("run", NAME, "relay", "--wait", "--json")
    assert told.status == 0, told.err
    assert "second" in told.err.splitlines(), "its own output was followed, from its beginning"
    (run,) = user.runs("relay")
    assert len(user.submitted(run)) == 2


def test_shared_folders_of_training_are_made_once(tmp_path: Path) -> None:
    sudo = tmp_path / "bin/sudo"
    sudo.parent.mkdir()
    sudo.write_text('#!/bin/sh\necho "$*" >>"$0.calls"\nshift\nexec "$@"\n')
    sudo.chmod(0o755)
    plan = plan_from("jobs: {training: [{recipe: own, partition: htc}]}")
    (job,) = [job for job in plan.jobs if job.kind == "training"]
    command = shared_folders(Prepared(job.name, tmp_path, (), {}, {}, job, "0"))
    reworded = replace(job, commands=("echo look at README", *job.commands[1:]), title="another")
    assert shared_folders(Prepared(job.name, tmp_path, (), {}, {}, reworded, "0")) == command
    stage = dict(job.settings)["STAGE_PATH"]
    command = command.replace(stage, f"{tmp_path}/stage")
    for _ in range(2):
        subprocess.run(["sh", "-c", command], check=True, env={"PATH": f"{sudo.parent}:/usr/bin:/bin"})
    assert (tmp_path / "stage/images").stat().st_mode & 0o7777 == 0o1777
    assert len((tmp_path / "bin/sudo.calls").read_text().splitlines()) == 1


def test_a_folder_that_cannot_be_written_gets_nothing(user: User) -> None:
    """The result is not told, so the same command with another folder still has it."""
    user.own("no-room", job="ln -s /etc/passwd link; exit 6")
    (user.here / "a-file").write_text("")
    told = user.types("run", NAME, "no-room", "--fetch", "a-file/got")
    assert told.status == 5, told.err
    assert "Traceback" not in told.err
    told = user.types("run", NAME, "no-room", "--fetch", "got-it")
    assert told.status == 6
    assert "left behind (a link): link" in told.err
    assert not (user.here / "got-it/link").is_symlink()
    assert len(user.runs("no-room")) == 1
    assert (user.here / "got-it/job.sbatch").is_file()
