"""Deployments that are there: Azure's record of each, a server with a real sshd at port 22, a scheduler behind it.

Only root may listen at port 22 and give each process its own /etc/hosts and home, so others skip these tests. Programs
of the user run in a mount namespace in which `~/.ssh` of the account, which ssh looks up by itself, is a folder of the
test.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from generator.cyclecloud.host_keys import fingerprint
from generator.files import assets
from generator.plan.deployment import Plan
from generator.plan.parameters import SECRETS
from generator.render.ssh_config import render
from tests.bed.arm import Arm
from tests.bed.arm.state import READER
from tests.bed.limits import COMMAND_S
from tests.bed.plans import SMALL, merged, plan_from, slurm_of
from tests.bed.ssh import az
from tests.bed.ssh.host import USER, Host, new_key, why_not

NET = f"127.{os.getpid() >> 8 & 127 | 64}.{os.getpid() & 255}"
"""Addresses of this process alone."""
SSH_HOME = Path(pwd.getpwuid(os.getuid()).pw_dir) / ".ssh"
"""Where ssh looks, whatever HOME says."""


def skipped() -> str | None:
    if os.geteuid() != 0:
        return "port 22 and mount namespaces need root"
    if subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True).returncode:
        return "this machine lets nobody make mount namespaces"
    return why_not()


@dataclass
class Deployed:
    plan: Plan
    server: Host
    scheduler: Host
    record: dict[str, Any]
    """Its record in Azure."""

    @property
    def outputs(self) -> dict[str, Any]:
        """Of the record; a test may change them."""
        outputs: dict[str, Any] = self.record["properties"]["outputs"]
        return outputs


@dataclass
class User:
    """Somebody with a folder of definitions, a key, and the right to read."""

    folder: Path
    arm: Arm
    key: Path
    stack: ExitStack
    by_name: dict[str, Deployed] = field(default_factory=dict)
    taken: int = 0

    def __post_init__(self) -> None:
        for each in (self.home / ".ssh", self.here, self.programs):
            each.mkdir(parents=True)
        program = self.programs / "cycleforge"
        program.write_text(f"#!{sys.executable}\nfrom generator.cli import process\nprocess()\n")
        program.chmod(0o755)
        az.placed(self.programs, sys.executable)
        self.az: dict[str, Any] = {"bastions": {}, "machines": {}, "log": str(self.folder / "az.log")}

    @property
    def home(self) -> Path:
        """Of the user; its `.ssh` is that of the account, too."""
        return self.folder / "home"

    @property
    def here(self) -> Path:
        """Where the definitions are."""
        return self.folder / "here"

    @property
    def programs(self) -> Path:
        return self.folder / "programs"

    @property
    def environment(self) -> dict[str, str]:
        """Of the user's programs, signed in as a Reader."""
        kept = {name: os.environ[name] for name in ("TMPDIR", "LANG") if name in os.environ}
        return {
            **kept, **self.arm.environment, "HOME": str(self.home), "PATH": f"{self.programs}:{os.environ['PATH']}",
            "PYTHONPATH": str(assets.root()), "AZ_STAND_IN": str(self.folder / "az.json"), "NO_COLOR": "1",
            "AZURE_CONFIG_DIR": str(self.arm.folder / ".azure"),
        }  # fmt: skip

    def words(self, command: Sequence[str]) -> list[str]:
        """The command, in the user's own view of the machine."""
        (self.folder / "az.json").write_text(json.dumps(self.az))
        SSH_HOME.mkdir(mode=0o700, exist_ok=True)
        mount = f'mount --bind "$0/.ssh" {SSH_HOME} && exec "$@"'
        return ["unshare", "--mount", "sh", "-c", mount, str(self.home), *command]

    def types(
        self,
        *command: str,
        given: bytes = b"",
        environment: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        """What a command ends with, and says."""
        return subprocess.run(
            self.words(command), input=given, capture_output=True, cwd=cwd or self.here, timeout=COMMAND_S,
            env=self.environment | dict(environment or {}), check=False,
        )  # fmt: skip

    def started(self, *command: str, environment: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        return subprocess.Popen(
            self.words(command), cwd=self.here, env=self.environment | dict(environment or {}), stdin=pipe, stdout=pipe,
            stderr=pipe,
        )  # fmt: skip

    def with_secrets(self, folder: Path) -> dict[str, str]:
        """Environment of a user who has exported all passwords; `folder/given` notes that of each ssh and az."""
        for name, program in {"ssh": shutil.which("ssh"), "az": self.programs / "az"}.items():
            script = f'#!/bin/sh\n{{ echo {name}; env; }} >>"{folder}/given"\nexec {program} "$@"\n'
            (folder / name).write_text(script)
            (folder / name).chmod(0o755)
        path = {"PATH": f"{folder}:{self.programs}:{os.environ['PATH']}"}
        return {**path, **dict.fromkeys(SECRETS, "not-a-Real-password-1")}

    def tunnels(self) -> list[int]:
        log = Path(self.az["log"])
        asked = [json.loads(line)[0] for line in log.read_text().splitlines()] if log.exists() else []
        return [pid for pid in asked if az.still_runs(pid, self.folder / "az.json")]

    def deploy(self, name: str, *changes: str) -> Deployed:
        """A definition of this name, built, and what Azure and the machines are then."""
        definition: Any = yaml.safe_load(SMALL)
        for change in (f"name: {name}\nslurm: {{cluster_name: lab}}", *changes):
            definition = merged(definition, yaml.safe_load(change))
        (self.here / f"{name}.yaml").write_text(yaml.safe_dump(definition))
        plan = plan_from(f"name: {name}\nslurm: {{cluster_name: lab}}", *changes)
        (self.here / "output" / name).mkdir(parents=True)
        for path, file in render(plan).items():
            (self.here / "output" / name / path).write_bytes(file.content)
        own = f"User {USER}\nIdentityFile {self.key}\nIdentitiesOnly yes\nIdentityAgent none\n"
        (self.home / ".ssh" / f"cycleforge-{name}.config").write_text(own + "KexAlgorithms curve25519-sha256\n")
        server, scheduler = f"{NET}.{self.taken + 1}", f"{NET}.{self.taken + 2}"
        self.taken += 2
        names = dict.fromkeys((slurm_of(plan).scheduler.host_name, "lab-htc-1"), scheduler) | {"localhost": server}
        made = [
            self.stack.enter_context(
                Host(f"{name}-{role}", self.folder / name / role, self.key.with_suffix(".pub"), address, known, 22)
            )
            for role, address, known in (("server", server, names), ("scheduler", scheduler, {}))
        ]
        self.by_name[name] = deployed = Deployed(plan, made[0], made[1], self._record(plan, made[0]))
        return deployed

    def _record(self, plan: Plan, server: Host) -> dict[str, Any]:
        state = self.arm.state
        group = f"/subscriptions/{state.subscription}/resourceGroups/{plan.resource_group}/providers"
        machine = f"{group}/Microsoft.Compute/virtualMachines/{plan.access.server_arguments.split()[-1]}"
        key = server.host_key.split()
        outputs: dict[str, object] = {
            "serverId": machine,
            "serverPrivateIp": server.address,
            "serverSshHostKeys": [fingerprint(*key)],
            "serverCertificateSha256": ":".join(["AB"] * 32),
        }
        if plan.access.kind == "public":
            outputs |= {"serverPublicIp": server.address, "serverPrivateIp": "10.0.0.4"}
        if plan.access.kind == "bastion":
            outputs |= {"bastionName": f"{plan.name}-bastion", "serverPrivateIp": "10.0.0.4"}
            self.az["bastions"][f"{plan.name}-bastion"] = {"group": plan.resource_group, "sku": "Standard"}
            self.az["machines"][machine] = server.address
        typed = {
            name: {"type": "Array" if isinstance(value, list) else "String", "value": value}
            for name, value in outputs.items()
        }
        return state.put(
            f"/subscriptions/{state.subscription}/providers/Microsoft.Resources/deployments/{plan.deployment_name}",
            location=plan.location,
            properties={
                "provisioningState": "Succeeded", "timestamp": "2026-11-02T09:30:00Z", "correlationId": "1",
                "outputs": typed,
            },
        )  # fmt: skip


@contextmanager
def a_user(folder: Path, arm: Arm) -> Iterator[User]:
    """Without deployments yet. Skips the test where they cannot be."""
    reason = skipped()
    if reason is not None:
        pytest.skip(reason)
    with ExitStack() as stack:
        folder.mkdir(parents=True, exist_ok=True)
        arm.state.caller.roles = [(arm.state.scope, READER)]
        yield User(folder, arm, new_key(folder / "user_key"), stack)
        assert arm.refused == []
