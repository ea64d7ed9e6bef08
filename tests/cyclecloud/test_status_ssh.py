"""`cycleforge status` without a password: the server's command line says how the cluster is."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from generator.cli.status import PAUSE_S
from generator.cyclecloud.shell import Shell
from generator.plan.parameters import SECRETS
from tests.answers import data_of
from tests.bed.arm import Arm
from tests.bed.cyclecloud import SiteStandIn
from tests.bed.plans import plan_from
from tests.bed.server.fakes.clusters import READY
from tests.bed.ssh.hosts import hosts
from tests.cyclecloud.deployed import PUBLIC, Names, deployed, record_id
from tests.definitions.optional_parts import SECOND_CLUSTER
from tests.verbs.place import Living
from tests.what_if.conftest import kept
from tests.what_if.place import DEFINITION, PASSWORD

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
    (place.folder / "minimal.yaml").write_text(PUBLIC)
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


def test_behind_a_bastion_a_forward_leads_to_the_site(living: Living, portal: SiteStandIn) -> None:
    """One for all looks; ssh gets no secret for it, and nothing of it is left."""
    (living.folder / "minimal.yaml").write_text(DEFINITION)
    (living.folder / "bin/ssh").unlink()
    living.patch.setattr("generator.operate.way.PORTAL_PORT", portal.port)
    living.patch.setenv("CYCLECLOUD_ADMIN_PASSWORD", PASSWORD)
    portal.state.cluster("minimal", htc=2).starts()
    with hosts(living.folder / "ssh", "server", "scheduler") as bed:
        living.is_behind(bed)
        code, out, err = living(*STATUS, "--usage")
        assert (code, portal.lines) == (0, ["GET /clusters/minimal/status", "GET /clusters/minimal/usage"]), out + err
        assert ("seen through ssh" in out, living.site.calls) == (False, [])
        pauses = iter((bed["server"].cut, lambda: None))

        def pause(seconds: float, sleep: Callable[[float], None] = time.sleep) -> None:
            if seconds != PAUSE_S:
                sleep(seconds)
            else:
                next(pauses, end)()

        living.patch.setattr("generator.cli.status.time.sleep", pause)
        code, out, _ = living(*STATUS, "--watch")
        looks = [line for line in out.splitlines() if line.startswith("  cluster ") or "seen through" in line]
        assert (code, len(looks)) == (130, 4), out
        assert "seen through ssh, because 127.0.0.1:" in looks[2], "the way was cut"
        assert looks[3] == looks[0], "and is there again"
        portal.state.clusters.clear()
        assert "seen through ssh, because the site has no cluster minimal" in living(*STATUS)[1]
        noted = living.arm.state.resources[record_id(living.arm).lower()]["properties"]["outputs"]
        noted["serverCertificateSha256"]["value"] = ":".join(["AB"] * 32)
        before = len(portal.requests)
        assert "shows a different certificate" in living(*STATUS)[1]
        assert len(portal.requests) == before


def end() -> None:
    raise KeyboardInterrupt


def test_a_server_of_somebody_else_is_asked_where_ssh_knows_it(living: Living, portal: SiteStandIn) -> None:
    """Nobody has noted its certificate: ssh's host key is the proof, and where that is not known, nothing is sent."""
    (living.folder / "minimal.yaml").write_text(SECOND_CLUSTER)
    plan = plan_from(base=SECOND_CLUSTER)
    fields = {"provisioningState": "Succeeded", "outputs": {}}
    living.arm.state.put(record_id(living.arm, Names(plan.deployment_name, "", "")), properties=fields)
    (living.folder / "bin/ssh").unlink()
    living.patch.setattr("generator.operate.way.PORTAL_PORT", portal.port)
    living.patch.setenv("CYCLECLOUD_ADMIN_PASSWORD", PASSWORD)
    portal.state.cluster("second", htc=4).starts()
    with hosts(living.folder / "ssh", "server") as bed:
        config = living.folder / "output/second/ssh_config"
        config.parent.mkdir()
        shutil.copy(bed.config, config)
        assert "  cluster     second: Started\n" in living(*STATUS)[1]
        assert portal.lines == ["GET /clusters/second/status"]
        bed.known.write_text("")
        config.write_text(bed.config.read_text().replace("StrictHostKeyChecking yes", "StrictHostKeyChecking no"))
        code, out, _ = living(*STATUS)
        assert (code, "its host key is not known" in out, len(portal.requests)) == (4, True, 1)


@pytest.mark.parametrize("password", [PASSWORD, ""])
def test_ssh_is_told_where_the_definition_is(living: Living, password: str) -> None:
    """Its ProxyCommand knows a name only; one command starts ssh for several deployments, so each is told its own."""
    living.patch.setenv("CYCLECLOUD_ADMIN_PASSWORD", password)
    other = living.folder / "elsewhere/minimal.yaml"
    other.parent.mkdir()
    (living.folder / "minimal.yaml").rename(other)
    other.write_text(DEFINITION)
    ssh = living.folder / "bin/ssh"
    ssh.write_text(f'#!/bin/sh\nprintf %s "$CYCLEFORGE_CONNECT" >{living.folder}/told\nexit 255\n')
    living("status", "elsewhere/minimal.yaml", "--subscription", living.arm.state.subscription)
    told = json.loads((living.folder / "told").read_text())
    assert (told["definition"], told["out"]) == (str(other), str(living.folder / "output"))
    assert told["subscription"] == living.arm.state.subscription
    ssh.unlink()
    living.patch.setenv("PATH", str(living.folder / "bin"))
    code, out, _ = living("status", "elsewhere/minimal.yaml")
    assert (code, "ssh is not installed" in out) == (4, True)


def test_no_way_at_all(living: Living) -> None:
    living.has_no_path_to("server")
    code, out, _ = living(*STATUS)
    assert (code, living.arm.changes, living.arm.posts) == (4, [], [])
    assert "not known: nobody is signed in at the site; nor through ssh: server" in out
    assert "hint: export CYCLECLOUD_ADMIN_PASSWORD" in out
    (row,) = data_of(living(*STATUS, "--json")[1])["deployments"]
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
