"""The whole verb: what is shown, asked and sent, and that nothing is left."""

from __future__ import annotations

import io

import pytest

from tests.bed.arm.client import Client
from tests.bed.arm.exchange import RefusedError
from tests.bed.arm.resources import remove
from tests.bed.arm.state import CONTRIBUTOR, READER
from tests.delete.place import HUB, Place

YES = ("gpt3-h100", "--yes", "gpt3-h100")
SERVER = "Microsoft.Compute/virtualMachines/gpt3-h100-server"


def test_everything_goes_and_nothing_is_left(place: Place) -> None:
    place.deployed("gpt3-h100", "node-1", "node-2")
    code, out, err = place(*YES)
    assert code == 0, err
    assert place.left("gpt3-h100") == []
    assert place.said == ["terminate_cluster"]
    for text in ("cluster gpt3-h100: 2 machines", "resource group gpt3-h100-rg with everything in it",
                 "with its data: Microsoft.StorageCache/amlFilesystems gpt3-h100-data",
                 "a deleted storage account, for recovery", "gpt3-h100: nothing is left"):  # fmt: skip
        assert text in out
    (group,) = [
        each for each in place.arm.requests if each.method == "DELETE" and each.path == place.group("gpt3-h100")
    ]
    assert group.query["forceDeletionTypes"].count(",") == 1


def test_when_nothing_is_there_nothing_is_changed(place: Place) -> None:
    code, out, _ = place(*YES)
    assert code == 0
    assert "nothing of it exists" in out
    assert place.arm.changes == place.arm.posts == []


def test_lines_to_print_change_nothing(place: Place) -> None:
    place.deployed("gpt3-h100", "node-1")
    code, out, err = place("gpt3-h100", "--print")
    assert code == 0
    assert place.arm.changes == place.arm.posts == []
    lines = out.splitlines()
    assert lines[0].startswith("az rest --method post")
    assert "cyclecloud" in lines[0]
    assert [line.split()[:4] for line in lines if line.startswith("# az ")] == [
        ["#", "az", "vm", "deallocate"],
        ["#", "az", "rest", "--method"],
    ]
    assert any(line.startswith("az group wait --deleted --name gpt3-h100-rg") for line in lines)
    assert lines[-1] == "az resource list --tag cycleforge=gpt3-h100"
    assert "goes:" in err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_it_asks_for_the_name(place: Place) -> None:
    place.deployed("gpt3-h100")
    place.patch.setattr("sys.stdin", io.StringIO("gpt3-h100\n"))
    code, _, err = place("gpt3-h100")
    assert (code, "there is no terminal" in err) == (2, True)
    for answer in ("", "y\n", "gpt3-h100-rg\n"):
        place.patch.setattr("sys.stdin", Terminal(answer))
        assert place("gpt3-h100")[0] == 1
    assert place("gpt3-h100", "--yes", "gpt3")[0] == 2
    assert place("gpt3-h100", "--yes")[0] == 2
    assert place.arm.changes == place.arm.posts == []
    place.patch.setattr("sys.stdin", Terminal("gpt3-h100\n"))
    assert place("gpt3-h100")[0] == 0
    assert place.left("gpt3-h100") == []


def test_what_others_made_goes_only_with_more_than_yes(place: Place) -> None:
    place.deployed("gpt3-h100")
    disk = f"{place.group('gpt3-h100')}/providers/Microsoft.Compute/disks/precious"
    place.state.put(disk, location="eastus")
    code, out, err = place(*YES)
    assert (code, "--others-too" in err) == (1, True)
    assert "although this deployment did not create it:\n  Microsoft.Compute/disks precious" in out
    assert place.arm.changes == []
    assert place(*YES, "--others-too")[0] == 0
    assert place.left("gpt3-h100") == []


