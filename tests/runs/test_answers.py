"""What Slurm and its accounts say, late, wrongly or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from generator.cyclecloud.jobs.prepared import PROGRAM
from tests.runs.bed import NAME, User, wait_for_line

GATED = "until [[ -e go ]]; do sleep 0.1; done"


@contextmanager
def no_controller(user: User) -> Iterator[None]:
    """slurmctld is stopped meanwhile."""
    user.cloud.stop_controller()
    try:
        yield
    finally:
        user.cloud.start_controller()


@contextmanager
def no_accounts(user: User) -> Iterator[None]:
    """slurmdbd is stopped meanwhile."""
    user.cloud.ok("pkill -x slurmdbd; while pgrep -x slurmdbd >/dev/null; do sleep 0.05; done")
    try:
        yield
    finally:
        user.cloud.ok("slurmdbd; until sacctmgr -n show cluster; do sleep 0.1; done")


def forget(user: User, jobs: int) -> None:
    """Slurm keeps none of its jobs, which have ended; its accounts do. It goes on counting where it was."""
    ends = ("sacct", "-nXP", "--starttime=now-1hours", "--format=End")

    def all_are_known() -> bool:
        known = user.cloud.slurm(*ends).split()
        return len(known) >= jobs and "Unknown" not in known

    user.wait_for("the accounts know all ends", all_are_known)
    last = user.cloud.ok("sacct -nXP --format=JobIDRaw | sort -n | tail -n 1").strip()
    user.cloud.stop_controller()
    user.cloud.ok("rm -f /var/spool/slurmctld/job_state* /var/spool/slurmctld/hash.*/* 2>/dev/null; true")
    path = user.cloud.folder / "etc/slurm.conf"
    text = path.read_text()
    path.write_text(f"{text}FirstJobId={int(last) + 1}\n")
    user.cloud.start_controller()
    path.write_text(text)
    assert user.submitted("") == []


def test_what_slurm_has_forgotten_is_in_its_accounts(user: User) -> None:
    user.own("old", _10_first="true", job=f"{GATED}; exit 7")
    user.own("lost", job=f"{GATED}; exit 8")
    user.own("moved", job=f"scontrol update JobId=$SLURM_JOB_ID JobName=mine; {GATED}; exit 6")
    for name in ("old", "lost", "moved"):
        assert user.types("run", NAME, name).status == 0
    (old,), (lost,), (moved,) = (user.runs(name) for name in ("old", "lost", "moved"))
    user.wait_for("it has another name", lambda: "mine" in user.cloud.slurm("squeue", "-h", "--format=%j"))
    state = user.asks(f"bash jobs/{moved}/.cycleforge/{PROGRAM} state {moved}")
    assert "RUNNING" in state, "a job that was renamed is not forgotten"
    for run in (old, lost, moved):
        (user.jobs / run / "go").touch()
    user.wait_for("all have ended", lambda: user.cloud.slurm("squeue", "-h") == "")
    # The answer of sbatch was lost, too.
    (user.jobs / lost / ".cycleforge/job.sbatch.ids").unlink()
    (user.jobs / lost / ".cycleforge/job.sbatch.tasks").unlink(missing_ok=True)
    forget(user, 4)
    with no_accounts(user):
        told = user.types("run", NAME, "lost")
        assert told.status == 4
        assert "Slurm's accounts do not answer" in told.err
    for name, status in (("old", 7), ("lost", 8), ("moved", 6)):
        told = user.types("run", NAME, name, "--wait")
        assert told.status == status, told.err
        assert f"FAILED, exit status {status}" in told.out
        assert len(user.runs(name)) == 1
    assert user.submitted("") == [], "nothing was submitted twice"


def test_a_controller_that_is_away_while_a_job_is_followed(user: User) -> None:
    user.own("patient", job=f"echo begun; {GATED}; echo done; exit 5")
    process = user.starts("run", NAME, "patient", "--wait")
    wait_for_line(process, "begun")
    (run,) = user.runs("patient")
    user.own("other", job="true")
    with no_controller(user):
        assert "the question is repeated" in wait_for_line(process, "Slurm does not answer: ")
        told = user.types("run", NAME, "other")
        assert told.status == 4, told.out
        assert "Slurm does not answer" in told.err
        assert told.out == "", "nothing is said to be submitted"
        (user.jobs / run / "go").touch()
    wait_for_line(process, "Slurm answers again")
    assert process.communicate()[0].startswith("verdict fail")
    assert process.returncode == 5
    assert user.types("run", NAME, "other", "--wait").status == 0
    assert len(user.submitted(user.runs("other")[0])) == 1


def test_a_disk_that_is_full_while_a_job_is_followed(user: User) -> None:
    user.own("full", job=f"echo begun; {GATED}; exit 6")
    process = user.starts("run", NAME, "full", "--wait")
    wait_for_line(process, "begun")
    (run,) = user.runs("full")
    own = f"$HOME/jobs/{run}/.cycleforge"
    # The job writes elsewhere, so that it can end.
    user.cloud.ok(
        f"cp -a {own} /tmp/own; mount -t tmpfs -o size=256k tmpfs {own}; cp -a /tmp/own/. {own}; rm -r /tmp/own"
    )
    try:
        user.cloud.ok(f"cat /dev/zero >{own}/other 2>/dev/null || true")
        (user.jobs / run / "go").touch()
        assert "the question is repeated" in wait_for_line(process, "is the disk full?")
        user.cloud.ok(f"rm {own}/other")
        process.communicate()
    finally:
        # Whoever follows the job may still be in the folder.
        user.cloud.ok(f"umount --lazy {own}")
    assert process.returncode == 6


def test_a_job_is_as_if_it_was_typed(user: User) -> None:
    """Neither our locale nor names of our own programs are in its way, and all parts of a heterogeneous job count."""
    folder = user.own("typed", _10_first='echo "locale ${LC_ALL-none}, $step $REQUEST_S $ENDED"', job="")
    (folder / "job.sbatch").write_text(
        '#!/bin/bash\n#SBATCH --output="out put" --ntasks=1\n#SBATCH hetjob\n#SBATCH --ntasks=1\n'
        "echo both parts; exit 3\n"
    )
    words = [f"--set={name}=own" for name in ("step", "REQUEST_S", "ENDED", "base")]
    told = user.types("run", NAME, "typed", *words, "--wait", "--json")
    assert told.status == 3, told.err
    assert "locale none, own own own" in told.err
    assert "both parts" in told.err
    assert [task["id"].partition("+")[2] for task in told.json["steps"][1]["tasks"]] == ["0", "1"]


def test_tasks_of_an_array_are_followed(user: User) -> None:
    folder = user.own("tasks", job='echo "I am $SLURM_ARRAY_TASK_ID"; exit $((SLURM_ARRAY_TASK_ID % 2))')
    path = folder / "job.sbatch"
    path.write_text(path.read_text().replace("%x_%j", "%A_%a.out").replace("\n", "\n#SBATCH --array=0-3\n", 1))
    told = user.types("run", NAME, "tasks", "--wait", "--json")
    assert told.status == 1, told.err
    job = told.json["steps"][0]["job"]
    for task in range(4):
        assert f"{job}_{task}: I am {task}" in told.err.splitlines()
    assert f"2 of 4 tasks failed: {job}_1 FAILED 1:0, {job}_3 FAILED 1:0" in told.json["summary"]
