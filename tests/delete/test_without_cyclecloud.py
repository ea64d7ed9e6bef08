"""The cluster's end where CycleCloud does not terminate it: nobody is logged in, its server is broken or gone."""

from __future__ import annotations

import pytest

from generator.azure.deletion.nodes import NotDone
from tests.bed.arm.exchange import RefusedError
from tests.bed.arm.resources import remove
from tests.bed.arm.state import OWNER
from tests.bed.plans import plan_from
from tests.definitions.optional_parts import SECOND_CLUSTER
from tests.delete.place import OTHERS, Place
from tests.delete.test_continue import KilledError, killed_at

PLAN = plan_from()
YES = ("minimal", "--yes", "minimal")


def nobody(*_: str) -> tuple[str, str]:
    return "cycleforge-exit=nobody\n", ""


def without_tag(place: Place) -> str:
    """The group is not ours; its id."""
    group = place.state.resources[place.group("minimal").lower()]
    group["tags"] = {}
    return str(group["id"].lower())


@pytest.mark.parametrize(("said", "expected"), [
    ("cycleforge-exit=nobody\n", "no user is logged in to CycleCloud"),
    ("no such cluster\ncycleforge-exit=3\n", "failed on the server with 3: no such cluster"),
    ("", "does not say whether"),
])  # fmt: skip
def test_the_server_is_stopped_before_azure_deletes_the_machines(place: Place, said: str, expected: str) -> None:
    place.deployed("minimal", "node-1", "node-2")
    place.state.shell = lambda *_: (said, "")
    code, out, err = place(*YES)
    assert (code, expected in err) == (0, True), err
    shown = "the server is\n      stopped, so that it starts no more machines, and Azure deletes them"
    assert shown in out
    assert "\n    Microsoft.Compute/virtualMachines node-2\n" in out
    assert "stopped the CycleCloud server minimal-server, which `az vm start" in err
    assert place.left("minimal") == []
    sent = [f"{each.method} {each.path.rpartition('/')[2]}" for each in place.arm.requests]
    (stopped,) = [number for number, line in enumerate(sent) if line == "POST deallocate"]
    assert min(sent.index(f"DELETE {name}") for name in ("node-1", "node-2")) > stopped


def test_machines_that_cyclecloud_keeps_are_deleted_by_azure(place: Place) -> None:
    place.deployed("minimal", "node-1")
    place.state.shell = lambda *_: ("cycleforge-exit=0\n", "")
    place.patch.setattr("generator.azure.deletion.nodes._NODES_S", 0)
    code, _, err = place(*YES)
    assert (code, "these machines still exist: node-1" in err) == (0, True)
    assert place.left("minimal") == []


def test_a_machine_that_was_ordered_before_the_server_stopped_goes_too(place: Place) -> None:
    place.deployed("minimal", "node-1")
    place.state.shell = nobody

    class Late(set[str]):
        def add(self, machine: str) -> None:
            super().add(machine)
            place.machine("minimal", "node-2")

    place.state.stopped = Late()
    code, _, err = place(*YES)
    assert (code, "deleted: Microsoft.Compute/virtualMachines node-2" in err) == (0, True), err
    assert place.left("minimal") == []


def test_parts_of_machines_go_where_the_group_stays(place: Place) -> None:
    place.deployed("minimal", "node-1")
    group = without_tag(place)
    place.state.shell = nobody
    code, _, err = place(*YES)
    assert code == 0, err
    assert place.left("minimal") == [group]


