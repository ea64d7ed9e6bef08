"""The recipe `own` on real Slurm: its example, killed in the middle, ends with the weights of an undisturbed run."""

from __future__ import annotations

import functools
import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from generator.render import jobs
from tests.bed import parts
from tests.bed.cloud import Cloud
from tests.jobs.running import job, plan_with

PYTHON = "/usr/bin/python3"
FILE = "/mnt/shared/jobs"
SETTINGS = {"PYTHON": PYTHON, "PACKAGES": "", "STAGE_PATH": "/mnt/shared/stage", "NVME_MOUNT": "", "WATCH_S": "1"}
TORCH = {"ARGUMENTS": "--steps 40 --batch 8 --save-every 10"}


DYING = """\
# The example, in which one process is killed in the middle of its first launch.
import os
import signal

import example

mean_over_ranks, first, calls = example.mean_over_ranks, not os.path.exists(os.environ["CHECKPOINT_DIR"] + "/latest"), 0


def dying(*arguments):
    global calls
    calls += 1
    if first and calls == 15 and os.environ["RANK"] == "1":
        os.kill(os.getpid(), signal.SIGKILL)
    return mean_over_ranks(*arguments)


example.mean_over_ranks = dying
example.main()
"""


def trained(steps: int) -> str:
    total = 7
    for step in range(1, steps + 1):
        total = (total * 31 + step) % 65521
    return f"finished, sum {total}"


@functools.cache
def missing_torch() -> str:
    """Why the example cannot run; empty if it can. Only looked for: each import of PyTorch is a second of CPU."""
    look = "import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, ('torch', 'numpy'))))"
    return "" if subprocess.run([PYTHON, "-c", look], check=False).returncode == 0 else "torch or numpy is missing"


