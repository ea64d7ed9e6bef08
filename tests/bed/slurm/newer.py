"""A cluster of Debian 13's Slurm (24.11) with four nodes: for what Debian 12's (22.05) does not know.

With `cloud=True` the nodes are State=CLOUD and come and go through the programs of power saving, as in
`tests.bed.cloud`, but without networks and mounts of their own: a VM is a slurmd and the number of times that its name
was started. The clock of power saving is the lines' own; `power_save_interval` is a second.

CycleCloud installs Slurm 23.02 to 25.11. The root is unpacked once per checkout, 15 s, and nothing of it is configured:
no service, no user. Daemons run below chroot in namespaces of their own; several slurmd share the host's address, each
with a port. auth/slurm takes munge's place: one munged for all nodes would take a message to the second for a replay.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.bed.cloud.files import CONTROLLER, CONTROLLER_ADDRESS, FEW_NODES, INSTEAD, sooner
from tests.bed.limits import COMMAND_S
from tests.bed.machines.overlay import PATH
from tests.bed.machines.roots import CACHE, needs
from tests.bed.slurm.client import Client
from tests.bed.slurm.template import slurm_conf

SUITE = "trixie"
PACKAGES = (
    "bash", "base-files", "coreutils", "slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins",
    # what our programs on the scheduler call
    "grep", "sed", "util-linux",
)  # fmt: skip
HOLDER = Path(__file__).with_name("newer.sh")
NODES = ("node1", "node2", "node3", "node4")
SETTINGS: Mapping[str, str | None] = {
    "ClusterName": "emu",
    "StateSaveLocation": "/var/spool/slurmctld",
    "SlurmUser": "root",
    "SlurmctldLogFile": "/var/log/slurmctld.log",
    "SlurmdLogFile": "/var/log/slurmd-%n.log",
    "SlurmdPidFile": "/run/slurmd-%n.pid",
    "SlurmdSpoolDir": "/var/spool/%n",
    "SlurmdParameters": "config_overrides",
    "MaxNodeCount": FEW_NODES,
    "AuthType": "auth/slurm",
    "CredType": "cred/slurm",
    "MpiDefault": "none",
    "Epilog": None,
    # Nodes are static here, and nobody reads the costs of VMs.
    **dict.fromkeys(("PrologSlurmctld", "ResumeProgram", "ResumeFailProgram", "SuspendProgram", "SuspendTime")),
    **INSTEAD,
}
CLOUD: Mapping[str, str | None] = {
    "ResumeProgram": "/mnt/azure/resume.sh",
    "SuspendProgram": "/mnt/azure/suspend.sh",
    "ResumeFailProgram": "/mnt/azure/suspend.sh",
    "ResumeTimeout": "60",
    "SuspendTimeout": "2",
    "SuspendTime": "2",
    "SlurmctldParameters": "idle_on_node_suspend,power_save_interval=1",
}
"""As cyclecloud-slurm sets them, faster; `idle_on_node_suspend` is its own."""
RESUME = """#!/bin/bash
# As `azslurm resume` of 4.0.9: nodes whose VM is there are left alone.
echo "resume $*" >>/mnt/azure/calls
new=()
for name in $(scontrol show hostnames "$*"); do
    [[ ! -e "/mnt/azure/vms/$name" ]] || continue
    number=0
    [[ ! -e "/mnt/azure/count.$name" ]] || read -r number <"/mnt/azure/count.$name"
    echo "$((number + 1))" | tee "/mnt/azure/count.$name" >"/mnt/azure/vms/$name"
    new+=("$name")
done
# slurmctld compares seconds: a boot in the second of its request is the one before. What the program leaves behind in
# its process group is killed when it ends, and a slurmd leaves the group only after it has let go of its caller.
sleep 2.2
for name in "${new[@]}"; do
    rm -f "/var/spool/$name/"*
    setsid /usr/sbin/slurmd -b -N "$name" </dev/null >/dev/null 2>&1
done
"""
SUSPEND = """#!/bin/bash
# As `azslurm suspend` of 4.0.9: every VM that is there is deleted.
echo "suspend $*" >>/mnt/azure/calls
for name in $(scontrol show hostnames "$*"); do
    [[ ! -e "/run/slurmd-$name.pid" ]] || kill -KILL "$(<"/run/slurmd-$name.pid")" || :
    rm -f "/run/slurmd-$name.pid" "/mnt/azure/vms/$name"
