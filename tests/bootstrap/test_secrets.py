"""No secret on a command line, in an environment, in a log or in any file that stays."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

import pytest

from tests.bed.server.fakes.azure import TOKEN
from tests.bed.server.harness import ADMIN_PASSWORD, DATABASE_PASSWORD, plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.bed.server.harness import Server

FRAGMENTS = ("w(o)rd", "touch pwned")
"""Parts of the passwords without any character that is ever quoted, so every spelling of them contains these."""


def traces(server: Server, *more: str) -> list[str]:
    """Secrets, or recognisable parts of them, that are still to be found, with the text around them."""
    seen = "\n".join([server.everything_said(), *more])
    needles = [*FRAGMENTS, TOKEN]
    for secret in (ADMIN_PASSWORD, DATABASE_PASSWORD):
        needles += [secret, json.dumps(secret), base64.b64encode(secret.encode()).decode()]
        needles.append(base64.b64encode(f"ccadmin:{secret}".encode()).decode())
    needles.append(base64.b64encode(json.dumps(server.secrets, ensure_ascii=False).encode()).decode())
    return [f"{needle!r}: {seen[at - 80 : at + 40]!r}" for needle in needles if (at := seen.find(needle)) >= 0]


def test_success_leaves_no_trace(make_server: Callable[..., Server]) -> None:
    server = make_server(plan(pin_project=True, start_cluster=True))
    server.site.faults.account_refused = 1
    result = server.deploy()
    assert result.returncode == 0, result.stderr
    assert server.site.accounts.passwords["ccadmin"] == ADMIN_PASSWORD, "the secrets did arrive"
    assert traces(server, result.stdout, result.stderr) == []
    recorded = (server.fake / "recorded.log").read_text()
    assert "curl " in recorded
    assert "-H @" in recorded
    assert not (server.fake / "pwned").exists()
    assert not (server.root / "var/lib/cycleforge/secrets.json").exists()
    assert list((server.root / "run/cycleforge").iterdir()) == []


@pytest.mark.parametrize("fault", ["account_refused", "cluster_refused", "list_refused"])
def test_failure_leaves_no_trace(server: Server, fault: str) -> None:
    setattr(server.site.faults, fault, 10**6)
    server.unpack(steps={"account": 20, "cluster": 20, "project-misc_ubuntu": 20})
    result = server.run()
    assert result.returncode == 1
    assert traces(server, result.stdout, result.stderr) == []


def test_defect_of_ours_leaves_no_trace(server: Server) -> None:
    """A traceback is logged with the secrets taken out."""
    server.unpack()
    program = server.root / "opt/cycleforge" / server.facts["payloadSha256"] / "bootstrap/cycleforge_bootstrap/site.py"
    source = program.read_text()
    program.write_text(source.replace('    drop_records(context, "cycleforge_admin.json"',
                                      '    raise RuntimeError(str(records))\n    drop_records(context, ""',
    ))  # fmt: skip
    assert program.read_text() != source
    result = server.run()
    assert result.returncode == 1
    assert "bug in CycleForge" in server.status()["hint"]
    assert "RuntimeError" in server.status()["message"]
    assert traces(server, result.stdout, result.stderr) == []


def test_program_that_repeats_the_password(server: Server) -> None:
    """What a program prints goes into log and status only without the secrets."""
    server.unpack(steps={"login": 30})
    server.site.command_line.account = lambda *_: {"status": 1, "errors": f"bad: {server.secrets}\n{ADMIN_PASSWORD}\n"}  # type: ignore[method-assign]
    result = server.run()
    assert result.returncode == 1
    assert "***" in result.stdout
    assert traces(server, result.stdout, result.stderr) == []


def test_files_with_secrets_are_private_while_they_are_needed(server: Server) -> None:
    server.site.faults.kill_before = "cyclecloud import_cluster"
    assert server.deploy().returncode == 1
    home = server.root / "var/lib/cycleforge"
    runtime = server.root / "run/cycleforge"
    for path in (home / "secrets.json", runtime / "home/.cycle/config.ini", runtime / "minimal.params.json"):
        assert path.stat().st_mode & 0o777 == 0o600, path
    assert home.stat().st_mode & 0o777 == 0o700
    assert not list((server.root / "opt/cycle_server/config/data").iterdir()), "the imported record holds a password"
    assert server.run().returncode == 0, "the boot after a power cut needs them"
    assert traces(server) == []


def test_parameters_with_the_password_go_at_once(make_server: Callable[..., Server]) -> None:
    server = make_server(plan(start_cluster=True))
    server.unpack()
    server.site.faults.kill_before = "cyclecloud start_cluster"
    assert server.run().returncode == -9
    assert not (server.root / "run/cycleforge/minimal.params.json").exists()


def test_a_secret_never_reaches_an_argument(server: Server) -> None:
    """The program refuses it itself, whatever a later change tries."""
    server.unpack()
    server.secrets["adminPassword"] = "azure-storage"
    (server.root / "var/lib/cycleforge/secrets.json").write_text(json.dumps(server.secrets))
    assert server.run().returncode == 1
    assert "refused to put a secret on a command line" in server.status()["message"]


@pytest.mark.parametrize("password", ["running", "succeeded", "azure", "a", "  two  blanks  ", "; #comment", "%(url)s"])
def test_strange_passwords(server: Server, password: str) -> None:
    """Words that the status file or a command uses, blanks that a parser strips, characters that it expands."""
    server.secrets["adminPassword"] = password
    server.unpack()
    result = server.run()
    assert result.returncode == 0, result.stdout
    assert server.status()["state"] == "succeeded"
    assert server.site.accounts.passwords["ccadmin"] == password


def test_password_that_is_folded_and_cut(server: Server) -> None:
    """A message is shortened and its blanks are folded; the secret goes before that."""
    password = "two  blanks and\ta tab " + "x" * 20
    server.secrets["adminPassword"] = password
    server.unpack(steps={"login": 30})
    text = f"{password}{'y' * 590}"
    server.site.command_line.account = lambda *_: {"status": 1, "errors": text}  # type: ignore[method-assign]
    result = server.run()
    assert result.returncode == 1
    assert "xxxx" not in result.stdout + (server.root / "var/lib/cycleforge/status.json").read_text()
    assert "blanks" not in result.stdout
