"""The first boot under a real systemd: CycleCloud outlives it, and it continues by itself after a kill."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.bed.server.booted import BootedServer, booted_server
from tests.bed.server.certificates import fingerprint
from tests.bed.server.fakes.releases import CLI_8_6_1, CLI_8_10, Release

if TYPE_CHECKING:
    from pathlib import Path

OURS = "cycleforge-bootstrap.service"
BROKEN = "#!/bin/sh\necho 'Failed to connect to bus: No such file or directory' >&2\nexit 1\n"
"""What systemd-run says on a system without D-Bus."""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BootedServer]:
    folder: Path = tmp_path_factory.mktemp("booted")
    with booted_server(folder) as server:
        yield server


def ended(server: BootedServer) -> bool:
    return server.machine.run(f"systemctl is-active {OURS}").output.strip() in ("inactive", "failed")


# One of each way to log in; test_login.py has every release.
@pytest.mark.parametrize("release", [CLI_8_6_1, CLI_8_10], ids=str)
def test_site_outlives_the_first_boot(machine: BootedServer, release: Release) -> None:
    machine.fresh(release)
    done = machine.deploy()
    assert done.code == 0, done.output
    assert ended(machine)
    groups = machine.web_server_groups()
    assert ".scope" in groups
    assert OURS not in groups
    assert machine.answers()
    status = machine.status()
    assert status["site"]["certificateSha256"] == fingerprint()
    assert fingerprint() in done.output
    known = machine.control()
    assert known["records"]["cycleforge-fingerprints"]["outputs"]["certificateSha256"]["value"] == fingerprint()
    assert known["dialogues"] == []
    assert known["locks"] == 0
    assert known["clusters"] == ["minimal"]
    assert machine.machine.ok("ls -A /run/cycleforge 2>/dev/null || true") == ""


def test_unit_of_the_system_is_used_where_there_is_one(machine: BootedServer) -> None:
    machine.fresh(unit=True)
    machine.machine.ok("systemctl start cycle_server")
    done = machine.deploy()
    assert done.code == 0, done.output
    assert ended(machine)
    assert "cycle_server.service" in machine.web_server_groups()
    assert machine.answers()


def test_unit_is_used_although_the_site_was_started_by_hand(machine: BootedServer) -> None:
    machine.fresh(unit=True)
    machine.machine.ok("/opt/cycle_server/cycle_server start")
    done = machine.deploy()
    assert done.code == 0, done.output
    assert "cycle_server.service" in machine.web_server_groups()


def test_slow_start_and_a_kill(machine: BootedServer) -> None:
    """systemd continues a run that was killed; the deployment waits for it."""
    machine.fresh()
    machine.machine.write("/var/lib/standin/slow", "3")
    machine.control(faults={"kill_before": "cyclecloud project upload"})
    done = machine.deploy()
    assert done.code == 0, done.output
    assert machine.status()["runs"] == 2
    assert machine.answers()


@pytest.mark.parametrize("kill_mode", ["", "control-group"])
def test_where_no_scope_can_be_had(machine: BootedServer, kill_mode: str) -> None:
    """Then the site is in our control group, which is said, and only `KillMode=process` keeps it alive."""
    machine.fresh(kill_mode=kill_mode)
    machine.machine.write("/usr/local/sbin/systemd-run", BROKEN, 0o755)
    done = machine.deploy()
    assert done.code == 1, done.output
    status = machine.status()
    assert status["step"] == "independent"
    assert f"belongs to {OURS}" in status["message"]
    assert "systemd-run --scope --collect" in status["hint"]
    assert ended(machine)
    assert machine.answers() == (kill_mode == "")


def test_site_that_ends_with_the_first_boot_fails_the_deployment(machine: BootedServer) -> None:
    """Whatever ended it: the deployment does not report success for a server that does not answer."""
    machine.fresh()
    machine.machine.write(
        "/etc/systemd/system/cycleforge-bootstrap.service.d/end.conf",
        "[Service]\nExecStopPost=/opt/cycle_server/cycle_server stop\n",
    )
    try:
        done = machine.deploy(CYCLEFORGE_AFTER_SECONDS="1")
    finally:
        machine.machine.ok("rm /etc/systemd/system/cycleforge-bootstrap.service.d/end.conf")
    assert done.code == 1
    assert machine.status()["state"] == "succeeded"
    assert "does not answer after its end (HTTP 000)" in done.output
