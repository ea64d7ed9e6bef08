"""Deep checks on an idle node, and how a job that starts ends them: cleanly, within seconds, nothing else touched."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.bed.scripts.healthy import Healthy, healthy
from tests.projects.conftest import MakeNode

SLOW = 'echo "$$" >>"$FAKE_STATE/tools"; trap "" {ignored}; sleep 3600 & wait'
SESSION_FILE = "run/cycleforge/health-deep.session"


@pytest.fixture
def node(make_node: MakeNode) -> Iterator[Healthy]:
    """Its deep checks are due, and the first tool takes long."""
    node = healthy(make_node("slurm_nhc"), deep_s=100)
    (node.root / "var/lib/cycleforge/health/deep.json").unlink(missing_ok=True)
    node.fake("nvbandwidth", SLOW.format(ignored="USR1"))
    yield node
    for line in tool_pids(node):
        subprocess.run(["kill", "-9", line], check=False, capture_output=True)


def tool_pids(node: Healthy) -> list[str]:
    file = node.state / "tools"
    return file.read_text().split() if file.exists() else []


def alive(pid: str) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


@contextmanager
def idle_run(node: Healthy) -> Iterator[subprocess.Popen[bytes]]:
    """A deep run that has reached its first tool."""
    script = node.root / "opt/cycleforge/slurm_nhc/health.sh"
    log = node.state / "idle.log"
    with (
        log.open("wb") as stream,
        subprocess.Popen([str(node.bin / "bash"), str(script), "deep", "idle"], env=node.environment(), stdout=stream,
                         stderr=stream) as process,
    ):  # fmt: skip
        while not tool_pids(node):
            assert process.poll() is None, log.read_text()
            time.sleep(0.05)
        yield process


def test_a_job_ends_the_run_and_everything_it_started(node: Healthy) -> None:
    with idle_run(node) as process:
        code, output = node.health("gate")
        assert (code, "a deep run was ended because a job starts" in output) == (0, True)
        assert process.wait() == 0
    assert not [pid for pid in tool_pids(node) if alive(pid)]
    assert not (node.root / "var/lib/cycleforge/health/standing").exists()
    assert not (node.root / "var/lib/cycleforge/health/deep.json").exists()
    assert not (node.root / SESSION_FILE).exists()
    assert node.calls("scontrol update") == []


@pytest.mark.parametrize("group", ["", "set -m; "], ids=["its own group", "a group of its child"])
def test_a_tool_that_does_not_listen_is_ended_by_force(node: Healthy, group: str) -> None:
    """What has a process group of its own, as ranks of MPI do, `timeout` does not reach either: timeout(1)."""
    deaf = SLOW.format(ignored="TERM").replace("$$", "$BASHPID")
    node.fake("nvbandwidth", f"{group}({deaf}) & wait; wait")
    with idle_run(node) as process:
        assert node.health("gate")[0] == 0
        process.wait()
    assert not [pid for pid in tool_pids(node) if alive(pid)]


def test_what_a_killed_run_has_left_is_ended_too(node: Healthy) -> None:
    with idle_run(node) as process:
        subprocess.run(["kill", "-9", (node.root / SESSION_FILE).read_text().strip()], check=True)
        process.wait()
    assert [pid for pid in tool_pids(node) if alive(pid)], "the tool outlives its script"
    assert node.health("gate")[0] == 0
    assert not [pid for pid in tool_pids(node) if alive(pid)]


def test_a_stranger_with_the_number_of_an_old_run_is_left_alone(node: Healthy) -> None:
    stranger = subprocess.Popen(["sleep", "3600"], start_new_session=True)
    try:
        node.write(SESSION_FILE, f"{stranger.pid}\n")
        assert node.health("gate")[0] == 0
        assert stranger.poll() is None
        assert not (node.root / SESSION_FILE).exists()
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.parametrize("content", ["", "garbage\n", "-1\n", "0\n", "1 2\n"])
def test_a_damaged_file_kills_nobody(node: Healthy, content: str) -> None:
    node.write(SESSION_FILE, content)
    assert node.health("gate")[0] == 0


@pytest.mark.parametrize(
    "state",
    [
        "ALLOCATED", "MIXED", "IDLE+DRAIN", "IDLE+POWERING_DOWN", "IDLE+COMPLETING", "DOWN", "IDLE*",
        "IDLE+MAINTENANCE", "IDLE+CLOUD+POWERED_DOWN", "IDLE+RESERVED", "UNKNOWN",
    ],
)  # fmt: skip
def test_no_run_on_a_node_that_is_not_exactly_idle(node: Healthy, state: str) -> None:
    (node.state / "slurm_state").write_text(state + "\n")
    assert node.health("deep", "idle")[0] == 0
    assert tool_pids(node) == []
    assert not (node.root / SESSION_FILE).exists()


def test_a_cloud_node_counts_as_idle(node: Healthy) -> None:
    (node.state / "slurm_state").write_text("IDLE+CLOUD\n")
    with idle_run(node):
        node.health("gate")


def test_no_run_before_the_last_one_is_old_enough(node: Healthy) -> None:
    file = node.write("var/lib/cycleforge/health/deep.json", "{}\n")
    assert node.health("deep", "idle")[0] == 0
    assert tool_pids(node) == []
    day_ago = time.time() - 24 * 3600 - 60
    os.utime(file, (day_ago, day_ago))
    with idle_run(node):
        node.health("gate")


def test_zero_hours_switch_it_off(node: Healthy) -> None:
    (node.state / "active/slurmd.service").write_text("active\n")
    node.attribute("cycleforge.health.idle_deep_h", "0")
    node.ok("20-health.sh")
    (node.root / "var/lib/cycleforge/health/deep.json").unlink(missing_ok=True)
    assert node.health("deep", "idle")[0] == 0
    assert tool_pids(node) == []


def test_an_idle_node_that_fails_is_drained_at_once(node: Healthy) -> None:
    node.fake("nvbandwidth", "printf '           0\\n 0     9.50\\n'")
    assert node.health("deep", "idle")[0] == 0
    assert node.reason().startswith("CycleForge health: deep_checks (gpu_copy_to_device 9.50 GB/s, at least 21 GB/s")
    assert node.health("gate")[0] == 3


def test_a_converge_on_a_node_in_use_measures_nothing(node: Healthy) -> None:
    (node.state / "active/slurmd.service").write_text("active\n")
    node.attribute("cycleforge.health.deep_s", "200")
    node.ok("20-health.sh")
    assert tool_pids(node) == []
    assert node.health("deep", "boot")[0] == 0
    assert tool_pids(node) == []
