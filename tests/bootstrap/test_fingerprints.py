"""Fingerprints of the server: in the status file, in its text, and recorded for the deployment."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.bed.server.certificates import fingerprint
from tests.bed.server.harness import HOST_KEY
from tests.bed.server.program import context, module, run_steps

if TYPE_CHECKING:
    from tests.bed.server.harness import Server

ALWAYS = 10**6
HOST_KEY_SHA256 = "SHA256:ZPcpRGMzpiiCO5vi9aHvRdlTr5Fa7GNdTtm7SRyKbgw"


def test_status_and_deployment_have_them(server: Server) -> None:
    result = server.deploy()
    assert result.returncode == 0, result.stderr
    site = server.status()["site"]
    assert site == {
        "address": server.site.portal,
        "certificateSha256": fingerprint(),
        "sshHostKeys": [{"type": "ssh-ed25519", "fingerprint": HOST_KEY_SHA256}],
    }
    record = server.site.records["cycleforge-fingerprints"]
    assert record["resources"] == []
    assert record["outputs"] == {
        "certificateSha256": {"type": "string", "value": fingerprint()},
        "sshHostKeys": {"type": "array", "value": [f"ssh-ed25519 {HOST_KEY_SHA256}"]},
    }
    for text in (fingerprint(), HOST_KEY_SHA256, "your own login of the CycleCloud CLI: cyclecloud initialize"):
        assert text in result.stdout


def test_host_key_as_ssh_keygen_prints_it(server: Server) -> None:
    if shutil.which("ssh-keygen") is None:
        pytest.skip("ssh-keygen is not on PATH")
    path = server.root / "etc/ssh/ssh_host_ed25519_key.pub"
    shown = subprocess.run(["ssh-keygen", "-lf", str(path)], capture_output=True, text=True, check=True).stdout
    assert shown.split()[1] == HOST_KEY_SHA256


def test_every_host_key_is_there(server: Server) -> None:
    (server.root / "etc/ssh/ssh_host_ecdsa_key.pub").write_text(HOST_KEY.replace("ssh-ed25519", "ecdsa", 1))
    server.unpack()
    keys = module("fingerprints").host_keys(context(server))
    assert [key["type"] for key in keys] == ["ecdsa", "ssh-ed25519"]


@pytest.mark.parametrize("content", [None, "", "ssh-ed25519 n/o=base64"])
def test_host_keys_that_cannot_be_read_are_a_warning(server: Server, content: str | None) -> None:
    path = server.root / "etc/ssh/ssh_host_ed25519_key.pub"
    path.unlink() if content is None else path.write_text(content)
    server.unpack(steps={"fingerprints": 5})
    made = context(server)
    assert run_steps(made, "fingerprints") is None
    assert "public" in made.warnings[0]


def test_without_fingerprints_the_site_is_still_asked_whether_it_answers(server: Server) -> None:
    (server.root / "etc/ssh/ssh_host_ed25519_key.pub").unlink()
    server.unpack(steps={"fingerprints": 5})
    result = server.deploy()
    assert result.returncode == 0, result.stderr
    assert server.status()["site"] == {"address": server.site.portal}
    assert server.site.records["cycleforge-fingerprints"]["outputs"]["sshHostKeys"]["value"] == []


def test_record_is_tried_again_and_then_fails_the_deployment(server: Server) -> None:
    server.site.faults.record_refused = 2
    result = server.deploy()
    assert result.returncode == 0
    assert "HTTP 403: The client does not have authorization to perform action 'Microsoft.Resources" in result.stdout
    server.site.faults.record_refused = ALWAYS
    server.site.records.clear()
    result = server.deploy(CYCLEFORGE_AFTER_SECONDS="1")
    assert result.returncode == 1
    assert "could not be recorded as deployment cycleforge-fingerprints within 1 s: HTTP 403" in result.stderr
    assert "Contributor" in result.stderr


def test_deployment_without_a_record_needs_none(server: Server) -> None:
    del server.facts["fingerprintRecord"]
    assert server.deploy().returncode == 0
    assert server.site.records == {}
