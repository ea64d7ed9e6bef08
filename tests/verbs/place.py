"""A deployed cluster: its server with the CLI's fake, its scheduler, an `ssh` that leads to them, and Azure."""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import warnings
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from generator.azure.deployment import CONTENT_TAG
from generator.azure.reader import Reader
from generator.azure.request import Call
from generator.cli import main
from generator.cyclecloud.shell import Ran, Shell
from tests.bed.arm import Arm
from tests.bed.server.certificates import certificate
from tests.bed.server.fakes.accounts import encode
from tests.bed.server.fakes.clusters import OFF, READY
from tests.bed.server.fakes.site import Site
from tests.bed.ssh.hosts import Hosts
from tests.verbs.slurm import Slurm
from tests.what_if import place as what_if
from tests.what_if.place import PASSWORD

DATABASE_PASSWORD = "d4tabase-of-the-test"
FAKES = Path(__file__).parents[1] / "bed/server/fakes"
USER = "ccadmin"
_RUN = Shell.run
SSH = """\
#!/bin/sh
# The way to a host: its shell, here. FOLDER/lost names what is lost at which connection.
{ printf '%s\\n' "$*"; env; } >>"FOLDER/ssh.log"
while :; do case "$1" in -F|-o) shift 2;; -t) shift;; *) break;; esac; done
host=$1
shift
read -r n <"FOLDER/count"
n=$((n + 1))
echo "$n" >"FOLDER/count"
lost=
while read -r number how; do
    if [ "$number" = "$n" ]; then lost=$how; fi
done <"FOLDER/lost"
case "$lost" in *-before) kill "-${lost%-before}" "$PPID"; exit 255 ;; esac
if [ -e "FOLDER/unreachable-$host" ] || [ "$lost" = before ]; then
    echo "ssh: connect to host $host port 22: Connection timed out" >&2
    exit 255
fi
PATH="FOLDER/hosts/$host:/usr/bin:/bin"
# What the user has exported stays here.
set -- env -i PATH="$PATH" HOME="FOLDER/home-$host" FAKE_PORT=NUMBER sh -c "$*"
if [ -z "$lost" ]; then exec "$@"; fi
"$@" >"FOLDER/answer"
status=$?
case "$lost" in *-after) kill "-${lost%-after}" "$PPID" ;; esac
if [ "$lost" = after ]; then
    echo "client_loop: send disconnect: Broken pipe" >&2
    exit 255
fi
cat "FOLDER/answer"
exit "$status"
"""
_SUDO = """\
#!/bin/sh
# Files and programs of root are below FOLDER/root.
while :; do case "$1" in -n|-H) shift ;; -u) shift 2 ;; *) break ;; esac; done
[ "$1" != tail ] || set -- sh -c "$*"
if [ "$1" = sh ]; then
    exec sh -c "$(printf %s "$3" | sed 's# \\(/var/\\|/opt/\\|/sched/\\)# FOLDER/root\\1#g')"
fi
case "$1 $2" in "bash /opt/"*) shift ;; esac
case "$1" in /opt/*) program=${1##*/}; shift; set -- "$program" "$@" ;; esac
case "$*" in "cat /var/"*) exec cat "FOLDER/root$2" ;; esac
exec "$@"
"""


