"""`cycleforge status` without a password: the server's command line says how the cluster is."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from generator.cyclecloud.shell import Shell
from generator.plan.parameters import SECRETS
from tests.bed.arm import Arm
from tests.bed.cyclecloud import SiteStandIn
from tests.bed.server.fakes.clusters import READY
from tests.cyclecloud.deployed import deployed
from tests.verbs.place import Living
from tests.what_if.conftest import kept
from tests.what_if.place import PASSWORD

__all__ = ["kept"]
STATUS = ("status", "minimal.yaml")
NODE = {"Name": "htc-1", "Template": "htc", "InstanceId": "vm-1", **READY}
FAILED = NODE | {"Name": "htc-2", "Status": "Failed", "StatusMessage": "Timeout awaiting system boot-up\x1b[2J"}


@pytest.fixture
def living(
    arm: Arm, tmp_path: Path, kept: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    portal: SiteStandIn,
) -> Iterator[Living]:  # fmt: skip
    place = Living(arm, tmp_path, capsys, monkeypatch, kept)
    deployed(place, portal)
    place.arm.requests.clear()
    yield place
    place.end()


def test_without_a_password_the_nodes_come_through_ssh(living: Living, portal: SiteStandIn) -> None:
    living.runs(NODE)
    code, out, err = living(*STATUS)
    assert (code, err, portal.requests, living.changes, living.arm.changes) == (0, "", [], [], [])
    assert "  cluster     minimal: Started\n" in out
    assert "seen through ssh, because nobody is signed in at the site\n" in out
    assert "  htc        1 of 2  1 Ready\n" in out
    assert "BatchMode=yes" in (living.folder / "ssh.log").read_text()


def test_a_failed_node_through_ssh(living: Living) -> None:
    living.runs(NODE, FAILED)
    code, out, _ = living(*STATUS)
    assert (code, "CycleCloud: Timeout awaiting system boot-up\\x1b[2J\n" in out) == (1, True)


def test_a_site_that_no_way_leads_to_is_seen_through_ssh(living: Living, portal: SiteStandIn) -> None:
    living.runs(NODE)
    living.patch.setenv("CYCLECLOUD_ADMIN_PASSWORD", PASSWORD)
    portal.lose("GET", "*", after_effect=False, times=9)
    code, out, _ = living(*STATUS)
    assert (code, "seen through ssh, because 127.0.0.1:" in out) == (0, True)


def test_no_way_at_all(living: Living) -> None:
    living.has_no_path_to("server")
    code, out, _ = living(*STATUS)
    assert (code, living.arm.changes, living.arm.posts) == (4, [], [])
    assert "not known: nobody is signed in at the site; nor through ssh: server" in out
    assert "hint: export CYCLECLOUD_ADMIN_PASSWORD" in out
    (row,) = json.loads(living(*STATUS, "--json")[1])["deployments"]
    assert (row["known"], row["failed"], row["first_boot"]["state"]) == (False, False, "done")


def test_ssh_gets_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither ssh nor a program that it starts needs one, so none is in their environment."""
    program = tmp_path / "ssh"
    program.write_text("#!/bin/sh\nenv\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for name in SECRETS:
        monkeypatch.setenv(name, PASSWORD)
    out = Shell(tmp_path / "ssh_config", "server").run("true", limit_s=30).out
    assert ("PATH=" in out, PASSWORD in out) == (True, False)
