"""The lines of --print, pasted into a shell, and the names in hints."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.verbs.place import Living
from tests.verbs.test_nodes import FAILED, GOOD


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("start",), ["cyclecloud start_cluster minimal"]),
        (("stop",), ["squeue --states=running", "cyclecloud terminate_cluster minimal"]),
        (("nodes",), ["cyclecloud show_nodes -c minimal", "scontrol --oneliner show node"]),
        (("retry",), ["cyclecloud retry minimal"]),
        (("scale", "htc", "2"), ["scontrol update nodename=htc-2 state=POWER_UP"]),
        (("status",), ["cyclecloud show_cluster minimal"]),
        (("logs", "--lines", "7"), []),
        (("logs", "scheduler"), []),
    ],
)
def test_they_work_where_they_are_pasted(living: Living, words: tuple[str, ...], said: list[str]) -> None:
    living.runs(GOOD, FAILED)
    living.slurm.nodes = {"htc-2": ("htc", "IDLE+CLOUD+POWERED_DOWN", ""), "htc-10": ("htc", "MIXED+CLOUD", "")}
    for path in ("cycleforge/bootstrap.log", "slurmctld/slurmctld.log"):
        log = living.folder / "root/var/log" / path
        log.parent.mkdir(parents=True)
        log.write_text("a line of it\n")
    (living.folder / "output").rename(living.folder / "out put")
    code, out, err = living(words[0], "minimal.yaml", "--out", "out put", *words[1:], "--print")
    assert code == 0, err
    lines = [line for line in out.splitlines() if not line.startswith("az ")]
    living.site.calls.clear()
    own = {"PATH": os.environ["PATH"]}
    ran = [subprocess.run(["bash", "-c", line], capture_output=True, text=True, env=own, check=False) for line in lines]
    calls = [f"{call['name']} {' '.join(call['argv'])}" for call in living.site.calls]
    assert [call.startswith(text) for call, text in zip(calls, said, strict=True)] == [True] * len(said), calls
    assert words[0] != "logs" or "a line of it" in ran[0].stdout, ran


def test_a_hint_has_the_name_that_was_typed(living: Living) -> None:
    living.site.clusters.pop("minimal")
    assert "hint: `cycleforge status minimal.yaml` shows" in living("nodes", "minimal.yaml")[2]
    code, _, err = living("logs", "minimal", "a b")
    assert (code, "`cycleforge nodes minimal` lists them" in err) == (2, True)
    assert "`cycleforge nodes minimal` shows what is started" in living("scale", "minimal", "htc", "1")[2]


def test_logs_to_follow_that_are_not_there_are_an_error(living: Living) -> None:
    code, out, err = living("logs", "minimal", "scheduler", "--follow")
    assert (code, out, "has none of these logs" in err) == (4, "", True)


def test_the_way_is_remembered_for_ssh_from_elsewhere(living: Living) -> None:
    assert living("start", "minimal.yaml", "--out", "output", "--print")[0] == 0
    (note,) = living.folder.glob("home/**/connect/minimal.json")
    assert str(living.folder / "minimal.yaml") in note.read_text()