done
"""
PROLOG = """#!/bin/bash
echo "$SLURMD_NODENAME" >>/mnt/prologs
[[ ! -e "/mnt/sick.$SLURMD_NODENAME" ]]
"""


class Newer(Client):
    """The cluster; `shared` is the nodes' /mnt. A node is sick while `shared/sick.<node>` exists: its prolog fails."""

    shared_inside = "/mnt"

    def __init__(self, folder: Path, root: Path, holder: int) -> None:
        self.folder, self.shared = folder, folder / "shared"
        kinds = {"net": "net", "mount": "mnt", "uts": "uts", "pid": "pid_for_children"}
        spaces = (f"--{kind}=/proc/{holder}/ns/{file}" for kind, file in kinds.items())
        self._inside = ["nsenter", *spaces, "--", "chroot", str(root)]

    def ok(self, script: str, *arguments: str, timeout_s: float = COMMAND_S) -> str:
        """Run Bash text in the root; it must succeed. What it wrote to standard output."""
        done = subprocess.run(
            [*self._inside, "timeout", "--kill-after=5", str(timeout_s), "bash", "-c", script, "bash", *arguments],
            env={"PATH": PATH, "LANG": "C.UTF-8", "HOME": "/"}, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            said = f"{script} {arguments} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
            raise AssertionError(f"{said}\n{self.report()}")
        return done.stdout

    def report(self) -> str:
        """The ends of all logs."""
        logs = sorted((self.folder / "log").rglob("*.log"))
        return "\n".join(f"--- {path.name}\n{path.read_text(errors='replace')[-3000:]}" for path in logs)

    def vms(self) -> dict[str, int]:
        """Nodes whose VM exists, with the number of VMs that their name has had."""
        return {path.name: int(path.read_text()) for path in (self.shared / "azure/vms").iterdir()}

    def calls(self) -> list[str]:
        """What power saving has asked for, in order: `resume` or `suspend` and a host list."""
        path = self.shared / "azure/calls"
        return path.read_text().splitlines() if path.exists() else []

    def prologs(self) -> list[str]:
        """Nodes whose prolog has begun, in order."""
        path = self.shared / "prologs"
        return path.read_text().split() if path.exists() else []


@contextmanager
def running_newer(lines: Sequence[str], *, cloud: bool = False) -> Iterator[Newer]:
    """Start slurmctld and four nodes with these lines at the end of slurm.conf, and end all that belongs to them.

    With `cloud`, no node has a VM at first.
    """
    needs("unshare", "nsenter", "ip", "mmdebstrap")
    root = unpacked_root()
    folder = Path(tempfile.mkdtemp(prefix="cfn"))
    try:
        _write(folder, root, lines, cloud=cloud)
        command = ["unshare", "--net", "--mount", "--uts", "--pid", "--mount-proc", "--propagation=private", "--fork",
                   "--kill-child", "bash", str(HOLDER), str(root), str(folder)]  # fmt: skip
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={"PATH": PATH}) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                assert process.stdout.readline() == b"ready\n", "no namespaces for a cluster"
                newer = Newer(folder, root, process.pid)
                newer.ok('slurmctld; for node; do slurmd -N "$node"; done', *(() if cloud else NODES))
                idle = {"idle~" if cloud else "idle"}
                newer.wait("all nodes are idle", lambda: {state.state for state in newer.states().values()} == idle)
                yield newer
            finally:
                process.stdin.close()
    finally:
        shutil.rmtree(folder)


def _write(folder: Path, root: Path, lines: Sequence[str], *, cloud: bool) -> None:
    for name in ("spool/slurmctld", "log", "shared/azure/vms", *(f"spool/{node}" for node in NODES)):
        (folder / name).mkdir(parents=True)
    shutil.copytree(root / "etc", folder / "etc", symlinks=True)
    etc = folder / "etc"
    slurm = etc / "slurm"
    (slurm / "prolog.d").mkdir(parents=True)
    (etc / "passwd").write_text("root:x:0:0:root:/:/bin/bash\n")
    (etc / "group").write_text("root:x:0:\n")
    (etc / "nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files\n")
    (etc / "hosts").write_text(f"127.0.0.1 localhost\n{CONTROLLER_ADDRESS} {CONTROLLER}\n")
    (slurm / "prolog.d/10-prolog.sh").write_text(PROLOG)
    (slurm / "prolog.d/10-prolog.sh").chmod(0o755)
    (slurm / "cgroup.conf").write_text("CgroupPlugin=disabled\n")
    key = slurm / "slurm.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o600)
    words = [line.partition("=") for line in lines]
    appended = [f"{name}={sooner(value) if name == 'SchedulerParameters' else value}" for name, _, value in words]
    for name, text in (("resume", RESUME), ("suspend", SUSPEND)):
        program = folder / f"shared/azure/{name}.sh"
        program.write_text(text)
        program.chmod(0o755)
    settings = {**SETTINGS, **CLOUD} if cloud else SETTINGS
    (slurm / "slurm.conf").write_text(slurm_conf(settings, f"{CONTROLLER}({CONTROLLER_ADDRESS})", appended))
    nodes = [
        f"NodeName={node} NodeHostname={CONTROLLER} NodeAddr={CONTROLLER_ADDRESS} Port={17000 + place} CPUs=4 "
        f"RealMemory=4000{' State=CLOUD' if cloud else ''}"
        for place, node in enumerate(NODES, 1)
    ]
    partition = f"PartitionName=htc Nodes={','.join(NODES)} Default=YES MaxTime=INFINITE State=UP"
    (slurm / "azure.conf").write_text("\n".join([*nodes, partition, ""]))
    for name in ("accounting", "keep_alive", "site_specific"):
        (slurm / f"{name}.conf").write_text("")


def unpacked_root() -> Path:
    """The unpacked packages; made at the first use and never written to afterwards."""
    recipe = "\0".join((SUITE, *PACKAGES))
    folder = CACHE / f"slurm-{hashlib.sha256(recipe.encode()).hexdigest()[:16]}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "slurm.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.is_dir():
            os.utime(folder)
            return folder
        building = CACHE / f"{folder.name}.unpacking"
        shutil.rmtree(building, ignore_errors=True)
        done = subprocess.run(
            ["mmdebstrap", "--mode=root", "--variant=extract", "--format=directory", f"--include={','.join(PACKAGES)}",
             "--aptopt=Apt::Install-Recommends \"false\"",
             "--keyring=/usr/share/keyrings/debian-archive-keyring.gpg", SUITE, str(building)],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"no root with a newer Slurm: {done.stderr[-2000:]}")
        (building / "mnt").mkdir(exist_ok=True)
        for name in ("slurmctld", "slurmd", "slurmstepd"):
            # Debian's alternatives, which nothing has set up; the daemons look at the name that they are called by.
            (building / "usr/sbin" / name).symlink_to(f"{name}-wlm")
        building.rename(folder)
        return folder
