"""`cycleforge prove`, typed by a user, through real ssh, with the real prove.sh on real Slurm."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from generator.cyclecloud.jobs.prepared import program
from tests.bed.scripts.shellchecked import shellcheck
from tests.runs.bed import NAME, NODES, User, kill, wait_for_line


@pytest.fixture
def prover(user: User) -> Iterator[User]:
    """A user of whom the cluster knows no proof."""
    for folder in user.runs("prove"):
        subprocess.run(["rm", "-rf", str(user.jobs / folder)], check=True)
    yield user
    subprocess.run(["rm", "-f", str(user.here / "report.html")], check=True)


def proof_of(user: User) -> Path:
    (name,) = user.runs("prove")
    return user.jobs / name


@contextmanager
def no_job_starts(user: User) -> Iterator[None]:
    """Jobs wait meanwhile."""
    user.cloud.slurm("scontrol", "update", "PartitionName=htc", "State=DOWN")
    try:
        yield
    finally:
        user.cloud.slurm("scontrol", "update", "PartitionName=htc", "State=UP")


def test_a_proof_to_its_report(prover: User) -> None:
    told = prover.types("prove", NAME, "--nodes", "1", "--yes", "--fetch", "records")
    # No GPU is here: gates that need one prove nothing.
    assert told.status == 4, told.err
    assert told.err.count("Each gate once takes at most") == 1, "prove.sh says its plan, and so does the command"
    assert "smoke: pass: 1 of 1 nodes answered" in told.err
    assert told.out == "verdict no_baseline (exit status 4 of prove.sh)\n"
    assert "smoke" in (prover.here / "report.html").read_text()
    assert list((prover.here / "records").glob("smoke-*/run.json"))
    # What was told is over: the same begins anew, and asks.
    again = prover.types("prove", NAME, "--nodes", "1")
    assert again.status == 2
    assert "there is no terminal to ask on" in again.err


def test_killed_twice_and_continued(prover: User) -> None:
    words = ("prove", NAME, "--nodes", "1", "--yes")
    with no_job_starts(prover):
        first = prover.starts(*words)
        wait_for_line(first, "smoke: job")
        kill(first)
        folder = proof_of(prover)
        second = prover.starts(*words)
        assert "ann@" in wait_for_line(second, "smoke: job")
        # The scheduler loses power: prove.sh is gone without a word, and its job waits.
        prover.cloud.ok('kill -KILL -- "-$1"', (folder / ".cycleforge/pid").read_text().split()[0])
        _, err = second.communicate()
        assert second.returncode == 4
        assert "run the same command to continue" in err
    last = prover.types(*words)
    assert last.status == 4, last.err
    assert "goes on with the run of" in last.err
    assert len(list((folder / "runs").glob("smoke-*"))) == 1, "no gate was run twice"


@pytest.mark.parametrize("number", [2, 3, 4])
def test_a_connection_that_is_lost(prover: User, number: int) -> None:
    """Of the copy, the start and what follows it."""
    words = ("prove", NAME, "--nodes", "1", "--skip", "container", "--yes")
    prover.loses(number, "after")
    told = prover.types(*words)
    assert "Traceback" not in told.err
    prover.keeps()
    if "verdict" not in told.out:
        told = prover.types(*words)
    assert told.out.startswith("verdict no_baseline"), told.err
    assert len(list((proof_of(prover) / "runs").glob("smoke-*"))) == 1, "no gate was run twice"


def test_a_node_that_is_lost_meanwhile_is_left_out(prover: User) -> None:
    with prover.cloud.with_settings("SlurmdTimeout=5"), no_job_starts(prover):
        process = prover.starts("prove", NAME, "--skip", "container", "--yes")
        wait_for_line(process, "smoke: job")
        prover.cloud.kill(NODES[0])
        said = wait_for_line(process, "smoke: job")
    _, err = process.communicate()
    prover.cloud.start(NODES[0])
    prover.wait_for("the node is back", prover.cloud.all_resumed)
    assert process.returncode == 1, said + err
    assert f"smoke: {NODES[0]} is out" in said + err
    assert "then pass on the other 1 node: 1 of 1 nodes answered" in said + err


def test_other_options_while_one_runs(prover: User) -> None:
    with no_job_starts(prover):
        first = prover.starts("prove", NAME, "--nodes", "1", "--yes")
        wait_for_line(first, "smoke: job")
        told = prover.types("prove", NAME, "--level", "standard", "--yes")
    first.communicate()
    assert told.status == 1
    assert "prove.sh runs with other options: quick --nodes=1" in told.err


@pytest.mark.parametrize("name", ["runs.sh", "proofs.sh"])
def test_what_runs_on_the_scheduler_is_clean(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(program(name))
    assert shellcheck(path, options=[]) == []
