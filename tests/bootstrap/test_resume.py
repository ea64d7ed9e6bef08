"""Kills, reboots and second runs: nothing is done twice, nothing is left half done."""

from __future__ import annotations

import copy
import json
import subprocess
import time
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import pytest

from generator.files.file import File
from generator.render import bootstrap
from tests.bed.server.fakes.releases import CLI_8_6_1, CLI_8_10
from tests.bed.server.harness import DATABASE_PASSWORD, carried, plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.bed.server.harness import Server

CHANGING = (
    "cycle_server start", "cycle_server stop", "cyclecloud account create", "cyclecloud project upload",
    "cyclecloud import_template", "cyclecloud import_cluster", "cyclecloud start_cluster", "cycle_server run_action",
)  # fmt: skip


def changes(server: Server) -> list[list[str]]:
    return [call for prefix in CHANGING for call in server.called(prefix)]


def state_of(server: Server) -> dict[str, Any]:
    site = server.site
    return copy.deepcopy({"users": site.accounts.passwords, "keys": site.keys, "account": site.account,
                          "blobs": site.blobs, "templates": site.templates, "clusters": site.clusters,
                          "projects": site.known_projects})  # fmt: skip


def full(make_server: Callable[..., Server]) -> Server:
    """A server with every step there is."""
    return make_server(plan(pin_project=True, start_cluster=True))


@pytest.mark.parametrize("moment", ["kill_before", "kill_after"])
def test_power_cut_at_every_change(make_server: Callable[..., Server], moment: str) -> None:
    server = full(make_server)
    server.unpack()
    cuts = (
        "cycle_server stop", "cycle_server start", "cyclecloud initialize", "cyclecloud account show",
        "cyclecloud account create", "cycle_server execute SELECT Name, State FROM Cloud.Locker",
        "cycle_server execute SELECT Name FROM Cloud.Project", "cyclecloud project upload",
        "cyclecloud import_template", "cyclecloud import_cluster", "cycle_server execute SELECT Name, M.Name",
        "cyclecloud start_cluster", "cycle_server execute SELECT Name, State, Status",
    )  # fmt: skip
    for number, cut in enumerate(cuts):
        setattr(server.site.faults, moment, cut.replace("cycle_server execute ", "cycle_server execute json "))
        result = server.run()
        assert result.returncode == -9, f"not cut at {cut}: {result.stdout}"
        assert server.status()["state"] == "running"
        assert server.status()["runs"] == number + 1
        server.reboot()
    assert server.run().returncode == 0
    assert server.status()["runs"] == len(cuts) + 1
    # The server restarted although the properties were already written when the power went.
    assert server.site.running
    # With its launcher, while all those runs were forked: they lead to the same.
    other = full(make_server)
    other.unpack()
    assert other.launch().returncode == 0
    assert state_of(server) == state_of(other)
    assert len(server.called("cyclecloud account create")) == (2 if moment == "kill_before" else 1)


def test_power_cut_at_every_step(make_server: Callable[..., Server]) -> None:
    """Each step has done its work, and nobody knows it; then the next run continues."""
    server = full(make_server)
    (server.root / "etc/dnf").mkdir(parents=True)
    (server.root / "etc/dnf/dnf.conf").write_text("[main]\ngpgcheck=1\n")
    server.unpack()
    config = json.loads(server.packed[PurePosixPath("bootstrap/bootstrap.json")].content)
    cuts = ["updates", "settings", "cli", "admin", "login", "ssh-key", "account", "locker", "slurm-project",
            *(f"project-{project['name']}" for project in config["projects"]), "template", "cluster", "machine-types",
            "start", "scheduler", "independent", "fingerprints"]  # fmt: skip
    for number, name in enumerate(cuts):
        # The login has a second way.
        server.site.cli = CLI_8_10 if name == "login" else CLI_8_6_1
        result = server.run_until(f"after {name}")
        assert result.returncode == -9, f"not cut at {name}: {result.stdout}"
        assert server.step(name)["state"] == "running"
        assert server.status()["runs"] == number + 1
        server.reboot()
    assert server.run().returncode == 0
    left_out = {"installed", "startup", "identity"}
    assert {step["name"] for step in server.status()["steps"]} - left_out == set(cuts), (
        "every step that changes something"
    )
    once = ("cycle_server stop", "cyclecloud account create", "cyclecloud import_template", "cyclecloud import_cluster",
            "cyclecloud start_cluster")  # fmt: skip
    assert {prefix: len(server.called(prefix)) for prefix in once} == dict.fromkeys(once, 1)
    assert len(server.called("cyclecloud project upload")) == len(config["projects"])
    assert server.status()["site"]["certificateSha256"]