class Runs:
    """The job's folder on the cluster's shared file system, and the runs that it has made."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        plan = plan_with(job("own"), parts.node_array("hpc", max_nodes=4))
        for path, file in jobs.render(plan).items():
            target = cloud.shared / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.content)
            target.chmod(0o755 if file.executable else 0o644)
        self.folder = cloud.shared / "jobs/own"
        (self.folder / "dying.py").write_text(DYING, encoding="utf-8")
        shutil.copy(Path(__file__).parent / "machine/trainer.sh", self.folder)

    def submit(self, name: str, *options: str, **settings: str) -> str:
        values = {"RUN_NAME": name, **SETTINGS, **settings}
        words = [f"SET_{key}={value}" for key, value in values.items()]
        return self.cloud.ok(
            f"cd {FILE}/own && {shlex.join(['env', *words, 'sbatch', '--parsable', *options, 'job.sbatch'])}"
        ).strip()

    def train(self, name: str, steps: int, *options: str, **settings: str) -> str:
        """The number of a new job that trains without PyTorch; Slurm starts one process on each node."""
        plain = {"SCRIPT": "trainer.sh", "LAUNCHER": "srun", "ARGUMENTS": str(steps)}
        return self.submit(name, *options, **plain | settings)

    def record(self, number: str) -> dict[str, Any]:
        self.cloud.finish(number)

        def newest() -> dict[str, Any]:
            path = sorted((self.folder / "results").glob(f"{number}*/run.json"))[-1]
            found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            return found

        # The first record of a launch says only that it has begun.
        self.cloud.wait(f"job {number} has its record", lambda: newest()["ended"] is not None)
        return newest()

    def next_of(self, record: dict[str, Any]) -> str:
        (check,) = (each for each in record["checks"] if each["check"] == "next_job")
        return str(check["value"])

    def log(self, name: str) -> str:
        path = self.cloud.shared / "stage/runs" / name / "train.log"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def wait_checkpoint(self, name: str, number: str) -> None:
        """Until the run has a checkpoint; its job must not end before."""
        latest = self.checkpoint(name) / "latest"
        ended = ("COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL")
        self.cloud.wait("a checkpoint", lambda: latest.exists() or self.cloud.job(number)["JobState"] in ended)
        assert latest.exists(), self.log(name)

    def checkpoint(self, name: str) -> Path:
        return self.cloud.shared / "stage/runs" / name / "checkpoints"


@pytest.fixture(scope="module")
def runs(mpi_cluster: Cloud) -> Runs:
    return Runs(mpi_cluster)


def weights(log: str) -> str:
    (found,) = re.findall(r"finished, weights ([0-9a-f]{64})", log)
    return str(found)


def test_the_example_goes_on_after_the_death_of_a_rank(runs: Runs) -> None:
    if why := missing_torch():
        pytest.skip(f"{PYTHON} has no PyTorch ({why}); tests/install-tools.sh installs Debian's python3-torch")
    undisturbed = runs.submit("undisturbed", "--nodes=2", LAUNCHER="srun", **TORCH)
    assert runs.record(undisturbed)["verdict"] == "pass", runs.log("undisturbed")
    # What it imports is there: the job before has tried it.
    number = runs.submit("killed", "--nodes=2", SCRIPT="dying.py", IMPORTS="", **TORCH)
    record = runs.record(number)
    assert record["verdict"] == "pass", (record, runs.log("killed"))
    assert runs.log("killed").count("=== launch") == 2
    assert ", from step 10, on " in runs.log("killed").split("=== launch 2")[1]
    assert weights(runs.log("killed")) == weights(runs.log("undisturbed"))


def test_a_run_goes_on_over_jobs(runs: Runs) -> None:
    """The time limit, a person's request and Slurm's requeue at the same time, each for a run of its own."""
    # Nobody waits for the first one: its time is over when the others are done.
    limited = runs.train("limited", 20, "--nodes=1", "--time=1", STOP_BEFORE_END_S="20")
    asked = runs.train("asked", 20, "--nodes=1")
    requeued = runs.train("requeued", 20, "--nodes=2")
    for name, number in (("asked", asked), ("requeued", requeued)):
        runs.wait_checkpoint(name, number)
    runs.cloud.slurm("scancel", "--signal=USR1", "--batch", asked)
    runs.cloud.slurm("scontrol", "requeue", requeued)
    runs.cloud.wait_job(requeued, "PENDING")
    # Slurm lets a job that it has put back wait for two minutes, because nodes refuse every credential of the second in
    # which the job was killed, or of one before. The next second does.
    # Source: SchedMD/slurm, src/slurmctld/job_mgr.c (batch_requeue_fini) and, in 22.05, src/common/slurm_cred.c
    # (_credential_revoked).
    runs.cloud.slurm("scontrol", "update", f"JobId={requeued}", "StartTime=now+1")

    first = runs.record(asked)
    assert first["verdict"] == "no_baseline", first
    assert runs.record(runs.next_of(first))["verdict"] == "pass"
    assert runs.log("asked").endswith(trained(20) + "\n")

    again = runs.record(requeued)
    assert (again["verdict"], again["run"]) == ("pass", f"{requeued}-restart1"), (again, runs.log("requeued"))
    assert runs.log("requeued").count("=== launch") == 2
    assert runs.log("requeued").endswith(trained(20) + "\n")

    record = runs.record(limited)
    while record["verdict"] == "no_baseline":
        record = runs.record(runs.next_of(record))
    assert record["verdict"] == "pass", (record, runs.log("limited"))
    assert runs.log("limited").count("=== launch") > 1
    assert runs.log("limited").endswith(trained(20) + "\n")
    said = runs.cloud.ok(f"cd {FILE}/own && env SET_STAGE_PATH=/mnt/shared/stage ./run.sh --status limited")
    assert said.startswith("run       limited: finished\nprogress  step 20 of 20, saved: 20\n"), said


def test_a_bad_node_is_left_out_and_what_cannot_go_on_says_so(runs: Runs) -> None:
    """A node that is drained under a run with a spare one; a script that always breaks; a full file system."""
    spare = runs.train("spare", 25, "--nodes=2", SPARE_NODES="1")
    numbers = {}
    for name, words in (("broken", "wrong\n"), ("full", "No space left on device\n")):
        runs.checkpoint(name).mkdir(parents=True)
        (runs.checkpoint(name) / "break").write_text(words, encoding="utf-8")
        numbers[name] = runs.train(name, 20, "--nodes=1", RESUME="1", MAX_SAME_STEP="2")
    runs.wait_checkpoint("spare", spare)
    (node,) = re.findall(r"=== launch 1 .* on (\S+)\n", runs.log("spare"))
    runs.cloud.drain(node, "an XID")
    try:
        runs.cloud.ok(
            'scancel --signal=KILL "$(squeue --steps --noheader --jobs="$1" --format=%i | grep -E "\\.[0-9]+$")"', spare
        )
        record = runs.record(spare)
    finally:
        runs.cloud.resume(node)
    assert record["verdict"] == "warn", (record, runs.log("spare"))
    (gate,) = (each for each in record["checks"] if each["check"] == "node_gate")
    assert (gate["nodes"], "drain" in gate["detail"]) == ([node], True)
    assert node not in runs.log("spare").split("=== launch 2")[1]
    assert runs.log("spare").endswith(trained(25) + "\n")
    for name, launches, said in (
        ("broken", 2, "2 launches in a row have ended at step 0"),
        ("full", 1, "the file system of /mnt/shared/stage/runs/full is full"),
    ):
        record = runs.record(numbers[name])
        assert record["verdict"] == "error"
        assert said in record["summary"]
        assert runs.log(name).count("=== launch") == launches
