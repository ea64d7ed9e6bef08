"""The script that runs on the server, run by a real shell with stand-ins of the programs that it calls."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from generator.azure.deletion.nodes import script

SUDO = '#!/bin/sh\nshift 2; echo "as $1"; shift; exec "$@"\n'
"""`sudo -H -u USER PROGRAM …`: https://www.sudo.ws/docs/man/sudo.man/"""
GETENT = '#!/bin/sh\necho "$2:x:1:1::$HOMES/$2:/bin/sh"\n'
"""`getent passwd USER`: https://man7.org/linux/man-pages/man1/getent.1.html"""
CLI = '#!/bin/sh\necho "$@"; exit "${STATUS:-0}"\n'


@pytest.fixture
def server(tmp_path: Path) -> Path:
    for name, text in (("sudo", SUDO), ("getent", GETENT), ("cyclecloud", CLI)):
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


def run(server: Path, **environment: str) -> list[str]:
    variables = {"PATH": f"{server}/bin:/usr/bin:/bin", "HOMES": str(server)} | environment
    text = "\n".join(script("ccadmin", "terminate_cluster", "it's one"))
    done = subprocess.run(["sh", "-c", text], env=variables, capture_output=True, text=True, timeout=20, check=True)
    return done.stdout.splitlines()


def logged_in(server: Path, user: str) -> None:
    (server / user / ".cycle").mkdir(parents=True)
    (server / user / ".cycle" / "config.ini").touch()


def test_whoever_is_logged_in_terminates_it_and_the_status_is_told(server: Path) -> None:
    logged_in(server, "root")
    assert run(server) == ["as root", "terminate_cluster it's one", "cycleforge-exit=0"]
    logged_in(server, "ccadmin")
    assert run(server, STATUS="3") == ["as ccadmin", "terminate_cluster it's one", "cycleforge-exit=3"]


def test_nobody_is_logged_in(server: Path) -> None:
    assert run(server) == ["cycleforge-exit=nobody"]


def test_there_is_no_program(server: Path) -> None:
    logged_in(server, "ccadmin")
    (server / "bin" / "cyclecloud").unlink()
    assert run(server) == ["cycleforge-exit=nobody"]