@pytest.mark.parametrize("step", ["admin", "key"])
def test_power_cut_while_records_wait_for_import(server: Server, step: str) -> None:
    server.unpack()
    server.site.faults.no_import = 10**6
    program = server.root / "opt/cycleforge" / server.facts["payloadSha256"] / "bootstrap/cycleforge-bootstrap"
    record = server.root / f"opt/cycle_server/config/data/cycleforge_{step}.json"
    if step == "key":
        server.site.accounts.passwords["ccadmin"] = server.secrets["adminPassword"]
        server.site.settings["cycleserver.installation.complete"] = True
    with subprocess.Popen([str(program), "run"], env=server.environment, stdout=subprocess.DEVNULL) as process:
        while not record.exists():
            assert process.poll() is None
            time.sleep(0.01)
        assert not record.stat().st_mode & 0o077, "a password lies in it"
        process.kill()
    server.site.faults.no_import = 0
    server.reboot()
    result = server.run()
    assert result.returncode == 0, result.stdout
    assert not list(record.parent.iterdir())
    assert server.site.accounts.passwords == {"ccadmin": server.secrets["adminPassword"]}


def test_second_run_changes_nothing(make_server: Callable[..., Server]) -> None:
    server = full(make_server)
    server.unpack()
    assert server.run().returncode == 0
    before, count = state_of(server), len(changes(server))
    calls = len(server.site.calls)
    assert server.run().returncode == 0, "every boot starts the unit"
    assert len(server.site.calls) == calls, "a finished bootstrap does not even ask"
    server.forget_result()
    server.unpack()
    assert server.run().returncode == 0
    assert state_of(server) == before
    assert len(changes(server)) == count
    assert {step["message"] for step in server.status()["steps"] if step["name"] != "login"} == {"nothing to do"}


def test_terminated_cluster_is_not_started_again(make_server: Callable[..., Server]) -> None:
    server = full(make_server)
    server.unpack()
    assert server.run().returncode == 0
    server.site.clusters["minimal"]["started"] = False
    server.forget_result()
    server.unpack()
    assert server.run().returncode == 0
    assert server.site.clusters["minimal"]["started"] is False


def test_changed_cluster_is_imported_with_force(server: Server) -> None:
    server.unpack()
    assert server.run().returncode == 0
    folder = server.root / "opt/cycleforge" / server.facts["payloadSha256"] / "cluster"
    template, parameters = folder / "minimal.txt", folder / "minimal.params.json"
    changed: dict[str, Callable[[], object]] = {
        "template": lambda: template.write_text(template.read_text() + "# changed\n"),
        "parameters": lambda: parameters.write_text(json.dumps(json.loads(parameters.read_text()) | {"New": 1})),
        "fact": lambda: server.facts.update(homeAddress="10.50.0.10"),
        "secret": lambda: server.secrets.update(databasePassword=DATABASE_PASSWORD + "2"),
    }
    for number, (what, change) in enumerate(changed.items(), start=1):
        change()
        server.forget_result()
        server.unpack()
        assert server.run().returncode == 0
        imports = server.called("cyclecloud import_cluster")
        assert ["--force" in call for call in imports] == [False] + [True] * number, what
        assert len(server.called("cyclecloud import_template")) == 2, "only the first change is its"
        assert len(server.called("cyclecloud project upload")) == 2, what
        assert len(server.called("cyclecloud account create")) == 1, what


def test_deleted_cluster_comes_back(server: Server) -> None:
    server.unpack()
    assert server.run().returncode == 0
    server.site.clusters.clear()
    server.forget_result()
    server.unpack()
    assert server.run().returncode == 0
    assert list(server.site.clusters) == ["minimal"]


