"""`prove.sh` killed anywhere and started again; two at once; Slurm that is silent, forgets, or loses an answer."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.prove.folder import Bed, gate

GATES = (gate("smoke"), gate("health"))
TEXTS = {"smoke": "passes", "health": "blames n3"}
JOBS = ["smoke-1 n1,n2,n3,n4", "health-1 n1,n2,n3,n4", "health-2 n1,n2,n4"]
ENV = """
# Every command of prove.sh's own process is counted, and the one with the number KILL_AT is its last. A run that is
# over does not go on, so it is not killed any more.
if [[ "$0" == */prove.sh ]]; then
    set -T
    before_each() {
        [[ $BASHPID == $$ ]] || return 0
        ((++counted != KILL_AT)) || compgen -G 'prove.state/*/ended' >/dev/null || kill -KILL $$
        [[ $1 != exit* ]] || echo $counted >"$FAKE/counted"
    }
    trap 'before_each "$BASH_COMMAND"' DEBUG
fi
"""


def counting(bed: Bed, at: int) -> dict[str, str]:
    """The environment in which a start is killed before the command of that number; 0: never."""
    bed.set("env.sh", ENV)
    return {"BASH_ENV": str(bed.fake / "env.sh"), "KILL_AT": str(at)}


def outcome(bed: Bed) -> dict[str, object]:
    """What must be the same however often a run was killed."""
    record = bed.record()
    gates = [(row["gate"], row["verdict"], row["summary"], row["runs"]) for row in record["gates"]]
    replace = [
        {name: row[name] for name in ("name", "physical_host", "gate", "how", "why")} for row in record["replace"]
    ]
    return {
        "jobs": bed.submitted(),
        "drains": bed.drains(),
        "gates": gates,
        "replace": replace,
        "end": record["verdict"],
    }


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Bed:
    """A run that nobody has killed."""
    bed = Bed(tmp_path_factory.mktemp("whole"), GATES, TEXTS)
    assert bed.prove("--yes", **counting(bed, 0)).code == 1
    assert outcome(bed)["jobs"] == JOBS
    return bed


@pytest.mark.parametrize("starts", [3, 4, 5])
def test_killed_again_and_again_it_goes_on_where_it_was(tmp_path: Path, whole: Bed, starts: int) -> None:
    """Each start is killed after a part of the commands that a whole run takes."""
    commands = int((whole.fake / "counted").read_text())
    bed = Bed(tmp_path, GATES, TEXTS)
    said, code = "", -signal.SIGKILL
    for at in range(commands // starts, 2 * commands, commands // starts // 4):
        proof = bed.prove("--yes", **counting(bed, at))
        said, code = said + proof.output, proof.code
        if code != -signal.SIGKILL:
            break
    assert code == 1, said
    assert said.count("goes on with the run of") >= 2
    assert outcome(bed) == outcome(whole), said


def requests(bed: Bed, command: str) -> list[int]:
    """The numbers of the requests that were this command."""
    rows = (bed.fake / "calls").read_text().splitlines()
    return [number for number, row in enumerate(rows, 1) if row.startswith(command)]


@pytest.mark.parametrize(("command", "when"), [("sbatch", "before"), ("sbatch", "after"), ("scontrol update", "after")])
def test_killed_around_a_request_it_is_made_once(tmp_path: Path, whole: Bed, command: str, when: str) -> None:
    number = requests(whole, command)[-1]
    bed = Bed(tmp_path, GATES, TEXTS)
    assert bed.prove("--yes", KILL=f"{number} {when}").code == -signal.SIGKILL
    assert bed.prove("--yes").code == 1
    assert outcome(bed) == outcome(whole)


def test_a_request_that_is_still_on_its_way_is_waited_for(tmp_path: Path, whole: Bed) -> None:
    bed = Bed(tmp_path, [gate("smoke")], TEXTS)
    bed.set("slow")
    killed = bed.prove("--yes", KILL=f"{requests(whole, 'sbatch')[0]} before")
    assert killed.code == -signal.SIGKILL, killed.output
    proof = bed.prove("--yes", PROVE_SETTLE_S="6")
    assert proof.code == 0, proof.output
    assert "found again: job 101" in proof.output
    assert bed.submitted() == ["smoke-1 n1,n2,n3,n4"]


@pytest.mark.parametrize("accounting", [False, True])
def test_a_job_that_slurm_has_forgotten_is_found_again(tmp_path: Path, whole: Bed, *, accounting: bool) -> None:
    """By the output file of its start; a job without one by accounting, where that is on."""
    text = "passes; rm " + '"${output//%j/${id}}"' if accounting else "passes"
    bed = Bed(tmp_path, [gate("smoke")], {"smoke": text})
    bed.prove("--yes", KILL=f"{requests(whole, 'sbatch')[0]} after")
    bed.set("forgets")
    if accounting:
        bed.set("accounting")
    proof = bed.prove("--yes")
    assert proof.code == 0, proof.output
    assert bed.submitted() == ["smoke-1 n1,n2,n3,n4"]


def test_a_silent_controller_is_asked_again_and_a_lost_answer_is_no_refusal(tmp_path: Path) -> None:
    bed = Bed(tmp_path, [gate("smoke"), gate("other")], {"smoke": 'echo 3 >"$FAKE/down"; passes', "other": "passes"})
    bed.set("lost")
    proof = bed.prove("--yes")
    assert proof.code == 0, proof.output
    assert "Slurm does not answer (squeue: slurm_load_jobs error: Unable to contact slurm controller" in proof.output
    assert bed.submitted() == ["smoke-1 n1,n2,n3,n4", "other-1 n1,n2,n3,n4"]
    bed.set(
        "refuses",
        "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified\n",
    )
    refused = bed.prove("--yes")
    assert refused.code == 2
    assert {refused.verdict("smoke"), refused.verdict("other")} == {"not proven"}
    assert "Invalid account or account/partition combination" in refused.output


@pytest.mark.parametrize("text", ["--user=somebody", "", "7 8", "0x7"])
def test_what_is_no_id_of_a_job_is_not_cancelled(tmp_path: Path, whole: Bed, text: str) -> None:
    """Others may write this folder, and scancel takes options. The time of the run is over, so its job is cancelled."""
    bed = Bed(tmp_path, [gate("smoke")], {"smoke": "state=PENDING"})
    bed.prove("--yes", KILL=f"{requests(whole, 'sbatch')[0]} after")
    (state,) = (bed.jobs / "prove.state").glob("quick-*")
    (state / "run").write_text(re.sub(r"(?m)^max_s=.*", "max_s=0", (state / "run").read_text()))
    (state / "01-smoke/1.job").write_text(f"{text}\n")
    proof = bed.prove("--yes")
    assert f"01-smoke/1.job has '{text}' for the id of a job; begin anew with --new" in proof.output
    assert proof.code == 2
    assert requests(bed, "scancel") == []


@contextmanager
def running(bed: Bed) -> Iterator[subprocess.Popen[bytes]]:
    """A start whose job does not end."""
    environment = bed.environment | {"PROVE_POLL_S": "0.2"}
    command = [str(bed.jobs / "prove.sh"), "--yes"]
    said = (bed.fake / "said").open("wb")
    with said, subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=said) as process:
        try:
            deadline = time.monotonic() + 60
            while not list(bed.jobs.glob("prove.state/*/*/1.job")):
                assert time.monotonic() < deadline, "no job was submitted"
                time.sleep(0.05)
            yield process
        finally:
            process.kill()


def test_a_second_start_is_told_and_one_after_a_kill_waits_for_the_same_job(tmp_path: Path) -> None:
    bed = Bed(tmp_path, [gate("smoke")], {"smoke": "passes; state=RUNNING"})
    with running(bed) as process:
        second = bed.prove("--yes")
        assert second.code == 2
        assert re.search(rf"is proving from this folder already \(process {process.pid} on ", second.output)
        process.kill()
    row = bed.fake / "jobs/101"
    row.write_text(row.read_text().replace("RUNNING", "COMPLETED"))
    other = bed.prove("standard", "--yes")
    assert other.code == 2
    assert "a run of level quick on partition gpu is not over" in other.output
    proof = bed.prove()
    assert proof.code == 0, proof.output
    assert "smoke: goes on with job 101" in proof.output
    assert bed.submitted() == ["smoke-1 n1,n2,n3,n4"]


def test_a_run_that_is_given_up_loses_its_job(tmp_path: Path) -> None:
    bed = Bed(tmp_path, [gate("smoke")], {"smoke": "state=RUNNING"})
    with running(bed) as process:
        process.terminate()
        process.wait(60)
    assert not (bed.jobs / "prove.state/lock").exists(), "who ends it in an ordinary way leaves no lock"
    assert "type: ./prove.sh quick --partition gpu" in (bed.fake / "said").read_text()
    bed.set("jobs.d/smoke", "passes")
    assert bed.prove("--yes", "--new").code == 0
    assert (bed.fake / "jobs/101").read_text().startswith("CANCELLED|")
    assert len(bed.submitted()) == 2


def test_others_on_the_partition_or_on_another_host(tmp_path: Path) -> None:
    bed = Bed(tmp_path, [gate("smoke")], {"smoke": "passes"})
    bed.set("jobs/900", "RUNNING|prove-quick-gpu-20261123T060000Z-7-01-smoke-1|n1|None\n")
    bed.set("users/900", "alice")
    told = bed.prove("--yes")
    assert told.code == 2
    assert "partition gpu is being proven already by alice (job 900" in told.output
    (bed.fake / "jobs/900").unlink()
    lock = bed.jobs / "prove.state/lock"
    lock.mkdir(parents=True)
    (lock / "holder").write_text("elsewhere 17 99 bob\n")
    (lock / "beat").touch()
    told = bed.prove("--yes")
    assert told.code == 2
    assert "bob is proving from this folder already (process 17 on elsewhere)" in told.output
    os.utime(lock / "beat", (time.time() - 3600,) * 2)
    assert bed.prove("--yes").code == 0, "it has given no sign of life for an hour"
    assert not lock.exists()