def data_disk(place: Place) -> str:
    """The disk that an image brings: it has no tag and stays when its machine goes."""
    group = place.group("gpt3-h100")
    disk = f"{group}/providers/Microsoft.Compute/disks/gpt3-h100-server_disk2"
    machine = f"{group}/providers/{SERVER}"
    place.state.put(disk, location="eastus", managedBy=machine)
    profile = place.state.resources[machine.lower()]["properties"]["storageProfile"]
    profile["dataDisks"] = [{"lun": 0, "deleteOption": "Detach", "managedDisk": {"id": disk}}]
    return disk


def test_a_group_without_our_tag_stays_and_ours_in_it_goes_one_by_one(place: Place) -> None:
    place.deployed("gpt3-h100", "node-1")
    data_disk(place)
    group = place.group("gpt3-h100")
    place.state.resources[group.lower()]["tags"] = {"cycleforge": "somebody-else"}
    other = f"{group}/providers/Microsoft.Network/publicIPAddresses/other"
    place.state.put(other, location="eastus", tags={"cycleforge": "somebody-else"})
    code, out, err = place(*YES)
    assert code == 0, err
    assert "it has no tag cycleforge=gpt3-h100" in out
    assert place.left("gpt3-h100") == [group.lower(), other.lower()]
    assert f"DELETE {group}" not in place.arm.changes
    kinds = place.kinds(place.arm.changes)
    assert kinds.index("virtualMachines/gpt3-h100-server") < kinds.index("virtualNetworks/gpt3-h100-vnet")


def test_data_stays_with_what_leads_to_it(place: Place) -> None:
    place.deployed("gpt3-h100", "node-1")
    disk = data_disk(place)
    code, out, err = place(*YES, "--keep-data")
    assert code == 0, err
    assert "only what holds data is left" in out
    stays = out.partition("\nstays:\n")[2].splitlines()
    assert "  Microsoft.Compute/disks gpt3-h100-server_disk2" in stays
    assert not any("_OsDisk_" in line for line in stays), "it goes with its machine"
    (interface,) = (line for line in stays if "gpt3-h100-locker-endpoint.nic." in line)
    assert "did not create" not in interface
    kinds = {each["type"].rpartition("/")[2] for each in place.state.resources.values() if "location" in each}
    assert {"amlFilesystems", "volumes", "storageAccounts", "flexibleServers", "virtualNetworks", "privateEndpoints",
            "privateDnsZones", "virtualNetworkLinks", "natGateways", "disks"} <= kinds  # fmt: skip
    assert not kinds & {"virtualMachines", "bastionHosts", "userAssignedIdentities"}
    assert not place.state.of_type("Microsoft.Authorization/roleAssignments")
    assert place.state.resources[disk.lower()]["tags"] == {"cycleforge": "gpt3-h100"}
    assert [each["name"] for each in place.state.of_type("Microsoft.Network/publicIPAddresses")] == [
        "gpt3-h100-vnet-nat-ip"
    ]
    assert place(*YES, "--keep-data")[0] == 0
    assert place(*YES)[0] == 0
    assert place.left("gpt3-h100") == []


def test_the_peering_of_the_hub_goes_and_that_of_others_stays(place: Place) -> None:
    place.deployed("llm-a100")
    other = f"{HUB}/virtualNetworkPeerings/of-others"
    target = {"remoteVirtualNetwork": {"id": f"{place.state.scope}/resourceGroups/x/providers/y/z/w"}}
    place.state.put(other, properties=target)
    code, out, err = place("llm-a100", "--yes", "llm-a100")
    assert code == 0, err
    assert "peering llm-a100-vnet-" in out
    assert place.left("llm-a100") == [other.lower()]


def test_what_cannot_be_seen_is_said_and_never_good(place: Place) -> None:
    place.deployed("llm-a100")
    place.arm.fail("GET", f"{HUB}/virtualNetworkPeerings", RefusedError(403, "AuthorizationFailed", "No."), times=9)
    code, out, err = place("llm-a100", "--yes", "llm-a100")
    assert (code, "not known:\n  whether there are peerings" in out) == (4, True)
    assert "not known whether there are peerings" in err


