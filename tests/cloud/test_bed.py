"""The bed itself: it leaves nothing behind, however it ends, and says what went wrong."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.bed.cloud import Pool, on_this_host, running_cloud
from tests.bed.cloud.files import autoscales, config_files
from tests.bed.slurm.newer import NEWER, unpacked_root

KILLED = """
import os, signal
from tests.bed.cloud import running_cloud
with running_cloud() as cloud:
    cloud.ok("srun --nodes=2 hostname")
    cloud.ok("(srun sleep 1000 >/dev/null 2>&1 &)")
    print(cloud.folder, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def processes_of(folder: str) -> list[str]:
    """Processes that have a mount of the cluster, so every one in its namespaces."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                mounts, name = (entry / "mountinfo").read_text(), (entry / "comm").read_text().strip()
            except OSError:
                continue
            if f"{folder}/etc " in mounts or f"{Path(folder).name}/etc " in mounts:
                found.append(name)
    return found


def test_a_cluster_shows_its_processes_and_ends_them() -> None:
    with running_cloud([Pool("htc", 1, default=True)]) as cloud:
        cloud.ok("srun hostname")
        assert {"slurmctld", "slurmd", "munged"} <= set(processes_of(str(cloud.folder)))
    assert not cloud.folder.exists()
    assert processes_of(str(cloud.folder)) == []


def test_a_killed_test_leaves_no_process() -> None:
    done = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    folder = Path(done.stdout.strip())
    # The kernel ends the processes when the pipe of their first one is closed, which takes a moment.
    for _ in range(1200):
        if not processes_of(str(folder)):
            break
        time.sleep(0.05)
    assert processes_of(str(folder)) == []
    subprocess.run(["rm", "-r", "--one-file-system", str(folder)], check=True)


def test_a_daemon_that_does_not_start_fails_with_its_log() -> None:
    with pytest.raises(AssertionError, match="none_such"), running_cloud(lines=["PreemptType=preempt/none_such"]):
        pass


def test_a_newer_slurm_runs_in_a_root_of_its_own_which_stays_as_it_is() -> None:
    with running_cloud([Pool("htc", 1)], start=False, release=NEWER) as cloud:
        assert f" {NEWER}." in cloud.ok("slurmctld -V")
        assert "trixie" in cloud.ok("cat /etc/os-release; touch /written /usr/bin/written")
        assert cloud.ok("ls /written") == "/written\n"
        assert {"munged", "bash"} <= set(processes_of(str(cloud.folder)))
    root = unpacked_root(NEWER)
    assert not (root / "written").exists()
    assert not (root / "usr/bin/written").exists()
    assert processes_of(str(cloud.folder)) == []


def test_the_last_suspend_time_decides_whether_azslurm_scales() -> None:
    assert autoscales("SuspendTime=-1\nSuspendTime=300\n")
    assert not autoscales("SuspendTime=300\nSuspendTime = INFINITE\n")
    assert "STATE=FUTURE" in config_files([Pool("htc", 1)], ["SuspendTime=-1"], (24, 11))["azure.conf"]


def test_what_a_release_does_not_know_is_left_out_and_nothing_else() -> None:
    lines = ("MaxBatchRequeue=3", "SuspendExcStates=DRAIN", "MaxArraySize=10")
    assert on_this_host(lines, (22, 5)) == ("MaxArraySize=10",)
    assert on_this_host(lines, (23, 2)) == lines


def test_what_a_host_cannot_have_is_replaced_and_nothing_else() -> None:
    lines = ("JobAcctGatherType=jobacct_gather/cgroup", "MaxArraySize=10", "SuspendTime=600", "SuspendTime=-1")
    assert on_this_host(lines, (24, 11)) == (
        "JobAcctGatherType=jobacct_gather/none", "MaxArraySize=10", "SuspendTime=20", "SuspendTime=-1",
    )  # fmt: skip
