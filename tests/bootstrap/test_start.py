"""start.sh, as the extension runs it: fetch, verify, start, wait, and pass the result on."""

from __future__ import annotations

import json
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import pytest

from generator.render import bootstrap
from tests.bed.server.harness import ADMIN_PASSWORD

if TYPE_CHECKING:
    from tests.bed.server.harness import Server

ALWAYS = 10**6


def is_unpacked_as_it_was_rendered(server: Server) -> None:
    target = (server.root / "opt/cycleforge/current").resolve()
    files = {PurePosixPath(p.relative_to(target).as_posix()): p for p in target.rglob("*") if p.is_file()}
    wanted = {path: file for path, file in server.packed.items() if path.parent != bootstrap.PAYLOAD}
    for path in (*bootstrap.NOT_CARRIED, bootstrap.LIST):
        del wanted[path]
    assert files.keys() == wanted.keys()
    for path, file in wanted.items():
        assert files[path].read_bytes() == file.content
        assert bool(files[path].stat().st_mode & 0o100) == file.executable


def test_resource_manager_is_asked_through_the_proxy_and_metadata_is_not(server: Server) -> None:
    server.facts |= {"proxyUrl": "http://proxy.invalid:3128", "noProxy": "localhost,127.0.0.1"}
    curl = server.bin / "curl"
    record = 'printf "%s %s %s\\n" "${https_proxy}" "${no_proxy}" "$*" >>"${FAKE_DIR}/curl.log"'
    curl.write_text(f'#!/bin/sh\n{record}\nPATH="${{FAKE_REAL_PATH}}" exec curl "$@"\n')
    curl.chmod(0o755)
    assert server.deploy().returncode == 0
    asked = (server.fake / "curl.log").read_text().splitlines()
    assert {line.split()[:2] == ["http://proxy.invalid:3128", "localhost,127.0.0.1"] for line in asked} == {True}
    metadata = [line for line in asked if "/metadata/" in line]
    assert metadata
    assert all("--noproxy *" in line for line in metadata)


def test_deployment_ends_well_and_a_second_one_changes_nothing(server: Server) -> None:
    assert len(server.facts["payloadDeployments"]) == 2
    result = server.deploy()
    assert result.returncode == 0, result.stdout + result.stderr
    assert "CycleForge bootstrap of minimal: succeeded" in result.stdout
    log = (server.fake / "systemctl.log").read_text().splitlines()
    assert log[:4] == [
        "systemctl stop cycleforge-bootstrap.service",
        "systemctl daemon-reload",
        "systemctl enable cycleforge-bootstrap.service",
        "systemctl restart --no-block cycleforge-bootstrap.service",
    ]
    assert not (server.fake / "download/0/script.sh").exists()
    home = server.root / "var/lib/cycleforge"
    assert home.stat().st_mode & 0o777 == 0o700
    current = server.root / "opt/cycleforge/current"
    assert current.resolve().name == server.facts["payloadSha256"]
    link = server.root / "usr/local/sbin/cycleforge-bootstrap"
    assert str(link.readlink()) == "/opt/cycleforge/current/bootstrap/cycleforge-bootstrap"
    is_unpacked_as_it_was_rendered(server)
    calls = len(server.called("cyclecloud account create")), len(server.called("cyclecloud project upload"))
    result = server.deploy()
    assert result.returncode == 0
    assert "already unpacked" in result.stdout
    assert calls == (len(server.called("cyclecloud account create")), len(server.called("cyclecloud project upload")))


def test_role_and_outputs_that_come_late(server: Server) -> None:
    faults = server.site.faults
    faults.no_token, faults.token_expired = 2, 1
    faults.arm_refused = faults.arm_running = faults.arm_no_output = 1
    # Much less than the five minutes that a token is used without asking for another one.
    result = server.deploy(CYCLEFORGE_FETCH_SECONDS="60")
    assert result.returncode == 0, result.stderr
    for text in ("metadata gave no token", "HTTP 401: The access token has expired",
                 "HTTP 403: The client does not have authorization", "still Running",
                 "no output named content yet"):  # fmt: skip
        assert text in result.stdout


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        ({"arm_refused": ALWAYS}, r"payload-00 could not be read within 1 s: HTTP 403.*does not have author"),
        ({"no_token": ALWAYS}, r"could not be read within 1 s: instance metadata gave no token"),
        ({"arm_missing": "cycleforge-payload-01"}, r"payload-01 could not be read within 1 s: HTTP 404: .*be found"),
        ({"arm_failed": "cycleforge-payload-01"}, r"payload cycleforge-payload-01: the deployment is Failed"),
        ({"damaged_chunk": True}, r"damaged: its sha256 is [0-9a-f]{64}, the deployment expects [0-9a-f]{64}"),
    ],
)  # fmt: skip
def test_payload_that_cannot_be_had(server: Server, faults: dict[str, Any], message: str) -> None:
    for name, value in faults.items():
        setattr(server.site.faults, name, value)
    result = server.deploy(CYCLEFORGE_FETCH_SECONDS="1")
    assert result.returncode == 1
    assert re.search(message, result.stderr), result.stderr
    assert not (server.root / "opt/cycleforge/current").exists()
    assert not (server.fake / "download/0/script.sh").exists()


