"""`cycleforge start` and `stop`: look, ask, once, read back."""

from __future__ import annotations

import pytest

from tests.bed.ssh.hosts import hosts
from tests.verbs.place import Living

START = ("start", "minimal.yaml", "--yes")
STOP = ("stop", "minimal.yaml", "--yes")
BEGUN = ["cyclecloud start_cluster minimal"]
ENDED = ["cyclecloud terminate_cluster minimal"]
RUNNING = ("7", "ada", "htc", "RUNNING", "1:02", "minimal-htc-[1-2]", "train|\x1b[2Jrun")
WAITING = ("8", "ada", "htc", "PENDING", "0:00", "", "next")


def test_it_starts_once_and_reads_back(living: Living) -> None:
    code, out, err = living(*START)
    assert (code, living.changes) == (0, BEGUN), err
    assert "Standard_D4as_v5" in out
    assert "minimal: started" in out
    code, out, _ = living(*START)
    assert (code, "started already" in out, living.changes) == (0, True, BEGUN)


def test_a_second_person_is_told(living: Living) -> None:
    living.clusters.converges = False
    assert living(*START)[0] == 0
    code, out, _ = living(*START)
    assert (code, "is being started (allocation -> started)" in out, living.changes) == (0, True, BEGUN)
    living.cluster.update(state="termination", target="terminated")
    code, _, err = living(*START)
    assert (code, "is being stopped" in err, living.changes) == (1, True, BEGUN)


def test_a_question_comes_first(living: Living) -> None:
    living.types("n\n")
    assert (living("start", "minimal.yaml")[0], living.changes) == (1, [])
    living.types("y\n")
    assert (living("start", "minimal.yaml")[0], living.changes) == (0, BEGUN)


def test_an_answer_that_is_lost_while_reading_back_is_no_success(living: Living) -> None:
    living.loses((2, "after"), (3, "before"))
    code, _, err = living(*START)
    assert (code, "does not answer" in err or "timed out" in err) == (4, True), err
    assert (living(*START)[0], living.changes) == (0, BEGUN)


def test_stop_shows_the_jobs_that_end(living: Living) -> None:
    living.runs()
    living.slurm.jobs = [RUNNING, WAITING]
    code, out, err = living(*STOP)
    assert (code, living.changes) == (1, [])
    assert "because jobs run" in err
    assert "1 job would end:" in out
    assert "1 job would wait" in out
    assert "2 VMs would be deleted: scheduler" in out or "2 VMs would be deleted: login-1, scheduler" in out
    assert "train|\\x1b[2Jrun" in out
    assert "/shared" in out
    code, out, err = living(*STOP, "--end-jobs")
    assert (code, living.changes, "minimal: terminated" in out) == (0, ENDED, True), err
    assert (living(*STOP)[0], living.changes) == (0, ENDED)


def test_stop_says_where_the_other_jobs_are(living: Living) -> None:
    living.runs()
    living.slurm.jobs = [RUNNING] * 35
    out = living(*STOP)[1]
    assert "35 jobs would end:" in out
    assert "… and 5 more; `squeue` on the scheduler lists all" in out


def test_stop_without_jobs_needs_no_more_than_yes(living: Living) -> None:
    living.runs()
    living.slurm.jobs = [WAITING]
    assert (living(*STOP)[0], living.changes) == (0, ENDED)


@pytest.mark.parametrize("silent", ["path", "slurm"])
def test_jobs_that_nobody_can_list_count_as_running(living: Living, silent: str) -> None:
    living.runs()
    if silent == "path":
        living.has_no_path_to("scheduler")
    living.slurm.answers = False
    code, out, err = living(*STOP)
    assert (code, living.changes, "jobs: unknown, because" in out) == (1, [], True)
    assert "--yes --end-jobs" in err


def test_without_a_path_it_goes_through_azure(living: Living) -> None:
    living.has_no_path_to("server")
    code, out, err = living(*START)
    assert (code, living.changes, living.arm.refused) == (0, BEGUN, []), err
    assert "Azure's run command" in err
    assert "minimal: started" in out


def test_through_a_real_ssh(living: Living) -> None:
    """What the scripts are, a real sshd and the user's shell take."""
    living.runs()
    living.slurm.jobs = [RUNNING]
    (living.folder / "bin/ssh").unlink()
    with hosts(living.folder / "ssh", "server", "scheduler") as bed:
        living.is_behind(bed)
        code, out, err = living(*STOP, "--end-jobs")
        assert (code, living.changes, "1 job would end" in out) == (0, ENDED, True), err
        assert living(*START)[0] == 0
    assert living.changes == [*ENDED, *BEGUN]


def test_print_asks_nobody(living: Living) -> None:
    code, out, _ = living("start", "minimal.yaml", "--print")
    assert (code, out) == (0, "ssh -F output/minimal/ssh_config server 'cyclecloud start_cluster minimal'\n")
    code, out, _ = living("stop", "minimal.yaml", "--print")
    assert [line.split(maxsplit=4)[3] for line in out.splitlines()] == ["scheduler", "server"]
    assert (living.site.calls, living.arm.requests) == ([], [])


def test_nobody_logged_in_says_what_to_type(living: Living) -> None:
    (living.folder / "home-server/.cycle/config.ini").unlink()
    code, _, err = living(*START)
    assert (code, living.changes) == (4, [])
    assert "no user is logged in" in err
    assert "ssh -F output/minimal/ssh_config -t server cyclecloud initialize" in err
    (living.folder / "hosts/server/cyclecloud").unlink()
    assert "is not installed" in living(*START)[2]


def test_an_unknown_cluster_is_no_stopped_one(living: Living) -> None:
    living.site.clusters.clear()
    for verb in (START, STOP, ("nodes", "minimal.yaml"), ("retry", "minimal.yaml", "--yes")):
        code, _, err = living(*verb)
        assert (code, "the server shows no cluster 'minimal'" in err) == (4, True), err
