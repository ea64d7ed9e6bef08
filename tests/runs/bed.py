"""A cluster that is reached through ssh alone, and a user with a built folder beside it.

sshd runs in the namespaces of the cluster's scheduler, one process for each connection (`sshd -i`), which the
ProxyCommand of the user's `ssh_config` starts. The home folder is on a file system that the nodes share. Source:
sshd(8) `-i`, ssh_config(5) ProxyCommand.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generator.files import assets
from tests.answers import data_of
from tests.bed.cloud import Cloud, Pool, running_cloud
from tests.bed.cloud.inside import NAMESPACES
from tests.bed.limits import COMMAND_S
from tests.bed.plans import SMALL
from tests.bed.slurm.newer import HOST
from tests.runs.loaded import Command, Loaded

NAME = "minimal"
NODES = ("emu-htc-1", "emu-htc-2")
SSHD = """\
HostKey /mnt/ssh/host_key
AuthorizedKeysFile /mnt/ssh/user_key.pub
StrictModes no
UsePAM no
PasswordAuthentication no
PidFile none
Subsystem sftp internal-sftp
SetEnv {environment}
"""
ENVIRONMENT = {
    "CYCLEFORGE_POLL_S": "0.8", "CYCLEFORGE_REQUEST_S": "20", "CYCLEFORGE_SETTLE_S": "1", "PROVE_POLL_S": "0.3",
    "PROVE_SETTLE_S": "1", "SET_SHARED_DIR": "/mnt/shared",
}  # fmt: skip
"""Of a login: nobody waits here, and the shared file system has another name."""
CONFIG = """\
Host scheduler
    ProxyCommand {enter} /usr/sbin/sshd -i -e -f /mnt/ssh/sshd_config 2>>{folder}/sshd.log
    User root
    IdentityFile {ssh}/user_key
    IdentitiesOnly yes
    IdentityAgent none
    UserKnownHostsFile {ssh}/known_hosts
    GlobalKnownHostsFile /dev/null
    StrictHostKeyChecking yes
    LogLevel ERROR
    KexAlgorithms curve25519-sha256
"""
"""The usual key exchange takes a client 90 ms of computing."""
LOSING = """\
#!/usr/bin/env bash
# The user's ssh, whose connection number LOSE is lost: before anything was sent (before), or the answer to it (after).
set -euo pipefail
count=0
if [[ -e "{folder}/count" ]]; then count="$(<"{folder}/count")"; fi
count=$((count + 1))
echo "${{count}}" >"{folder}/count"
if [[ -e "{folder}/lose" ]]; then
    read -r number how <"{folder}/lose"
    if ((count == number)); then
        if [[ "${{how}}" == after ]]; then /usr/bin/ssh "$@" >/dev/null 2>&1 || true; fi
        cat >/dev/null || true
        echo "client_loop: send disconnect: Broken pipe" >&2
        exit 255
    fi
