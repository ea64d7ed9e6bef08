"""`cycleforge nodes` and `retry`."""

from __future__ import annotations

import json

import pytest

from generator.cyclecloud.cluster import nodes_of, read_nodes
from generator.cyclecloud.command_line import NotDone
from tests.answers import data_of
from tests.bed.server.fakes.clusters import READY
from tests.verbs.place import Living

MESSAGE = "Failed to execute cluster-init script '20-x.sh' in project 'misc' (return code: 1)\x1b[2J"
FAILED = {"Name": "htc-1", "Template": "htc", "State": "Software Installation", "Status": "Failed",
          "TargetState": "Started", "StatusMessage": MESSAGE, "InstanceId": "vm-1"}  # fmt: skip
GOOD = {"Name": "htc-10", "Template": "htc", "InstanceId": "vm-2", **READY}
GONE = {"Name": "htc-2", "Template": "htc", "State": "Off", "Status": "Off", "TargetState": "Off"}


def test_both_sides_of_each_node(living: Living) -> None:
    living.runs(GOOD, FAILED, GONE)
    living.slurm.nodes = {
        "htc-1": ("htc", "DOWN+CLOUD+POWERING_UP", ""),
        "htc-2": ("htc", "IDLE+CLOUD+POWERED_DOWN", ""),
        "htc-3": ("htc,all", "IDLE+CLOUD+DRAIN", "CycleForge health: gpu_count"),
        "htc-10": ("htc", "MIXED+CLOUD", ""),
    }
    code, out, err = living("nodes", "minimal.yaml")
    assert (code, living.changes, living.arm.requests) == (0, [], []), err
    rows = {line.split()[0]: line for line in out.splitlines()[2:]}
    assert list(rows) == ["htc-1", "htc-10", "login-1", "scheduler", "htc-3"]
    assert "return code: 1)\\x1b[2J" in rows["htc-1"]
    assert "mixed+cloud" in rows["htc-10"]
    assert [rows[name].split()[1] for name in ("htc-10", "login-1", "scheduler")] == ["htc", "—", "—"]
    assert "CycleForge health: gpu_count" in rows["htc-3"]
    code, out, _ = living("nodes", "minimal.yaml", "--json")
    shown = data_of(out)
    assert (shown["state"], shown["slurm"]) == ("started", {"known": True, "why": None})
    assert shown["nodes"][0]["failed"] is True
    assert shown["nodes"][4]["partition"] == "htc,all"


def test_a_scheduler_that_is_silent_is_said(living: Living) -> None:
    living.runs(GOOD)
    living.has_no_path_to("scheduler")
    code, out, err = living("nodes", "minimal.yaml")
    assert (code, "Slurm's states are unknown" in err, "htc-10" in out) == (0, True, True)


def test_a_release_without_heading_and_with_warnings(living: Living) -> None:
    living.clusters.has_heading, living.clusters.warnings = False, "WARNING: certificate [self-signed]\n"
    assert "minimal: off, 0 nodes" in living("nodes", "minimal.yaml")[1]
    living.runs(GOOD)
    assert "minimal: started, 3 nodes" in living("nodes", "minimal.yaml")[1]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        ("[]", []),
        ('warning\n[{"Name": "b-10"}, {"Name": "b-9"}]\ntrailing', ["b-9", "b-10"]),
        ('{"Name": "one", "Instance": {"PrivateIp": "10.0.0.4"}}', ["one"]),
    ],
)
def test_lists_of_any_release(text: str, names: list[str]) -> None:
    assert [node.name for node in read_nodes(text)] == names


def test_a_node_is_the_same_from_the_command_line_and_from_rest() -> None:
    """A single node that the command line shows as its own template is of no node array."""
    single = {"Name": "scheduler", "Template": "scheduler", "Instance": {"PrivateIp": "10.0.0.4", "InstanceId": "vm-0"}}
    for row in (FAILED, single):
        assert list(nodes_of([row])) == list(read_nodes(json.dumps([row])))
    (node,) = nodes_of([single])
    assert (node.array, node.address, node.instance) == ("", "10.0.0.4", "vm-0")


@pytest.mark.parametrize("text", ["Error: internal", '[{"Name": '])
def test_what_is_no_list_is_not_an_empty_cluster(text: str) -> None:
    with pytest.raises(NotDone, match="not JSON"):
        read_nodes(text)


def test_retry_shows_the_messages_first(living: Living) -> None:
    living.runs(GOOD, FAILED)
    living.types("n\n")
    code, out, _ = living("retry", "minimal.yaml")
    assert (code, living.changes, "return code: 1)" in out) == (1, [], True)
    code, out, _ = living("retry", "minimal.yaml", "--yes")
    assert (code, living.changes) == (0, ["cyclecloud retry minimal"])
    assert "Acquiring" in out.partition("retried; now:")[2]
    code, out, _ = living("retry", "minimal.yaml", "--yes")
    assert (code, "no failed node" in out, len(living.changes)) == (0, True, 1)


def test_a_long_list_through_azure_says_that_it_was_cut(living: Living) -> None:
    living.has_no_path_to("server")
    living.runs(GOOD)
    assert "htc-10" in living("nodes", "minimal.yaml")[1]
    import random

    noise = random.Random(0)
    living.runs(*({**GOOD, "Name": f"htc-{n}", "StatusMessage": f"{noise.getrandbits(256):x}"} for n in range(200)))
    code, _, err = living("nodes", "minimal.yaml")
    assert (code, "4,096 bytes" in err) == (4, True), err
