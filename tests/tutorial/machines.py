"""What is behind the deployment of the page: a server, its site, a scheduler with real Slurm, and Azure's Bastion.

The server and the scheduler are reached through the real sshd. The command line and the site of the server show one
cluster, and its nodes are those that Slurm starts (tests/bed/cloud), whose daemons begin when the scheduler is ready.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from generator.cyclecloud.host_keys import fingerprint
from generator.definition.pages.starter import starter
from tests.bed.arm import Arm
from tests.bed.arm.state import State as Azure
from tests.bed.arm.state import first_boot
from tests.bed.cloud import Cloud, pools_of, running_cloud
from tests.bed.cloud.inside import ENVIRONMENT as INSIDE
from tests.bed.cloud.inside import NAMESPACES
from tests.bed.cyclecloud import PASSWORD, USER, SiteStandIn, running_site
from tests.bed.cyclecloud.state import Node
from tests.bed.plans import plan_from, slurm_of
from tests.bed.server.fakes.accounts import encode
from tests.bed.server.fakes.site import Site
from tests.bed.slurm.newer import HOST
from tests.bed.ssh import az
from tests.bed.ssh.deployed import NET, SSH_HOME, skipped
from tests.bed.ssh.host import USER as LOGIN
from tests.bed.ssh.host import Host, new_key
from tests.runs.bed import ENVIRONMENT
from tests.tutorial.command_line import Commands

NAME = "demo"
SERVER, SCHEDULER = f"{NET}.201", f"{NET}.202"
"""Addresses that no other test has."""
FAKES = Path(__file__).parents[1] / "bed/server/fakes"
LINES = ("ClusterName=demo", "SuspendTime=9000", "MinJobAge=300")
"""The bed's clock of power saving runs 30 times as fast: a node stays for the 300 s that a real one does."""
LOGIN_NODE = "login-1"