fi
exec /usr/bin/ssh "$@"
"""


@dataclass
class Told:
    """What a command ended with and said."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """What `--json` prints."""
        found: dict[str, Any] = data_of(self.out)
        return found


class User:
    """Somebody with the built folder at hand."""

    def __init__(self, cloud: Cloud, folder: Path) -> None:
        self.cloud, self.folder, self.here = cloud, folder, folder / "here"
        self.home = cloud.shared / "home"
        self.jobs = self.home / "jobs"
        self.environment = {
            "PATH": f"{folder}/programs:{os.environ['PATH']}", "PYTHONPATH": str(assets.root()), "LANG": "C.UTF-8",
            "NO_COLOR": "1", "HOME": str(folder / "here"), "USER": "ann", "LOGNAME": "ann",
        }  # fmt: skip
        # Once as it is installed; the commands of tests begin where this one has loaded its modules.
        line = [sys.executable, "-m", "generator", "build", NAME]
        subprocess.run(line, cwd=self.here, env=self.environment, check=True, stdout=subprocess.DEVNULL)
        self._loaded = Loaded(("run", NAME, "smoke", "--print"), self.here, self.environment)

    def starts(self, *words: str) -> Command:
        """`cycleforge` with these words, in the background."""
        return self._loaded.starts(*words)

    def goes(self) -> None:
        """No more commands."""
        self._loaded.close()

    def types(self, *words: str) -> Told:
        """The same, to its end."""
        with self.starts(*words) as process:
            out, err = process.communicate(timeout=COMMAND_S)
        return Told(process.returncode, out, err)

    def asks(self, command: str) -> str:
        """What a command says on the scheduler."""
        line = ["ssh", "-F", f"output/{NAME}/ssh_config", "scheduler", command]
        return subprocess.run(
            line, cwd=self.here, env=self.environment, text=True, capture_output=True, check=True, timeout=COMMAND_S
        ).stdout

    def loses(self, number: int, how: str) -> None:
        """From here on the connection of this number is lost."""
        (self.folder / "count").write_text("0\n")
        (self.folder / "lose").write_text(f"{number} {how}\n")

    def keeps(self) -> int:
        """No connection is lost any more; how many there were."""
        (self.folder / "lose").unlink(missing_ok=True)
        count = self.folder / "count"
        return int(count.read_text()) if count.exists() else 0

    def own(self, name: str, **steps: str) -> Path:
        """A folder of the user's own; `_10_x` is 10-x.sbatch, `job` is job.sbatch."""
        folder = self.here / name
        folder.mkdir()
        for step, text in steps.items():
            file = step.lstrip("_").replace("_", "-") + ".sbatch"
            (folder / file).write_text(f"#!/bin/bash\n#SBATCH --output=%x_%j.out\n{text}\n")
        return folder

    def runs(self, name: str) -> list[str]:
        """Folders of this job's runs on the cluster."""
        return sorted(path.name for path in self.jobs.glob(f"{name}-*")) if self.jobs.is_dir() else []

    def submitted(self, run: str) -> list[str]:
        """The names of the jobs that Slurm has of a run, each as often as it was submitted."""
        rows = self.cloud.slurm("squeue", "-h", "--states=all", "--format=%j").split()
        return sorted(row for row in rows if row.startswith(run))

    def wait_for(self, what: str, condition: Callable[[], bool]) -> None:
        """Poll."""
        self.cloud.wait(what, condition)


@contextmanager
def a_user(folder: Path) -> Iterator[User]:
    """A running cluster of two nodes, and its user."""
    pool = Pool("htc", 2, cpus=64, memory_mib=64000, default=True)
    with running_cloud([pool], ("SuspendTime=108000", "MinJobAge=300"), accounting=True, release=HOST) as cloud:
        _write(cloud, folder)
        cloud.ok('mkdir -p /mnt/shared/home /run/sshd && mount --bind /mnt/shared/home "${HOME:?}"')
        cloud.start(*NODES)
        cloud.wait("all nodes are idle", lambda: {row.state for row in cloud.states().values()} == {"idle"})
        user = User(cloud, folder)
        spaces = [f"--{kind}=/proc/{cloud.holder}/ns/{name}" for kind, name in NAMESPACES.items()]
        (folder / "here/output" / NAME / "ssh_config").write_text(
            CONFIG.format(
                enter=f"nsenter {' '.join(spaces)} --wd=/ --", folder=shlex.quote(str(folder)), ssh=cloud.folder / "ssh"
            )
        )
        try:
            yield user
        finally:
            user.goes()


def _write(cloud: Cloud, folder: Path) -> None:
    for name in ("here/cluster_defs", "programs"):
        (folder / name).mkdir(parents=True)
    (folder / f"here/cluster_defs/{NAME}.yaml").write_text(SMALL)
    # The cluster sees its folder as /mnt, and has a /dev of its own, where tests may keep theirs.
    ssh = cloud.folder / "ssh"
    ssh.mkdir()
    for name in ("host_key", "user_key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", ssh / name], check=True)
    (ssh / "known_hosts").write_text(f"scheduler {(ssh / 'host_key.pub').read_text()}")
    environment = " ".join(f"{name}={value}" for name, value in ENVIRONMENT.items())
    (ssh / "sshd_config").write_text(SSHD.format(environment=environment))
    (folder / "programs/ssh").write_text(LOSING.format(folder=folder))
    (folder / "programs/ssh").chmod(0o755)


def kill(process: Command) -> None:
    """Power cut of the engineer's machine."""
    process.send_signal(signal.SIGKILL)
    process.communicate()


def wait_for_line(process: Command, text: str, limit_s: float = COMMAND_S) -> str:
    """What it says on its standard error until a line has the text."""
    said, end = "", time.monotonic() + limit_s
    for line in process.stderr:
        said += line
        if text in line:
            return said
        assert time.monotonic() < end, said
    raise AssertionError(f"it never said {text!r}:\n{said}")
