"""The machines of a cluster: what the node agent gave them, and the hardware and tools that a test breaks."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

from tests.bed.limits import COMMAND_S
from tests.bed.machines.agent import Agent
from tests.bed.machines.overlay import Machine, Result, saved
from tests.bed.slurm import hardware

PROJECT = "slurm_nhc"
RESULTS = "/var/lib/cycleforge/health"
Boot = Callable[..., AbstractContextManager[Machine]]


class Member:
    """A machine of the cluster. `files` is the folder of the host that the machine sees as /fake."""

    machine: Machine
    _agent: Agent

    def __init__(self, name: str, role: str, files: Path, boot: Boot) -> None:
        self.name, self.role, self.files = name, role, files
        self._boot, self._layers, self._kept, self._running = boot, list[Path](), ExitStack(), ExitStack()

    def start(self) -> None:
        """Boot the machine, with what it had written before its last power cut."""
        self.machine = self._running.enter_context(self._boot(*self._layers))

    def reboot(self) -> None:
        """Cut the power and boot again; the disk stays, /run and all processes are gone."""
        self._layers.append(self._kept.enter_context(saved(self.machine)))
        self._running.close()
        self.start()
        self._agent.machine = self.machine

    def end(self) -> None:
        """Power off for good."""
        self._running.close()
        self._kept.close()

    def run(self, script: str, *arguments: str, timeout_s: float = COMMAND_S) -> Result:
        return self.machine.run(script, *arguments, timeout_s=timeout_s)

    def ok(self, script: str, *arguments: str, timeout_s: float = COMMAND_S) -> str:
        return self.machine.ok(script, *arguments, timeout_s=timeout_s)

    def assign(self, attributes: Mapping[str, str], blobs: Mapping[str, bytes]) -> None:
        """What the node agent gets before its first converge: attributes, the project, its blobs in the locker."""
        self._agent = Agent(self.machine, {"slurm.role": self.role} | dict(attributes))
        for name, content in blobs.items():
            self._agent.blob(PROJECT, name, content)
        self._agent.assign(PROJECT)

    def attribute(self, key: str, value: str) -> None:
        self._agent.attribute(key, value)

    def converge(self) -> None:
        """Run the project's scripts as the node agent does, whether they ran before or not; all must succeed."""
        for script in self._agent.scripts:
            ran = self._agent.run(script, CYCLEFORGE_POLL_S="0.1")
            assert ran.code == 0, f"{self.name}: {script} ended with {ran.code}\n{ran.output}"


class GpuNode(Member, hardware.Hardware):
    """A node whose hardware and tools a test can break while it runs."""

    def heal(self) -> None:
        """End every fault; the driver's too, which otherwise last until the next boot."""
        super().heal()
        self.ok("rm -f /var/lib/cycleforge/health/xids")

    def forget_faults(self) -> None:
        """Nothing stands against the node any more: its disk is that of a node that was never sick."""
        self.ok(f"rm -f {RESULTS}/standing {RESULTS}/strikes /run/cycleforge/standing")

    def quick(self) -> dict[str, Any]:
        """One quick run through its unit, as the timer starts it; the result."""
        self.start_unit("cycleforge-health.service")
        return self.result("quick")

    def start_unit(self, name: str, *options: str) -> None:
        """Start a oneshot unit of ours and wait for its end, more often in a row than systemd allows by itself.

        A run that slurmd or the timer has started already saw the node as it was before: it ends first.
        """
        self.ends(name)
        self.ok('systemctl reset-failed "$1" 2>/dev/null; systemctl start "$@"', name, *options, timeout_s=600)

    def ends(self, name: str = "cycleforge-health.service") -> None:
        """Wait until a oneshot unit of ours does not run; the one with a tool that hangs takes up to a minute."""
        self.ok('while [[ $(systemctl is-active "$1") == activating ]]; do sleep 0.3; done', name, timeout_s=600)

    def result(self, kind: str) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.machine.read(f"{RESULTS}/{kind}.json"))
        return content

    def processes(self, pattern: str) -> list[str]:
        return self.run('pgrep -a -f -- "$1" | grep -v -F pgrep', pattern).output.splitlines()