class Machines:
    """All of them; nothing runs before Azure has deployed the server."""

    def __init__(self, folder: Path, arm: Arm, stand: SiteStandIn, cloud: Cloud, stack: ExitStack) -> None:
        self.folder, self.arm, self.stand, self.cloud = folder, arm, stand, cloud
        self.plan = plan_from(base=starter(NAME, "starter"))
        self.home, self.programs = folder / "home", folder / "programs"
        (self.home / ".ssh").mkdir(parents=True)
        self.key = new_key(folder / "user_key")
        self._has_begun = False
        self._user()
        names = {slurm_of(self.plan).scheduler.host_name: SCHEDULER, "localhost": SERVER}
        self.server = self._host(stack, "server", SERVER, names)
        self.scheduler = self._host(stack, "scheduler", SCHEDULER, {})
        self._command_line(stack)
        self._move_in()
        arm.state.boot = self._boots

    # ---- before the deployment

    def _host(self, stack: ExitStack, role: str, address: str, names: dict[str, str]) -> Host:
        return stack.enter_context(
            Host(f"{NAME}-{role}", self.folder / role, self.key.with_suffix(".pub"), address, names, 22)
        )

    def _user(self) -> None:
        """Signed in, with a key; accounts of the hosts are this machine's."""
        az.placed(self.programs, sys.executable)
        own = f"User {LOGIN}\nIdentityFile {self.key}\nIdentitiesOnly yes\nIdentityAgent none\n"
        (self.home / ".ssh" / f"cycleforge-{NAME}.config").write_text(own)
        group = f"{self.arm.state.scope}/resourceGroups/{self.plan.resource_group}/providers"
        machine = f"{group}/Microsoft.Compute/virtualMachines/{NAME}-server"
        (self.folder / "az.json").write_text(json.dumps({
            "bastions": {f"{NAME}-bastion": {"group": self.plan.resource_group, "sku": "Standard"}},
            "machines": {machine: SERVER}, "log": str(self.folder / "az.log"),
        }))  # fmt: skip

    def _command_line(self, stack: ExitStack) -> None:
        """`cyclecloud` on the server, logged in as the administrator."""
        site = Site(self.folder / "root", {}, {}, self.stand.certificate.with_name("both.pem"), 0.01)
        (self.folder / "root/opt/cycle_server/config/data").mkdir(parents=True)
        key = self.stand.certificate.with_name("key.pem").read_text()
        site.certificate.write_text(key + self.stand.certificate.read_text())
        site.start()
        stack.callback(site.stop)
        site.accounts.passwords[USER] = PASSWORD
        site.command_line.clusters = Commands(site, self.stand.state)
        home = self.server.home
        login = home / ".cycle/config.ini"
        login.parent.mkdir()
        login.write_text(f"[cycleserver]\nby=initialize\nurl={site.portal}\nusername={USER}\nkey={encode(PASSWORD)}\n")
        row = f"{USER}:x:1000:1000::{home}:/bin/sh"
        program = f"#!/bin/bash\nexport FAKE_PORT={site.port}\n{(FAKES / 'program.sh').read_text()}"
        for name, text in {
            "cyclecloud": program, "id": f"#!/bin/sh\necho {USER}\n", "getent": f"#!/bin/sh\necho {row}\n",
        }.items():  # fmt: skip
            self.server.program(name, text)

    def _move_in(self) -> None:
        """What is typed on the scheduler happens in the namespaces of the cluster."""
        self.cloud.ok('mkdir -p /mnt/shared/home && mount --bind /mnt/shared/home "${HOME:?}"')
        spaces = " ".join(f"--{kind}=/proc/{self.cloud.holder}/ns/{name}" for kind, name in NAMESPACES.items())
        environment = " ".join(f"{name}={value}" for name, value in (INSIDE | ENVIRONMENT).items())
        (self.scheduler.folder / "entry").write_text(
            "#!/bin/bash\n"
            f"exec nsenter {spaces} --wd=/ -- env --ignore-environment {environment}"
            ' bash -c "cd; ${SSH_ORIGINAL_COMMAND:-exec bash -l}"\n'
        )

    def _boots(self, azure: Azure, extension: dict[str, Any]) -> None:
        """The first boot has brought the cluster to the site, and left the fingerprints of both."""
        first_boot(azure, extension)
        group = extension["id"].partition("/providers/")[0]
        record = azure.resource(f"{group}/providers/Microsoft.Resources/deployments/cycleforge-fingerprints")
        assert record is not None
        outputs = record["properties"]["outputs"]
        outputs["certificateSha256"]["value"] = self.stand.fingerprint
        outputs["sshHostKeys"]["value"] = [fingerprint(*self.server.host_key.split())]
        (array,) = slurm_of(self.plan).node_arrays
        size = slurm_of(self.plan).scheduler.hardware.name
        cluster = self.stand.state.cluster(NAME, array.hardware.name, **{array.name: array.max_nodes})
        cluster.nodes = [Node(name, None, size) for name in ("scheduler", LOGIN_NODE)]

    # ---- the user

    @property
    def environment(self) -> dict[str, str]:
        """Of the user's programs."""
        return {"HOME": str(self.home), "AZ_STAND_IN": str(self.folder / "az.json")}

    def words(self, *command: str) -> list[str]:
        """The command, where `~/.ssh` of this account is the user's."""
        SSH_HOME.mkdir(mode=0o700, exist_ok=True)
        mount = f'mount --bind "$0/.ssh" {SSH_HOME} && exec "$@"'
        return ["unshare", "--mount", "sh", "-c", mount, str(self.home), *command]

    def tunnels(self) -> list[int]:
        """Processes of `az` that still run; the last one may need a moment to end."""
        log = self.folder / "az.log"
        asked = [json.loads(line)[0] for line in log.read_text().splitlines()] if log.exists() else []
        left: list[int] = []
        for _ in range(200):
            left = [pid for pid in asked if az.still_runs(pid, self.folder / "az.json")]
            if not left:
                break
            signal.sigtimedwait([], 0.05)
        return left

    # ---- what goes on by itself

    def minutes_pass(self) -> None:
        """What was asked for is done, but for a start, which the next command finds on its way.

        Slurm runs where the scheduler does, and the site has the nodes that Slurm has started.
        """
        cluster = self.stand.state.clusters.get(NAME)
        if cluster is None:
            return
        if cluster.target == "Started" and not self._has_begun:
            self._has_begun = True
            return
        cluster.settle([])
        runs = self.cloud.run("pgrep -x slurmctld").code == 0
        if cluster.target == "Started":
            if not runs:
                self.cloud.start_controller()
            self.cloud.wait("no node is on its way", self._is_settled)
            cluster.has(self.cloud.vms())
        elif runs:
            for name in self.cloud.vms():
                self.cloud.kill(name)
            self.cloud.stop_controller()

    def _is_settled(self) -> bool:
        words = self.cloud.all_flags().values()
        return not any(flags & {"POWERING_UP", "POWER_UP", "POWERING_DOWN", "COMPLETING"} for flags in words)


@contextmanager
def machines_of(folder: Path, arm: Arm) -> Iterator[Machines]:
    """The machines, until the user has gone. Skips where they cannot be."""
    reason = skipped()
    if reason is not None:
        pytest.skip(reason)
    slurm = slurm_of(plan_from(base=starter(NAME, "starter")))
    folder.mkdir()
    with ExitStack() as stack:
        stand = stack.enter_context(running_site(folder, SERVER, 443))
        cloud = stack.enter_context(running_cloud(pools_of(slurm, 4), LINES, start=False, release=HOST))
        yield Machines(folder, arm, stand, cloud, stack)
        assert stand.refused == []
