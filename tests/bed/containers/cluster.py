"""A small Slurm cluster of booted machines for containers, all in one network.

Each machine is set up in the order of a CycleCloud node: image, Slurm's own install step, the scripts of our project as
the node agent runs them, then Slurm's daemons. /nvme is a file system that every boot finds empty.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from generator.files import assets
from generator.projects.content import contents
from generator.projects.ini import read_project
from tests.bed.machines.booted import QUIET, booted_machine
from tests.bed.machines.overlay import Bind, Machine, Network, Result, saved
from tests.bed.machines.roots import node_root

MACHINE = Path(__file__).parent / "machine"
PROJECT = "pyxis_enroot"
SPEC = f"/mnt/cluster-init/{PROJECT}/default"
PORT = 6817
ADDRESS = "10.77.0.1"
GROUP = 2000
USERS = {"alice": 2001, "bob": 2002}
"""Both have the same primary group, as users of a directory service have."""
SLURM_CONF = (MACHINE / "slurm.conf").read_text()
GRES_CONF = "AutoDetect=off\nName=gpu File=/sched/gpu[0-7]\n"
"""GPUs that jobs can ask for; nothing is behind them. slurmd counts devices."""
# Image and Slurm's own install step: configured and enabled, not started.
INSTALL = (MACHINE / "install.sh").read_text()
# As systemctl enable, without the second that its look at old init scripts takes.
START = """\
ln -sf "/lib/systemd/system/$1.service" "/etc/systemd/system/multi-user.target.wants/$1.service"
systemctl start "$1"
"""
NETWORK = f"""\
set -euo pipefail
ip link set lo up
ip link add bridge0 address 02:00:00:00:00:fe type bridge
ip addr add {ADDRESS}/24 dev bridge0
ip link set bridge0 up
echo ready
# Until this pipe is closed, also by the end of a test that was killed.
read -r _ || true
"""
AGENT = (MACHINE / "agent.sh").read_text()


@dataclass(frozen=True)
class Part:
    """A machine to make: its role, whether slurmctld runs on it, and layers above the node root."""

    role: str
    controller: bool = False
    layers: tuple[Path, ...] = ()


class Member:
    machine: Machine

    def __init__(self, name: str, part: Part, files: Path, binds: Sequence[Bind]) -> None:
        self.name, self.part, self.files = name, part, files
        self._binds, self._layers = binds, list(part.layers)
        self._kept, self._running = ExitStack(), ExitStack()

    def start(self, network: Network) -> None:
        self._network = network
        self.machine = self._running.enter_context(
            booted_machine(node_root(), *self._layers, name=self.name, binds=self._binds, network=network, masked=QUIET)
        )

    def reboot(self) -> None:
        """Cut the power and boot again: the system disk stays; /nvme, /run and all processes are gone."""
        self._layers.append(self._kept.enter_context(saved(self.machine)))
        self._running.close()
        self.start(self._network)

    def end(self) -> None:
        self._running.close()
        self._kept.close()

    def attribute(self, key: str, value: str) -> None:
        (self.files / "attributes" / key).write_text(value + "\n")

    def ok(self, script: str, *arguments: str) -> str:
        return self.machine.ok(script, *arguments)

    def user(self, name: str, script: str) -> Result:
        """Run Bash text as an ordinary user in the user's home."""
        words = f"cd /home/{name}; exec setpriv --reuid {name} --regid {GROUP} --init-groups "
        return self.machine.run(words + f'env HOME=/home/{name} bash -c "$1"', script)

    def converge(self) -> str:
        """Run the project's scripts as the node agent does; they must all succeed."""
        place(self.machine)
        return self.machine.ok(AGENT, PROJECT, SPEC)

    def journal(self, unit: str) -> str:
        return self.machine.run('journalctl --sync; journalctl --no-pager --output cat --boot --unit "$1"', unit).output


def place(machine: Machine) -> None:
    """The rendered spec where the node agent puts it."""
    start = PurePosixPath("specs/default/cluster-init")
    for path, file in contents(read_project(assets.folder("projects") / PROJECT), shipped=True).items():
        if path.is_relative_to(start):
            machine.write(f"{SPEC}/{path.relative_to(start)}", file.content)


