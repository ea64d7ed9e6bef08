"""A server VM that boots: systemd, units, scopes and control groups are real, CycleCloud and Azure are stand-ins.

Everything is in one machine with a network of its own, so the ports are the real ones.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from generator.files import assets
from tests.bed.machines.booted import QUIET, booted_machine
from tests.bed.machines.overlay import Bind, Machine, Result
from tests.bed.machines.roots import node_root
from tests.bed.server.certificates import certificate
from tests.bed.server.fakes.releases import CLI_8_6_1, Release
from tests.bed.server.fakes.serve import PORTS
from tests.bed.server.harness import FAKES, HOST_KEY, PATIENCE_S, Server

STAND_IN = "/var/lib/standin"
CLI = "/usr/local/cyclecloud-cli/embedded/bin"
SCALE = 0.01
URL = f"http://127.0.0.1:{PORTS[0]}"
ENVIRONMENT = {
    "CYCLEFORGE_IMDS": URL, "CYCLEFORGE_BLOB": URL, "CYCLEFORGE_TIME_SCALE": str(SCALE),
    "CYCLEFORGE_PATIENCE_S": str(PATIENCE_S), "CYCLEFORGE_PAUSE_SECONDS": "0.2", "CYCLEFORGE_WAIT_SECONDS": "600",
}  # fmt: skip
PROPERTIES = "webServerPort=8080\nwebServerSslPort=8443\nwebServerEnableHttps=false\n"
UNIT = """[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/opt/cycle_server/cycle_server start
ExecStop=/opt/cycle_server/cycle_server stop
"""
"""Its type and commands are not published; this is what `autostart.sh on` must lead to at least."""

DROP_IN = "/etc/systemd/system/cycleforge-bootstrap.service.d/test.conf"


class BootedServer:
    """One machine; `fresh` makes it a server on which nothing has happened yet."""

    def __init__(self, machine: Machine, server: Server) -> None:
        self.machine = machine
        self._server = server

    def control(self, **wanted: Any) -> dict[str, Any]:
        known: dict[str, Any] = json.loads(self.machine.ok('control "$1"', json.dumps(wanted)))
        return known

    def fresh(self, release: Release = CLI_8_6_1, unit: bool = False, kill_mode: str = "") -> None:
        """A server with this CLI; `unit` as after CycleCloud's autostart.sh, `kill_mode` instead of ours."""
        machine = self.machine
        machine.ok(
            "systemctl stop cycleforge-bootstrap.service cycle_server.service 2>/dev/null; "
            "/opt/cycle_server/cycle_server stop; "
            f"rm -rf /var/lib/cycleforge /run/cycleforge /opt/cycleforge /usr/local/bin/cyclecloud {STAND_IN}/slow "
            "/usr/local/sbin/systemd-run /etc/systemd/system/cycle_server.service"
        )
        machine.write("/opt/cycle_server/config/cycle_server.properties", PROPERTIES)
        if unit:
            machine.write("/etc/systemd/system/cycle_server.service", UNIT)
        variables = "".join(f"Environment={name}={value}\n" for name, value in ENVIRONMENT.items())
        mode = f"KillMode={kill_mode}\n" if kill_mode else ""
        # systemd would wait ten seconds before it continues, and count starts of all tests together.
        machine.write(DROP_IN, f"[Unit]\nStartLimitIntervalSec=0\n[Service]\nRestartSec=100ms\n{mode}{variables}")
        machine.ok("systemctl daemon-reload; systemctl reset-failed")
        self.control(release=release.build)

    def deploy(self, **environment: str) -> Result:
        script = "/var/lib/waagent/custom-script/download/0/script.sh"
        self.machine.write(script, self._server.script().read_bytes(), 0o500)
        return self.machine.run(f"sh {script}", environment=ENVIRONMENT | environment)

    def status(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.machine.read("/var/lib/cycleforge/status.json"))
        return document

    def web_server_groups(self) -> str:
        """Control groups of whoever listens on the site's port; empty if nobody does."""
        shown = self.machine.run("ss -Hltnp 'sport = :443' | sed -n 's/.*pid=\\([0-9]*\\).*/\\1/p'").output.strip()
        return self.machine.ok(f"cat /proc/{shown}/cgroup") if shown else ""

    def answers(self) -> bool:
        return self.machine.run("curl -skf --max-time 20 -o /dev/null https://localhost:443/ui/metadata").code == 0


@contextmanager
def booted_server(folder: Path) -> Iterator[BootedServer]:
    """A machine with the stand-ins; `folder` is for this test's own files."""
    server = Server(folder)
    try:
        server.facts["armEndpoint"] = URL + "/"
        binds = [Bind(assets.root() / "tests", "/standin/tests")]
        with booted_machine(node_root(), name="server", binds=binds, masked=QUIET) as machine:
            _install(machine, server)
            yield BootedServer(machine, server)
    finally:
        server.close()


def _install(machine: Machine, server: Server) -> None:
    environment = f"#!/bin/bash\nexport FAKE_DIR={STAND_IN} FAKE_PORT={PORTS[1]} FAKE_PYTHON=/usr/bin/python3\n"
    program = environment + (FAKES / "program.sh").read_text()
    started = environment + (FAKES / "cycle_server.sh").read_text() + (FAKES / "program.sh").read_text()
    machine.write("/opt/cycle_server/cycle_server", started, 0o755)
    machine.write("/usr/local/sbin/control", program, 0o755)
    machine.write(f"{CLI}/cyclecloud", program, 0o755)
    machine.write(f"{CLI}/python3", environment + (FAKES / "python3.sh").read_text(), 0o755)
    machine.write(f"{STAND_IN}/packages/cyclecli/__init__.py", "")
    machine.write(f"{STAND_IN}/packages/cyclecli/util.py", (FAKES / "accounts.py").read_text())
    machine.write(f"{STAND_IN}/webserver.py", (FAKES / "webserver.py").read_text())
    machine.write(f"{STAND_IN}/site.pem", certificate().read_bytes(), 0o600)
    machine.write(f"{STAND_IN}/facts.json", json.dumps(server.facts | {"scale": SCALE}))
    for name, content in server.site.chunks.items():
        machine.write(f"{STAND_IN}/chunks/{name}", content)
    machine.write("/opt/cycle_server/config/data/.keep", "")
    machine.write("/etc/hosts", "127.0.0.1 localhost\n")
    machine.write("/etc/ssh/ssh_host_ed25519_key.pub", HOST_KEY)
    machine.ok(
        "systemd-run --quiet --collect --unit=standin --setenv=PYTHONPATH=/standin "
        f"--setenv=PYTHONDONTWRITEBYTECODE=1 python3 -m tests.bed.server.fakes.serve {STAND_IN}"
    )
    while not machine.path(f"{STAND_IN}/ready").exists():
        assert machine.run("systemctl is-active --quiet standin").code == 0, machine.run("journalctl -u standin").output
        time.sleep(0.05)
