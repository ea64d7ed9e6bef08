"""Real compiled templates, deployed in the stand-in once, and the command that deletes them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from generator.azure.clouds import cloud_of
from generator.azure.deletion.carry_out import Deleting
from generator.azure.deletion.decide import decide
from generator.azure.deletion.survey import survey
from generator.azure.session import Session, sign_in
from generator.azure.writer import Writer
from generator.cli import main
from generator.plan.deployment import Plan
from tests.azure.compiled import template
from tests.bed.arm import Arm
from tests.bed.arm.client import Client
from tests.bed.arm.stacks import STACK, deny
from tests.bed.bicep.deployment import PLAUSIBLE

VERSION = "2025-04-01"
HUB = PLAUSIBLE["hubVnetId"]
OTHERS = "00000000-0000-0000-0000-000000000000"
Kept = dict[str, tuple[dict[str, Any], dict[str, Any]]]


class Place:
    """Runs the command in this process; nothing undocumented is asked, no secret shown."""

    def __init__(
        self, arm: Arm, folder: Path, capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch, kept: Kept
    ) -> None:
        self.arm, self.state, self._capsys, self._kept, self.patch = arm, arm.state, capsys, kept, patch
        patch.chdir(folder)
        patch.setenv("HUB_VNET_ID", HUB)
        patch.setattr("azure.core.pipeline.transport.RequestsTransport.sleep", lambda *_: None)
        patch.setattr("generator.azure.deletion.carry_out.Deleting._pause", self._time_passes)
        self.said: list[str] = []
        """Commands that the server's shell got."""
        self.state.shell = self.shell

    def __call__(self, *words: str) -> tuple[int, str, str]:
        """Exit code, standard output, standard error."""
        code = main(["delete", *words])
        out, err = self._capsys.readouterr()
        assert "bug in CycleForge" not in err, err
        assert self.arm.refused == [], self.arm.refused
        for secret in (self.state.caller.secret, "Bearer", "eyJ"):
            assert secret not in out + err
        return code, out, err

    def delete(self, plan: Plan, agreed: Callable[[], object] = lambda: None) -> bool:
        """The same without the command line, which takes most of the time; whether nothing is left. May raise."""
        writer = Writer(self._session)
        try:
            seen = survey(plan, writer)
            decision = decide(plan, seen)
            agreed()
            left, self.blind = Deleting(plan, writer, seen, decision, lambda _: None, keeps=False).run()
            return left.is_nothing
        finally:
            writer.close()

    @cached_property
    def _session(self) -> Session:
        return sign_in(cloud_of("public", self.arm.environment), self.state.subscription)

    def _time_passes(self, *_: object) -> None:
        """Azure goes on with what was begun, whether somebody looks or not."""
        with self.state.lock:
            for each in list(self.state.operations.values()):
                each.polled()

    # ---- what is there

    def renewed(self) -> Place:
        """As it was at the beginning."""
        self.state = self.arm.renewed().state
        self.state.shell = self.shell
        return self

    def deployed(self, name: str, *nodes: str) -> Place:
        """A shipped definition, as it was deployed, with nodes of its cluster."""
        if name not in self._kept:
            self._kept[name] = self._deploy(name)
        resources, runs = self._kept[name]
        self.state.others = (OTHERS,)
        self.state.resources = copy.deepcopy(resources)
        self.state.runs = dict(runs)
        for node in nodes:
            self.machine(name, node)
        self.arm.requests.clear()
        return self

    def _deploy(self, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
        content = copy.deepcopy(template(name))
        content["variables"]["tags"] |= {
            "cycleforge": name
        }  # which main.bicep writes since the templates were compiled
        given = {key: {"value": PLAUSIBLE[key]} for key in content["parameters"] if key in PLAUSIBLE}
        location = content["variables"]["location"]
        self.state.others, self.state.pace = (OTHERS,), 100
        for scope in (HUB.partition("/providers/")[0], HUB, f"/subscriptions/{OTHERS}/resourceGroups/MA_metrics_x"):
            self.state.put(scope, location=location)
        path = f"{self.state.scope}/providers/Microsoft.Resources/deployments/{name}-{location}"
        fields = {"mode": "Incremental", "template": content, "parameters": given}
        client = Client(self.arm)
        client("PUT", path, VERSION, {"location": location, "properties": fields})
        for _ in range(100):
            if client("GET", path, VERSION).json()["properties"]["provisioningState"] == "Succeeded":
                return copy.deepcopy(self.state.resources), dict(self.state.runs)
        raise AssertionError(f"{name} does not get ready")

    def stacked(self, name: str) -> Place:
        """What was deployed is a stack's, which denies to everyone that anything of it is deleted."""
        location = template(name)["variables"]["location"]
        stack = f"{self.state.scope}/providers/{STACK}/{name}-{location}"
        self.state.put(stack, location=location, properties={"denySettings": {"mode": "denyDelete"}})
        for key, each in self.state.resources.items():
            if key.startswith(self.group(name).lower()):
                deny(self.state, stack, each["id"], "denyDelete")
        return self

    def group(self, name: str) -> str:
        """Id of the resource group of a definition."""
        return f"{self.state.scope}/resourceGroups/{name}-rg"

    def machine(self, name: str, node: str) -> None:
        """A machine that CycleCloud has made, with parts that carry no tag and do not go with it."""
        network = f"{self.group(name)}/providers/Microsoft.Network"
        compute = f"{self.group(name)}/providers/Microsoft.Compute"
        interface, address = f"{network}/networkInterfaces/{node}-nic", f"{network}/publicIPAddresses/{node}-ip"
        machine, disks = (
            f"{compute}/virtualMachines/{node}",
            [f"{compute}/disks/{node}-{each}" for each in ("os", "sched")],
        )
        address_of = {"publicIPAddress": {"id": address}}
        self.state.put(address, location="eastus")
        self.state.put(interface, location="eastus", properties={"ipConfigurations": [{"properties": address_of}]})
        for disk in disks:
            self.state.put(disk, location="eastus", managedBy=machine)
        storage = {
            "osDisk": {"createOption": "FromImage", "managedDisk": {"id": disks[0]}},
            "dataDisks": [{"createOption": "Empty", "managedDisk": {"id": disks[1]}}],
        }
        fields = {"networkProfile": {"networkInterfaces": [{"id": interface}]}, "storageProfile": storage}
        self.state.put(machine, location="eastus", tags={"cycleforge": name}, properties=fields)

    def left(self, name: str) -> list[str]:
        """Everything that the deployment has left behind, its records among it."""
        foreign = [HUB.partition("/providers/")[0], HUB, f"/subscriptions/{OTHERS}/"]
        kept = [key for key in self.state.resources if not any(key.startswith(each.lower()) for each in foreign[2:])]
        kept = [key for key in kept if key not in {each.lower() for each in foreign[:2]}]
        hub = self.state.resources[HUB.lower()]["properties"].get("virtualNetworkPeerings") or []
        return sorted([*kept, *(each["id"] for each in hub), *self.state.runs])

    def kinds(self, lines: Iterable[str]) -> list[str]:
        """Type and name of what requests were about, each once, in their order."""
        return list(dict.fromkeys("/".join(each.split("/")[-2:]) for each in lines))

    def shell(self, machine: str, script: str) -> tuple[str, str]:
        """What the server does: its cluster is terminated."""
        self.said.append(next(line.split()[5] for line in script.splitlines() if "sudo" in line))
        for each in list(self.state.resources.values()):
            if each["name"].startswith("node-"):
                del self.state.resources[each["id"].lower()]
        return "Terminating cluster\ncycleforge-exit=0\n", ""