class Living(what_if.Place):
    """Runs verbs against it; `site`, `slurm` and `arm` are what they reach."""

    def __init__(
        self, arm: Arm, folder: Path, capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch, kept: Path
    ) -> None:
        super().__init__(arm, folder, capsys, patch, kept)
        self.slurm = Slurm()
        self.uploads: list[str] = []
        """Lockers to which projects were sent."""
        self.site = Site(folder / "root", {}, {}, certificate(), 0.01)
        (folder / "root/opt/cycle_server/config/data").mkdir(parents=True)
        self.site.start()
        self.site.programs |= self.slurm.programs
        self.clusters = self.site.command_line.clusters
        self.cluster: dict[str, Any] = {"nodes": [{"Name": "scheduler", **OFF}, {"Name": "login-1", **OFF}]}
        self.site.clusters["minimal"] = self.cluster
        self._hosts()
        self.built()
        config = folder / "output/minimal/ssh_config"
        if not config.exists():
            config.write_text("Host *\n")

    def __call__(self, *words: str) -> tuple[int, str, str]:
        """A verb, which says no secret."""
        code, out, err = super().__call__(*words)
        assert DATABASE_PASSWORD not in out + err
        return code, out, err

    def _hosts(self) -> None:
        for name, text in (("lost", ""), ("count", "0\n"), ("ssh.log", "")):
            (self.folder / name).write_text(text)
        text = SSH.replace("FOLDER", str(self.folder)).replace("NUMBER", str(self.site.port))
        self._program(self.folder / "bin/ssh", text)
        fake = f"#!/bin/bash\n{(FAKES / 'program.sh').read_text()}"
        sudo = _SUDO.replace("FOLDER", str(self.folder))
        server, scheduler = self.folder / "hosts/server", self.folder / "hosts/scheduler"
        home = self.folder / "home-server"
        row = f"{USER}:x:1000:1000::{home}:/bin/sh"
        texts = {"cyclecloud": fake, "cycle_server": fake, "id": f"#!/bin/sh\necho {USER}\n", "sudo": sudo,
                 "getent": f"#!/bin/sh\n[ $2 = {USER} ] && echo {row}\n"}  # fmt: skip
        for name, text in texts.items():
            self._program(server / name, text)
        programs = (
            "scontrol",
            "squeue",
            "azslurm",
            "systemctl",
            "systemd-run",
            "nodes.sh",
            "policy.sh",
            "sinfo",
            "sdiag",
        )
        for name, text in (*((name, fake) for name in programs), ("sudo", sudo)):
            self._program(scheduler / name, text)
        self.site.accounts.passwords[USER] = PASSWORD
        login = home / ".cycle/config.ini"
        login.parent.mkdir(parents=True)
        login.write_text(
            f"[cycleserver]\nby=initialize\nurl={self.site.portal}\nusername={USER}\nkey={encode(PASSWORD)}\n"
        )
        self.patch.setenv("SLURM_DATABASE_PASSWORD", DATABASE_PASSWORD)
        self.patch.setenv("PATH", f"{self.folder / 'bin'}:{os.environ['PATH']}")

    @staticmethod
    def _program(path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def is_behind(self, bed: Hosts) -> None:
        """A real ssh leads to the same programs."""
        shutil.copy(bed.config, self.folder / "output/minimal/ssh_config")
        for name, host in bed.by_name.items():
            for path in (self.folder / "hosts" / name).iterdir():
                environment = f"FAKE_PORT={self.site.port} HOME={self.folder}/home-{name}"
                host.program(path.name, f'#!/bin/sh\nexec env {environment} {path} "$@"\n')

    def runs(self, *nodes: dict[str, Any]) -> None:
        """The cluster is started, with these nodes besides scheduler and login node."""
        fixed = [{"Name": name, "InstanceId": f"{name}-vm", **READY} for name in ("scheduler", "login-1")]
        self.cluster.update(started=True, state="started", nodes=[*fixed, *map(dict, nodes)])

    def loses(self, *connections: tuple[int, str]) -> None:
        """Which connections are lost, counted from the next one: before the command runs, or after it."""
        (self.folder / "count").write_text("0\n")
        (self.folder / "lost").write_text("".join(f"{number} {when}\n" for number, when in connections))

    def meanwhile(self, action: Callable[[int], object]) -> None:
        """Somebody does this just before each connection, which has a number from now on."""
        numbers = count(1)

        def run(shell: Shell, command: str, **more: Any) -> Ran:
            action(next(numbers))
            return _RUN(shell, command, **more)

        self.patch.setattr(Shell, "run", run)

    def ended_by(self, number: int, when: str, *words: str) -> int:
        """A process of its own that is ended at that connection: its status, as `os.waitpid` has it."""
        self.loses((number, when))
        with warnings.catch_warnings(action="ignore"):
            child = os.fork()  # what tests have patched is patched there, too
        if not child:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            os._exit(main(list(words)))
        _, status = os.waitpid(child, 0)
        self.loses()
        return status

    @property
    def connections(self) -> int:
        """How many there were since `loses`."""
        return int((self.folder / "count").read_text())

    def has_no_path_to(self, host: str) -> None:
        """ssh times out."""
        (self.folder / f"unreachable-{host}").touch()
        if host == "server":
            self.arm.state.put(self._machine(), hardwareProfile={})
            self.arm.state.shell = self._root

    def _machine(self) -> str:
        group = f"{self.arm.state.scope}/resourceGroups/minimal-rg"
        self.arm.state.put(group, location="southcentralus")
        return f"{group}/providers/Microsoft.Compute/virtualMachines/minimal-server"

    def _root(self, _: str, script: str) -> tuple[str, str]:
        """Azure's run command on the server."""
        path = f"{self.folder / 'hosts/server'}:/usr/bin:/bin"
        environment = {"PATH": path, "HOME": "/root", "FAKE_PORT": str(self.site.port)}
        environment["HOME"] = str(self.folder / "home-server")  # which `sudo -H` sets
        ran = subprocess.run(["sh", "-c", script], env=environment, capture_output=True, text=True, check=False)
        return ran.stdout, ran.stderr

    def deployment(self, content: str, more: dict[str, Any] | None = None, operation: str = "") -> None:
        """The record in Azure, of a folder with this content."""
        outputs = {"lockerAccount": {"type": "String", "value": "minimalacct"}} | (more or {})
        properties = {"provisioningState": "Succeeded", "timestamp": "2026-11-22T10:00:00Z", "outputs": outputs,
                      "correlationId": "00000000-0000-0000-0000-000000000001"}  # fmt: skip
        path = "/providers/Microsoft.Resources/deployments/minimal-southcentralus"
        record = {"tags": {CONTENT_TAG: content}, "properties": properties}
        rows = [{"operationId": "1", "properties": {"statusMessage": operation}}]

        def find(reader: Reader, call: Call) -> dict[str, Any] | None:
            return record if path in reader._clients.written(call.write).url else None

        self.patch.setattr("generator.azure.reader.Reader.find", find)
        self.patch.setattr("generator.azure.reader.Reader.pages", lambda _, call: rows)

    def also_reaches(self, node: str) -> None:
        """A node with the programs of the scheduler, as far as they matter."""
        shutil.copytree(self.folder / "hosts/scheduler", self.folder / "hosts" / node)

    def environment(self, checkout: Path) -> dict[str, str]:
        """For a program of its own."""
        return {**os.environ, "PYTHONPATH": str(checkout)}

    def types(self, text: str) -> None:
        """What is typed on a terminal."""
        terminal = io.StringIO(text)
        terminal.isatty = lambda: True  # type: ignore[method-assign]
        self.patch.setattr("sys.stdin", terminal)

    @property
    def changes(self) -> list[str]:
        """What changed something, on any machine."""
        said = [f"{call['name']} {' '.join(call['argv'])}" for call in self.site.calls]
        asks = ("cyclecloud show_", "scontrol show", "scontrol --oneliner", "squeue", "systemctl is-active",
                "nodes.sh list", "cycle_server execute", "cyclecloud --version", "sinfo", "sdiag")  # fmt: skip
        return [line for line in said if not line.startswith(asks)]

    def end(self) -> None:
        """Close ports; no secret was in an argument or environment of ssh or a program behind it, and none is kept."""
        self.site.stop()
        log = (self.folder / "ssh.log").read_text()
        kept = [path.read_text(errors="replace") for path in (self.folder / "home").rglob("*") if path.is_file()]
        for text in (log, *kept, *(f"{call['argv']}{call['environment']}" for call in self.site.calls)):
            for secret in (PASSWORD, encode(PASSWORD), DATABASE_PASSWORD):
                assert secret not in text
        shutil.rmtree(self.folder / "root")
