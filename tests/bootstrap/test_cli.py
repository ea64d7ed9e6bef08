"""The CLI is found wherever it is, else installed as its archive means it."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.bed.server.program import context, module, run_steps

if TYPE_CHECKING:
    from tests.bed.server.harness import Server

LOGIN = "initialize --force --url=https://localhost --username=ccadmin --verify-ssl=false"


def installed(server: Server) -> list[str]:
    log = server.fake / "installer.log"
    return log.read_text().splitlines() if log.exists() else []


def place_cli(server: Server, folder: str) -> None:
    shutil.copytree(server.fake / "cli", server.root / folder)


@pytest.mark.parametrize(
    "folder",
    [
        "usr/local/bin", "usr/local/cyclecloud-cli/bin", "usr/local/cyclecloud-cli/embedded/bin", "root/bin",
        "root/.cycle/cli/bin",
    ],
)  # fmt: skip
def test_installed_cli_is_found(server: Server, folder: str) -> None:
    server.unpack()
    place_cli(server, folder)
    made = context(server)
    assert run_steps(made, "cli") is None
    assert installed(server) == []
    assert made.cyclecloud == server.root / folder / "cyclecloud"
    assert made.shown["cli"]["version"] == "CycleCloud 8.6.1-3248"
    assert made.shown["cli"]["login"].endswith(LOGIN)
    # Where everyone reaches it, everyone finds it and can upload with it.
    link = server.root / "usr/local/bin/cyclecloud"
    assert link.resolve() == made.cyclecloud
    assert made.cyclecloud.with_name("azcopy").stat().st_mode & stat.S_IXOTH
    assert made.shown["cli"]["login"] == f"cyclecloud {LOGIN}"


def test_cli_on_the_path_is_found(server: Server) -> None:
    server.unpack()
    shutil.copytree(server.fake / "cli", server.bin, dirs_exist_ok=True)
    assert run_steps(context(server), "cli") is None
    assert installed(server) == []


def test_cli_that_only_root_reaches(server: Server) -> None:
    server.unpack()
    place_cli(server, "root/bin")
    (server.root / "root").chmod(0o700)
    made = context(server)
    assert run_steps(made, "cli") is None
    assert not (server.root / "usr/local/bin/cyclecloud").exists()
    assert made.shown["cli"]["login"] == f"sudo -H {server.root}/root/bin/cyclecloud {LOGIN}"


def test_cli_that_does_not_start_is_passed_over(server: Server) -> None:
    server.unpack()
    place_cli(server, "usr/local/cyclecloud-cli/embedded/bin")
    broken = server.root / "usr/local/bin/cyclecloud"
    broken.parent.mkdir(parents=True)
    broken.write_text("#!/bin/sh\nexit 127\n")
    broken.chmod(0o755)
    made = context(server)
    assert run_steps(made, "cli") is None
    assert made.cyclecloud.parent.name == "bin"
    assert made.cyclecloud != broken
    assert installed(server) == []


@pytest.mark.parametrize("knows_system", [True, False])
def test_archive_with_its_own_python_comes_first(server: Server, knows_system: bool) -> None:
    server.archive("tar")
    if not knows_system:
        (server.fake / "no-system").touch()
    server.unpack()
    made = context(server)
    assert run_steps(made, "cli") is None
    assert installed(server) == ["tar --system -y", *([] if knows_system else ["tar -y"])]
    assert made.shown["cli"]["login"] == f"cyclecloud {LOGIN}"


def test_zip_keeps_modes_and_links(server: Server) -> None:
    server.unpack(steps={"cli": 5})
    made = context(server)
    before = os.umask(0o077)
    try:
        assert run_steps(made, "cli") is None
    finally:
        os.umask(before)
    assert installed(server) == ["zip --system -y"]
    unpacked = server.root / "var/lib/cycleforge/work/cli-installer/cyclecloud-cli-installer"
    assert (unpacked / "embedded/bin/python3").is_symlink()
    assert (unpacked / "install.sh").stat().st_mode & 0o777 == 0o755
    assert (unpacked / "kind").stat().st_mode & 0o777 == 0o644
    # The program itself runs with umask 077; what it installs must be readable for the administrator.
    assert (server.root / "usr/local/cyclecloud-cli").stat().st_mode & 0o777 == 0o755


def test_what_is_installed_does_not_go_with_the_private_home(server: Server) -> None:
    """An installer that knows only `-y` puts everything below HOME."""
    (server.fake / "no-system").touch()
    server.unpack(steps={"cli": 5})
    made = context(server)
    assert run_steps(made, "cli") is None
    assert installed(server) == ["zip --system -y", "zip -y"]
    assert (server.root / "root/.cycle/cli/bin/cyclecloud").exists()


def test_zip_without_modes_is_tried_all_the_same(server: Server) -> None:
    server.archive("zip", modes=False)
    server.unpack(steps={"cli": 5})
    problem = run_steps(context(server), "cli")
    assert "the CLI's installer in cyclecloud-cli.zip failed: install.sh -y ended with" in problem.message
    assert len(installed(server)) >= 2, "Bash runs the script although it is not executable"


@pytest.mark.parametrize("content", [b"no archive", None])
def test_archive_that_cannot_be_used_is_not_the_last_word(server: Server, content: bytes | None) -> None:
    path = server.archive("tar")
    path.unlink() if content is None else path.write_bytes(content)
    server.unpack()
    assert run_steps(context(server), "cli") is None
    assert installed(server) == ["zip --system -y"]


def test_no_archive_at_all(server: Server) -> None:
    (server.root / "opt/cycle_server/tools/cyclecloud-cli.zip").unlink()
    server.unpack(steps={"cli": 5})
    problem = run_steps(context(server), "cli")
    assert "cyclecloud-cli-linux-" in problem.message
    assert "cyclecloud-cli.zip are missing" in problem.message


def test_damaged_archive(server: Server) -> None:
    (server.root / "opt/cycle_server/tools/cyclecloud-cli.zip").write_bytes(b"no zip")
    server.unpack(steps={"cli": 5})
    assert "cyclecloud-cli.zip cannot be unpacked" in run_steps(context(server), "cli").message


@pytest.mark.parametrize("name", ["../evil", "/etc/evil"])
def test_path_outside_of_the_folder(server: Server, name: str) -> None:
    with zipfile.ZipFile(server.root / "opt/cycle_server/tools/cyclecloud-cli.zip", "w") as packed:
        packed.writestr(name, "x")
    server.unpack(steps={"cli": 5})
    assert f"contains the path '{name}'" in run_steps(context(server), "cli").message
    assert list(server.root.rglob("evil")) == []


def test_a_program_that_needs_an_answer_gets_none(server: Server) -> None:
    """Standard input is empty and there is no terminal, so a dialogue ends instead of waiting."""
    server.unpack()
    made = context(server)
    text = "read -r answer </dev/tty || read -r answer || echo nobody"
    result = module("programs").run(made, ["sh", "-c", text], 600)
    assert result.output == "nobody\n"


def test_a_program_ends_with_us(server: Server) -> None:
    """Our unit spares other processes; what a killed run was doing must not go on beside the next run."""
    server.unpack()
    made, mark = context(server), server.fake / "started"
    us = os.fork()
    if us == 0:
        module("programs").run(made, ["sh", "-c", f"echo $$ >{mark}.new; mv {mark}.new {mark}; exec sleep 300"], 600)
        os._exit(0)
    while not mark.exists():
        time.sleep(0.01)
    state = Path("/proc") / mark.read_text().strip() / "stat"
    assert state.read_text().rpartition(")")[2].split()[0] in "RSD"
    os.kill(us, signal.SIGKILL)
    os.waitpid(us, 0)
    # Where nobody collects orphans, a dead one stays as a zombie.
    while state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.01)


def test_a_daemon_that_keeps_the_output_open_does_not_hold_us(server: Server) -> None:
    server.unpack()
    result = module("programs").run(context(server), ["sh", "-c", "sleep 300 & echo $!"], 600)
    pid = int(result.output)
    assert result.status == 0
    os.kill(pid, signal.SIGKILL)