def test_only_what_is_missing_in_the_locker_is_uploaded(server: Server) -> None:
    server.unpack()
    assert server.run().returncode == 0
    del server.site.blobs["projects/misc_ubuntu/1.0.0/default/cluster-init/scripts/10-configure.sh"]
    server.site.blobs["projects/pyxis_enroot/blobs/enroot.tar"] = b"stale"
    server.forget_result()
    server.unpack()
    assert server.run().returncode == 0
    uploads = [Path(call["folder"]).name for call in server.site.calls if call["argv"][:2] == ["project", "upload"]]
    assert uploads == ["misc_ubuntu", "pyxis_enroot", "misc_ubuntu", "pyxis_enroot"]


def test_a_blob_that_was_fetched_later_reaches_the_locker(server: Server) -> None:
    """The version and digest of the project stay; only the file is new. Also with a locker that gives no checksums."""
    server.site.faults.checksums = False
    server.unpack()
    project = server.root / "opt/cycleforge" / server.facts["payloadSha256"] / "projects/pyxis_enroot"
    blob, ini = (project / "blobs/enroot.tar").read_bytes(), (project / "project.ini").read_text()
    (project / "blobs/enroot.tar").unlink()
    (project / "project.ini").write_text(ini.replace("[blobs]\nFiles = enroot.tar\n", ""))
    assert server.run().returncode == 0
    assert not [name for name in server.site.blobs if "/blobs/" in name]
    server.forget_result()
    server.unpack()
    (project / "blobs/enroot.tar").write_bytes(blob)
    (project / "project.ini").write_text(ini)
    assert server.run().returncode == 0
    assert server.site.blobs["projects/pyxis_enroot/blobs/enroot.tar"] == blob
    uploads = [Path(call["folder"]).name for call in server.site.calls if call["argv"][:2] == ["project", "upload"]]
    assert uploads == ["misc_ubuntu", "pyxis_enroot", "pyxis_enroot"]


def test_interrupted_upload_of_another_content_is_not_forgotten(server: Server) -> None:
    """Without checksums only our own record tells two contents of the same size apart."""
    server.site.faults.checksums = False
    server.unpack()
    assert server.run().returncode == 0
    folder = server.root / "opt/cycleforge" / server.facts["payloadSha256"]
    config = folder / "bootstrap/bootstrap.json"
    script = folder / "projects/misc_ubuntu/specs/default/cluster-init/scripts/10-configure.sh"
    before = config.read_text(), script.read_text()
    config.write_text(before[0].replace("0" * 64, "1" * 64, 1))
    script.write_text(before[1].replace("true", "TRUE"))
    server.forget_result()
    server.unpack()
    server.site.faults.kill_after = "cyclecloud project upload"
    assert server.run().returncode == -9
    config.write_text(before[0])
    script.write_text(before[1])
    assert server.run().returncode == 0
    blob = "projects/misc_ubuntu/1.0.0/default/cluster-init/scripts/10-configure.sh"
    assert server.site.blobs[blob].decode() == before[1]


def test_redeployment_with_other_content_runs_again(server: Server) -> None:
    assert server.deploy().returncode == 0
    files = carried()
    path = next(path for path in files if path.name == "minimal.txt")
    changed = {**files, path: File(files[path].content + b"# two\n")}
    again = bootstrap.render(server.plan, changed, {"NFSAddress": "homeAddress"})
    server.site.chunks = {
        f"cycleforge-payload-{number:02}": again[bootstrap.PAYLOAD / f"payload-{number:02}.bin"].content
        for number in range(len(bootstrap.payload_chunks(again)))
    }
    server.facts["payloadSha256"] = bootstrap.payload_sha256(again)
    result = server.deploy()
    assert result.returncode == 0, result.stdout + result.stderr
    assert server.site.clusters["minimal"]["text"].endswith("# two\n")
    assert (server.root / "opt/cycleforge/current").resolve().name == server.facts["payloadSha256"]


def test_two_runs_at_once(server: Server) -> None:
    server.unpack()
    server.site.faults.slow_start = 20
    program = server.root / "opt/cycleforge" / server.facts["payloadSha256"] / "bootstrap/cycleforge-bootstrap"
    with subprocess.Popen([str(program), "run"], env=server.environment, stdout=subprocess.DEVNULL) as process:
        while not (server.root / "var/lib/cycleforge/status.json").exists():
            assert process.poll() is None
            time.sleep(0.01)
        assert server.run().returncode == 4
        process.kill()