def test_a_disk_that_was_attached_by_hand_is_shown_before_it_goes(place: Place) -> None:
    place.deployed("minimal", "node-1")
    place.state.shell = nobody
    precious = f"{place.group('minimal')}/providers/Microsoft.Compute/disks/precious"
    place.state.put(precious, location="eastus")
    node = place.state.resources[f"{place.group('minimal')}/providers/Microsoft.Compute/virtualMachines/node-1".lower()]
    disk = {"createOption": "Attach", "managedDisk": {"id": precious}}
    node["properties"]["storageProfile"]["dataDisks"].append(disk)
    code, _, err = place(*YES)
    assert (code, "more to delete than was shown" in err, precious in err) == (4, True, True)
    assert precious.lower() in place.state.resources
    code, out, _ = place(*YES)
    assert (code, "although this deployment did not create it:\n  Microsoft.Compute/disks precious" in out) == (1, True)
    assert place(*YES, "--others-too")[0] == 0
    assert place.left("minimal") == []


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "*/deallocate"), ("PATCH", "*/node-1-os/*"), ("DELETE", "*/node-1")]
)
def test_the_connection_may_be_lost_there(place: Place, method: str, path: str) -> None:
    place.deployed("minimal", "node-1")
    group = without_tag(place)
    place.state.shell = nobody
    place.arm.lose(method, path, after_effect=True, times=9)
    code, _, err = place(*YES)
    assert (code, "the same command" in err) == (4, True), err
    place.arm.faults.due.clear()
    assert place.delete(PLAN)
    assert place.left("minimal") == [group]


def test_data_of_a_machine_stays_with_other_data(place: Place) -> None:
    place.deployed("minimal", "node-1")
    place.state.shell = nobody
    code, _, err = place(*YES, "--keep-data")
    assert code == 0, err
    left = [each.rpartition("/")[2] for each in place.left("minimal") if "/node-1" in each]
    assert left == ["node-1-sched"]
    assert place(*YES)[0] == 0
    assert place.left("minimal") == []


def test_where_the_server_is_gone_azure_deletes_the_machines(place: Place) -> None:
    place.deployed("minimal", "node-1")
    group = without_tag(place)
    remove(place.state, f"{group}/providers/Microsoft.Compute/virtualMachines/minimal-server")
    code, out, err = place(*YES)
    assert (code, "since the CycleCloud server does not exist" in out) == (0, True), err
    assert place.said == []
    assert place.left("minimal") == [group]


def test_it_is_continued_wherever_it_was_ended(place: Place) -> None:
    """After the server was stopped (2), at marks of parts (3, 5), at the machine (7) and at parts of it (8, 10).

    What comes before and after is in test_continue.
    """
    for number in (2, 3, 5, 7, 8, 10):
        place.renewed().deployed("minimal", "node-1")
        group = without_tag(place)
        place.state.shell = nobody
        with killed_at(number) as sent, pytest.raises(KilledError):
            place.delete(PLAN)
        assert ("deallocate" in sent[1], "/node-1?" in sent[6] if number >= 7 else True) == (True, True), sent
        assert place.delete(PLAN), (number, sent)
        assert place.left("minimal") == [group], (number, sent)


def test_who_may_not_stop_the_server_deletes_no_machine(place: Place) -> None:
    place.deployed("minimal", "node-1")
    place.state.shell = nobody
    place.arm.fail("POST", "*/deallocate", RefusedError(403, "AuthorizationFailed", "No."), times=9)
    code, _, err = place(*YES)
    assert (code, "someone with this right has to do it" in err) == (4, True)
    assert place.arm.changes == []


def test_the_server_of_somebody_else_is_not_stopped(place: Place) -> None:
    plan = plan_from(base=SECOND_CLUSTER)
    assert plan.existing_server is not None
    state, server = place.state, plan.existing_server.vm_id
    state.others = (OTHERS,)
    state.caller.roles.append((f"/subscriptions/{OTHERS}", OWNER))
    group, tags = f"{state.scope}/resourceGroups/{plan.resource_group}", {"cycleforge": plan.name}
    state.put(server.partition("/providers/")[0], location="southcentralus")
    state.put(server, location="southcentralus")
    state.put(group, location="southcentralus", tags=tags)
    state.put(f"{group}/providers/Microsoft.Compute/virtualMachines/node-1", location="southcentralus", tags=tags)
    state.shell = nobody
    with pytest.raises(NotDone, match="no user is logged in"):
        place.delete(plan)
    assert place.arm.changes == []
    assert [each.rpartition("/")[2] for each in place.arm.posts] == ["runCommand"]