class Cluster:
    def __init__(self, folder: Path, members: Mapping[str, Member]) -> None:
        self.folder, self.members = folder, dict(members)
        self.nodes = [name for name, member in members.items() if member.part.role == "execute"]
        (self.controller,) = (member for member in members.values() if member.part.controller)

    def __getitem__(self, name: str) -> Member:
        return self.members[name]

    def start_services(self) -> None:
        """What start-services.sh of 4.x does after all cluster-init has ended."""
        for member in self.members.values():
            member.ok("systemctl start munge")
        self.controller.ok(START, "slurmctld")
        for name in self.nodes:
            self[name].ok(START, "slurmd")
        self.wait_idle()

    def wait_idle(self, limit_s: float = 600) -> None:
        deadline = time.monotonic() + limit_s
        states = ""
        while time.monotonic() < deadline:
            states = self.controller.machine.run("sinfo -h -N -o %T").output
            if states.split() == ["idle"] * len(self.nodes):
                return
            time.sleep(0.1)
        logs = "\n".join(self[name].journal("slurmd")[-2000:] for name in self.nodes)
        raise AssertionError(f"not idle within {limit_s} s: {states}\n{logs}")


@contextmanager
def running(parts: Mapping[str, Part], blobs: Mapping[str, bytes]) -> Iterator[Cluster]:
    """Boot the machines and run Slurm's install step; end everything that belongs to them."""
    node_root()
    folder = Path(tempfile.mkdtemp(prefix="cfc", dir="/tmp"))
    folder.chmod(0o755)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder)
        _shared(folder, parts, blobs)
        members = {name: _member(folder, name, part) for name, part in parts.items()}
        network = stack.enter_context(_network())
        for member in members.values():
            stack.callback(member.end)
        users = [f"{name}={uid}" for name, uid in USERS.items()]
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda member: member.start(network), members.values()))
            list(pool.map(lambda member: member.ok(INSTALL, member.name, str(GROUP), *users), members.values()))
        yield Cluster(folder, members)


@contextmanager
def _network() -> Iterator[Path]:
    """A network of its own for all machines, which survives their reboots; nothing on the host needs a name.

    Slurm looks up no address where the loopback is the only one, hence the bridge.
    """
    with subprocess.Popen(
        ["unshare", "--net", "bash", "-c", NETWORK], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        try:
            assert holder.stdout.readline() == b"ready\n"
            yield Path(f"/proc/{holder.pid}/ns/net")
        finally:
            holder.communicate()


def _member(folder: Path, name: str, part: Part) -> Member:
    files = folder / name
    (files / "attributes").mkdir(parents=True)
    shutil.copy(MACHINE / "jetpack", files)
    shutil.copy(MACHINE / "nvme.mount", files)
    binds = [
        Bind(folder / "sched", "/sched", writable=True), Bind(folder / "home", "/home", writable=True),
        Bind(folder / "locker", "/locker"), Bind(files, "/fake"), Bind(folder / "hosts", "/etc/hosts"),
    ]  # fmt: skip
    member = Member(name, part, files, binds)
    member.attribute("slurm.role", part.role)
    return member


def _shared(folder: Path, parts: Mapping[str, Part], blobs: Mapping[str, bytes]) -> None:
    for name in ("sched", "home", "locker"):
        (folder / name).mkdir()
    (controller,) = (name for name, part in parts.items() if part.controller)
    nodes = [name for name, part in parts.items() if part.role == "execute"]
    text = SLURM_CONF.format(controller=controller, address=ADDRESS, port=PORT)
    for place_, name in enumerate(nodes, 1):
        text += f"NodeName={name} NodeHostname={name} NodeAddr={ADDRESS} Port={PORT + place_} CPUs=8 Gres=gpu:8\n"
    text += f"PartitionName=hpc Nodes={','.join(nodes)} Default=YES MaxTime=INFINITE State=UP\n"
    (folder / "sched/slurm.conf").write_text(text)
    (folder / "sched/gres.conf").write_text(GRES_CONF)
    for number in range(8):
        os.mknod(folder / f"sched/gpu{number}", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    (folder / "sched/munge.key").write_bytes(b"a key of the tests, the same on every machine" * 3)
    (folder / "hosts").write_text(f"127.0.0.1 localhost\n{ADDRESS} {' '.join(parts)}\n")
    for name, uid in USERS.items():
        home = folder / "home" / name
        home.mkdir()
        shutil.chown(home, uid, GROUP)
    for name, content in blobs.items():
        (folder / "locker" / name).write_bytes(content)