def test_nobody_answers(server: Server) -> None:
    server.site.stop()
    result = server.deploy(CYCLEFORGE_FETCH_SECONDS="1")
    assert result.returncode == 1
    assert "curl:" in result.stderr


def test_failed_bootstrap_fails_the_deployment(server: Server) -> None:
    server.site.faults.list_refused = ALWAYS
    server.facts["cloud"] = "AzureMoonCloud"
    result = server.deploy()
    assert result.returncode == 1
    assert "error: step 'account': CycleCloud has no environment for the cloud 'AzureMoonCloud'" in result.stderr
    assert "sudo cycleforge-bootstrap retry" in result.stderr


def test_bootstrap_without_end(server: Server) -> None:
    server.site.faults.slow_start = ALWAYS
    result = server.deploy(CYCLEFORGE_WAIT_SECONDS="1")
    assert result.returncode == 1
    assert "no result within 1 s; the bootstrap is still running" in result.stderr
    assert "CycleForge bootstrap" in result.stderr, "how far it came"


def test_unit_that_does_not_start(server: Server) -> None:
    result = server.deploy(FAKE_BROKEN_UNIT="1")
    assert result.returncode == 1
    assert "ended without a result; see: journalctl -u cycleforge-bootstrap.service" in result.stderr


def test_result_of_an_earlier_run_is_not_taken_for_this_one(server: Server) -> None:
    home = server.root / "var/lib/cycleforge"
    home.mkdir(parents=True)
    old = {"state": "succeeded", "deployment": "old", "steps": [], "warnings": [], "hint": "", "schema": 1}
    (home / "status.json").write_text(json.dumps(old))
    result = server.deploy(FAKE_BROKEN_UNIT="1")
    assert result.returncode == 1
    assert (home / "status.previous.json").exists()


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"payloadSha256": "../../etc"}, "payloadSha256 of the deployment is not a valid sha256"),
        ({"payloadSha256": None}, "payloadSha256 of the deployment is not a valid sha256"),
        ({"payloadDeployments": []}, "names no payload deployments"),
    ],
)
def test_facts_that_make_no_sense(server: Server, facts: dict[str, Any], message: str) -> None:
    server.facts |= facts
    result = server.deploy()
    assert result.returncode == 1
    assert message in result.stderr


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("CYCLEFORGE_SECRETS=bm8ganNvbg==", "secrets.json of the deployment is not JSON"),
        ("CYCLEFORGE_SECRETS=!!!", "secrets.json of the deployment is not"),
        ("CYCLEFORGE_SECRETS=", "did not pass CYCLEFORGE_SECRETS"),
        ("CYCLEFORGE_FACTS=", "did not pass CYCLEFORGE_FACTS"),
    ],
)
def test_variables_that_make_no_sense(server: Server, line: str, message: str) -> None:
    script = server.script()
    script.chmod(0o700)
    name = line.partition("=")[0]
    script.write_text(re.sub(rf"^{name}=.*$", line, script.read_text(), count=1, flags=re.MULTILINE))
    server.script = lambda: script  # type: ignore[method-assign]
    result = server.deploy()
    assert result.returncode == 1
    assert message in result.stderr
    assert ADMIN_PASSWORD not in result.stdout + result.stderr
    assert script.exists() == (line == "CYCLEFORGE_SECRETS="), "only a script that holds secrets removes itself"


def test_text_without_secrets_is_not_removed(server: Server) -> None:
    """Whoever runs the rendered start.sh by hand keeps it."""
    path = server.fake / "start.sh"
    path.write_bytes(server.files[bootstrap.START].content)
    server.script = lambda: path  # type: ignore[method-assign]
    assert server.deploy().returncode == 1
    assert path.exists()
