"""A verb that is killed at a connection, and typed again: done once, whatever had arrived."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.verbs.place import Living

MAIN = "from generator.cli import main; import sys; sys.exit(main(sys.argv[1:]))"
VERBS = {
    "start": (("start", "minimal.yaml", "--yes"), 2, "cyclecloud start_cluster minimal"),
    "stop": (("stop", "minimal.yaml", "--yes", "--end-jobs"), 3, "cyclecloud terminate_cluster minimal"),
    "scale": (("scale", "minimal.yaml", "htc", "1", "--yes"), 2, "scontrol update nodename=m-htc-1 state=POWER_UP"),
}


@pytest.mark.parametrize("when", ["kill-before", "kill-after"])
@pytest.mark.parametrize("verb", VERBS)
def test_killed_while_it_changes_something(living: Living, verb: str, when: str) -> None:
    words, connection, change = VERBS[verb]
    if verb != "start":
        living.runs()
    living.slurm.nodes = {"m-htc-1": ("htc", "IDLE+CLOUD+POWERED_DOWN", "")}
    living.loses((connection, when))
    environment = living.environment(Path(__file__).parents[2])
    ended = subprocess.run([sys.executable, "-c", MAIN, *words], env=environment, capture_output=True, check=False)
    assert ended.returncode == -9, ended.stderr.decode()
    assert living.changes == ([] if when == "kill-before" else [change])
    living.loses()
    code, _, err = living(*words)
    assert (code, living.changes) == (0, [change]), err


def test_a_support_archive_is_there_as_a_whole_or_not_at_all(living: Living) -> None:
    living.deployment("0" * 16)
    living.runs()
    living.loses((4, "kill-after"))
    environment = living.environment(Path(__file__).parents[2])
    words = [sys.executable, "-c", MAIN, "support", "minimal.yaml"]
    ended = subprocess.run(words, env=environment, capture_output=True, check=False)
    assert ended.returncode == -9, ended.stderr.decode()
    assert not list(living.folder.glob("*.tar.gz*"))
