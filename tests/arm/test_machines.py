"""What comes with a machine and an endpoint, what goes with them, what holds what; run commands."""

from __future__ import annotations

from typing import Any

import pytest

from tests.bed.arm import Arm
from tests.bed.arm.client import Client

COMPUTE, NETWORK = "2025-04-01", "2025-05-01"


def path_of(arm: Arm, kind: str, name: str) -> str:
    group = f"{arm.state.scope}/resourceGroups/rg"
    arm.state.put(group, location="eastus")
    return f"{group}/providers/{kind}/{name}"


def machine(arm: Arm, client: Client, **disk: Any) -> str:
    nic = path_of(arm, "Microsoft.Network/networkInterfaces", "nic")
    client("PUT", nic, NETWORK, {"location": "eastus", "properties": {"ipConfigurations": []}})
    vm = path_of(arm, "Microsoft.Compute/virtualMachines", "vm")
    profile = {"storageProfile": {"osDisk": {"createOption": "FromImage"} | disk, "dataDisks": [{"lun": 0}]},
               "networkProfile": {"networkInterfaces": [{"id": nic}]}}  # fmt: skip
    assert client("PUT", vm, COMPUTE, {"location": "eastus", "properties": profile}).status_code == 201
    return vm


@pytest.mark.parametrize(("disk", "left"), [({"deleteOption": "Delete"}, ["Unattached"]), ({}, ["Unattached"] * 2)])
def test_a_disk_goes_with_its_machine_or_stays(client: Client, arm: Arm, disk: dict[str, Any], left: list[str]) -> None:
    vm = machine(arm, client, **disk)
    made = arm.state.of_type("Microsoft.Compute/disks")
    assert [each["managedBy"] for each in made] == [vm, vm], "that of the system, and one for data"
    nic = arm.state.of_type("Microsoft.Network/networkInterfaces")[0]["id"]
    assert client.error("DELETE", nic, NETWORK) == (400, "NicInUse")
    deleted = client("DELETE", vm, COMPUTE)
    while client("GET", deleted.headers["Location"], None).status_code == 202:
        pass
    assert [each["properties"]["diskState"] for each in arm.state.of_type("Microsoft.Compute/disks")] == left
    assert client("DELETE", nic, NETWORK).status_code == 202


def test_what_is_in_use_or_has_children_stays(client: Client, arm: Arm) -> None:
    net = path_of(arm, "Microsoft.Network/virtualNetworks", "net")
    group = path_of(arm, "Microsoft.Network/networkSecurityGroups", "nsg")
    zone = path_of(arm, "Microsoft.Network/privateDnsZones", "z.example")
    subnet = {"name": "a", "properties": {"addressPrefix": "10.0.0.0/24", "networkSecurityGroup": {"id": group}}}
    arm.state.put(net, location="eastus", properties={"subnets": [subnet]})
    arm.state.put(group, location="eastus")
    arm.state.put(zone, location="global")
    arm.state.put(f"{zone}/virtualNetworkLinks/l", location="global")
    endpoint = path_of(arm, "Microsoft.Network/privateEndpoints", "e")
    body = {"location": "eastus", "properties": {"subnet": {"id": f"{net}/subnets/a"}}}
    assert client("PUT", endpoint, NETWORK, body).status_code == 201
    (nic,) = arm.state.of_type("Microsoft.Network/networkInterfaces")
    for held, version, refusal in (
        (net, NETWORK, (400, "InUseSubnetCannotBeDeleted")),
        (group, NETWORK, (400, "InUseNetworkSecurityGroupCannotBeDeleted")),
        (nic["id"], NETWORK, (400, "NicInUse")),
        (zone, "2024-06-01", (409, "CannotDeleteResource")),
    ):
        assert client.error("DELETE", held, version) == refusal
    deleted = client("DELETE", endpoint, NETWORK)
    while client("GET", deleted.headers["Location"], None).status_code == 202:
        pass
    assert arm.state.of_type("Microsoft.Network/networkInterfaces") == []
    assert client("DELETE", net, NETWORK).status_code == 202


def test_a_run_command_is_one_at_a_time_and_returns_the_end(client: Client, arm: Arm) -> None:
    vm = machine(arm, client)
    arm.state.shell = lambda at, script: (f"{at.rpartition('/')[2]}: {script}" + "x" * 5000, "warning")
    body = {"commandId": "RunShellScript", "script": ["echo a", "echo b"]}
    begun = client("POST", f"{vm}/runCommand", COMPUTE, body)
    assert begun.status_code == 202
    assert client.error("POST", f"{vm}/runCommand", COMPUTE, body) == (409, "Conflict")
    while (ended := client("GET", begun.headers["Location"], None)).status_code == 202:
        pass
    (value,) = ended.json()["value"]
    stdout = value["message"].partition("[stdout]\n")[2].partition("\n[stderr]\n")[0]
    assert (len(stdout), value["message"].endswith("[stderr]\nwarning")) == (4096, True)
    assert client("POST", f"{vm}/runCommand", COMPUTE, body).status_code == 202