@pytest.mark.parametrize(("where", "level"), [("", "CanNotDelete"), ("group", "ReadOnly"), ("disk", "CanNotDelete")])
def test_a_lock_is_named_before_anything_is_changed(place: Place, where: str, level: str) -> None:
    place.deployed("gpt3-h100", "node-1")
    group = place.group("gpt3-h100")
    disk = f"{group}/providers/Microsoft.StorageCache/amlFilesystems/gpt3-h100-data"
    at = {"": place.state.scope, "group": group, "disk": disk}[where]
    lock = f"{at}/providers/Microsoft.Authorization/locks/keep"
    place.state.put(lock, properties={"level": level})
    code, out, _ = place(*YES)
    assert code == 1
    assert f"a lock ({level}) at {at}: keep\n    ask who set it; an owner removes it with: az lock delete" in out
    assert place.arm.changes == place.arm.posts == []
    if where == "disk":
        assert place(*YES, "--keep-data")[0] == 0, "the file system stays"
    del place.state.resources[lock.lower()]
    assert place(*YES)[0] == 0


def test_a_deployment_that_runs_is_not_deleted(place: Place) -> None:
    place.deployed("gpt3-h100")
    run = place.state.runs[f"{place.state.scope}/providers/Microsoft.Resources/deployments/gpt3-h100-eastus".lower()]
    place.patch.setattr(run, "state", "Running")
    place.patch.setattr(run, "tick", lambda: None)
    code, out, _ = place(*YES)
    assert (code, "az deployment sub cancel --name gpt3-h100-eastus" in out) == (1, True)
    assert place.arm.changes == []


def test_what_came_meanwhile_is_not_deleted(place: Place) -> None:
    place.deployed("gpt3-h100", "node-1")
    shell, disk = place.state.shell, f"{place.group('gpt3-h100')}/providers/Microsoft.Compute/disks/new"

    def also_a_disk(machine: str, script: str) -> tuple[str, str]:
        place.state.put(disk, location="eastus")
        return shell(machine, script)

    place.state.shell = also_a_disk
    code, _, err = place(*YES)
    assert (code, disk in err) == (4, True)
    assert place.arm.changes == []


def test_roles_and_connections_of_what_only_has_the_name_stay(place: Place) -> None:
    place.deployed("gpt3-h100")
    for each in place.state.resources.values():
        each.pop("tags", None)
    code, out, _ = place(*YES)
    assert (code, "it belongs to another deployment or an old one" in out) == (1, True)
    assert place.arm.changes == []


def test_roles_are_found_when_the_identities_are_gone(place: Place) -> None:
    place.deployed("gpt3-h100")
    mine = f"{place.state.scope}/providers/Microsoft.Authorization/roleAssignments/of-somebody"
    place.state.put(mine, properties={"scope": place.state.scope, "principalId": "other", "roleDefinitionId": "r"})
    remove(place.state, place.group("gpt3-h100"))
    code, _, err = place(*YES)
    assert code == 0, err
    assert place.left("gpt3-h100") == [mine.lower()]


def test_who_may_not_delete_is_told_so(place: Place) -> None:
    place.deployed("gpt3-h100")
    for role in (READER, CONTRIBUTOR):
        place.state.caller.roles = [(place.state.scope, role)]
        code, _, err = place(*YES)
        assert (code, "AuthorizationFailed" in err, "someone with this right" in err) == (4, True, True)
    assert place.group("gpt3-h100").lower() in place.state.resources


def test_a_group_that_is_deleted_already_is_waited_for(place: Place) -> None:
    place.deployed("gpt3-h100", "node-1")
    group = place.group("gpt3-h100")
    begun = Client(place.arm)("DELETE", group, "2021-04-01")
    place.state.operations[begun.headers["Location"].partition("?")[0].rpartition("/")[2]].polls = 3
    place.arm.requests.clear()
    code, _, err = place(*YES)
    assert code == 0, err
    assert "already deleting the resource group" in err
    assert f"DELETE {group}" not in place.arm.changes
    assert place.said == []
