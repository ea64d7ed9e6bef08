"""`cycleforge upload` as people type it."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import subprocess
import termios
from pathlib import Path
from typing import Any

import pytest

from generator.cli import main
from generator.projects.content import shipped_project
from generator.projects.local import SHIPPED
from tests.answers import data_of
from tests.command import COMMAND
from tests.locker import azurite
from tests.locker.faults import on
from tests.locker.ground import FILES, contents, opened, project, send, stored
from tests.locker.proxy import Proxy
from tests.locker.refusals import Answer

DEFINITION = """\
name: team
location: southcentralus
admin:
  username: ccadmin
  ssh_public_key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPZ8y8d8y8d8y8d8y8d8y8d8y8d8y8d8y8d8y8d8y8d8 me
slurm:
  partitions:
    - {{name: cpu, vm_size: Standard_D4ds_v5, max_nodes: 2, default: true{extra}}}
"""


@pytest.fixture(autouse=True)
def _signed_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith(("AZURE_", "CYCLEFORGE_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AZURE_STORAGE_KEY", azurite.KEY)
    monkeypatch.setenv("CYCLEFORGE_BLOBS", str(tmp_path / "no-blobs"))
    monkeypatch.chdir(tmp_path)


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Exit code, what was printed, what was said."""
    code = main(["upload", *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def as_json(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    code, out, _ = run(capsys, *words, "--json")
    return code, data_of(out)


# ---------------------------------------------------------------- what is uploaded


def test_a_project_folder(tmp_path: Path, container: azurite.Container, capsys: pytest.CaptureFixture[str]) -> None:
    folder = project(tmp_path / "site", blobs={"a": b"1"})
    code, out, err = run(capsys, "site", "--locker", container.url)
    assert code == 0
    assert out.startswith("site 1.0.0: uploaded, 5 files, ")
    assert err.startswith("site 1.0.0: sending 4 files, ")
    assert stored(container) == contents(folder)
    assert run(capsys, "site", "--locker", container.url) == (0, "site 1.0.0: unchanged, 5 files\n", "")


def test_the_folder_we_are_in(
    tmp_path: Path, container: azurite.Container, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project(tmp_path / "site"))
    assert run(capsys, "--locker", container.url)[0] == 0
    assert stored(container) == contents(tmp_path / "site")


def test_a_definition_with_its_local_project(
    tmp_path: Path, container: azurite.Container, capsys: pytest.CaptureFixture[str]
) -> None:
    project(tmp_path / "site")
    local = DEFINITION.format(extra=", extra_projects: [site]") + "projects:\n  - {name: site, path: site}\n"
    (tmp_path / "team.yaml").write_text(local)
    code, value = as_json(capsys, "team", "--locker", container.url)
    assert code == 0
    names = [row["name"] for row in value["projects"]]
    assert "site" in names
    assert set(names) - {"site"} <= set(SHIPPED)
    assert "misc_ubuntu" in names
    assert {row["result"] for row in value["projects"]} == {"uploaded"}
    assert stored(container).items() >= contents(tmp_path / "site").items()


def test_all_definitions_share_their_projects(
    tmp_path: Path, container: azurite.Container, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cluster_defs").mkdir()
    for name in ("one", "two"):
        text = DEFINITION.format(extra="").replace("name: team", f"name: {name}")
        (tmp_path / f"cluster_defs/{name}.yaml").write_text(text)
    monkeypatch.setenv("CYCLEFORGE_LOCKER", container.url)
    code, value = as_json(capsys)
    assert code == 0
    names = [row["name"] for row in value["projects"]]
    assert sorted(names) == sorted(set(names))
    assert len({name.split("/")[1] for name in container.names()}) == len(names)


def test_a_shipped_project_by_name_and_by_path(
    container: azurite.Container, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both with the library in its place."""
    from generator.files import assets

    assert as_json(capsys, "misc_ubuntu", "--locker", container.url)[0] == 0
    code, value = as_json(capsys, str(assets.folder("projects") / "misc_ubuntu"), "--locker", container.url)
    assert (code, value["projects"][0]["result"]) == (0, "unchanged")
    assert any(name.endswith("/files/cycleforge.sh") for name in container.names())


def test_two_contents_of_one_version(
    tmp_path: Path, container: azurite.Container, capsys: pytest.CaptureFixture[str]
) -> None:
    project(tmp_path / "one")
    project(tmp_path / "two", {**FILES, "files/data": b"other"})
    code, _, err = run(capsys, "one", "two", "--locker", container.url)
    assert code == 1
    assert "are both site 1.0.0, with different content" in err
    assert not container.names()


# ---------------------------------------------------------------- refusals of our own


def test_another_content_is_refused_with_the_command(
    tmp_path: Path, container: azurite.Container, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project(tmp_path / "site")
    assert run(capsys, "site", "--locker", container.url)[0] == 0
    before = stored(container)
    project(tmp_path / "site", {"files/data": b"changed"})
    project(tmp_path / "fresh").joinpath("project.ini").write_text("[project]\nname = fresh\nversion = 1.0.0\n")
    code, out, err = run(capsys, "fresh", "site", "--locker", container.url)
    assert (code, out) == (1, "")
    assert "the locker has different content under site 1.0.0; nothing was sent" in err
    assert "differs: default/cluster-init/files/data" in err
    assert "cycleforge project bump --taken site" in err
    assert "--force" in err
    assert stored(container) == before
    code, value = as_json(capsys, "site", "--locker", container.url)
    assert (code, value["ok"], value["projects"][0]["state"]) == (1, False, "different")
    assert value["errors"][0]["hint"]
    code, out, _ = run(capsys, "site", "--locker", container.url, "--force")
    assert code == 0
    assert out.startswith("site 1.0.0: replaced, 2 files")
    assert stored(container) == contents(folder)


def test_after_the_bump_both_versions_are_there(
    tmp_path: Path, container: azurite.Container, capsys: pytest.CaptureFixture[str]
) -> None:
    old = contents(project(tmp_path / "site"))
    assert run(capsys, "site", "--locker", container.url)[0] == 0
    project(tmp_path / "site", {"files/data": b"changed"})
    assert "cycleforge project bump --taken site" in run(capsys, "site", "--locker", container.url)[2]
    assert main(["project", "bump", "--taken", "site"]) == 0
    capsys.readouterr()
    code, out, _ = run(capsys, "site", "--locker", container.url)
    assert code == 0
    assert out.startswith("site 1.0.1: uploaded")
    assert stored(container) == old | contents(tmp_path / "site")


def test_a_dry_run_sends_nothing(
    tmp_path: Path, container: azurite.Container, proxy: Proxy, capsys: pytest.CaptureFixture[str]
) -> None:
    project(tmp_path / "site")
    address = f"{proxy.url}/{container.name}"
    code, out, _ = run(capsys, "site", "--locker", address, "--dry-run")
    assert code == 0
    assert out.startswith("site 1.0.0: would be uploaded: 4 files, ")
    code, value = as_json(capsys, "site", "--locker", address, "--dry-run")
    assert (code, value["projects"][0]["result"], len(value["projects"][0]["missing"])) == (0, "dry run", 4)
    assert proxy.sent_bytes == 0
    assert not container.names()


def test_a_shipped_project_that_changed_without_a_version(
    container: azurite.Container, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from generator.projects import lock

    version = shipped_project("misc_ubuntu")[0].version
    monkeypatch.setattr(lock, "read_lock", lambda _: {"misc_ubuntu": {version: "0" * 64}})
    code, _, err = run(capsys, "misc_ubuntu", "--locker", container.url)
    assert code == 1
    assert "has changed, but its version is still" in err
    assert "cycleforge project bump misc_ubuntu" in err
    assert not container.names()


def test_only_the_list_of_blobs_differs(container: azurite.Container, capsys: pytest.CaptureFixture[str]) -> None:
    """Another machine had fetched more: then no new version is wanted, but the same blobs."""
    assert run(capsys, "slurm_nhc", "--locker", container.url)[0] == 0
    version = shipped_project("slurm_nhc")[0].version
    container.put(f"projects/slurm_nhc/{version}/manifest.json", b'{"blobs": [{"path": "nhc.tar", "checksum": "00"}]}')
    code, _, err = run(capsys, "slurm_nhc", "--locker", container.url)
    assert code == 1
    assert "differs: manifest.json" in err
    assert "cycleforge blobs fetch" in err
    assert "project bump" not in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing-of-that-name"], "there is no definition 'nothing-of-that-name'"),
        (["misc_ubunt"], "did you mean 'misc_ubuntu'?"),
        (["empty"], "empty is not a project folder"),
        (["broken"], "broken/project.ini:1:"),
        (["team"], "team.yaml has errors"),
        (["blobs"], "the version must not be 'blobs'"),
        (["misc_ubuntu", "--locker", "az://x"], "'x' is not a valid storage account name"),
        (["misc_ubuntu", "--frce"], "did you mean '--force'?"),
    ],
)
def test_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/project.ini").write_text("name\n")
    (tmp_path / "team.yaml").write_text(DEFINITION.format(extra=", nodes: 3"))
    project(tmp_path / "blobs", version="blobs")
    locker = [] if "--locker" in words else ["--locker", "http://127.0.0.1:9/devstoreaccount1/cyclecloud"]
    code, out, err = run(capsys, *words, *locker)
    assert code in (1, 2)
    assert out == ""
    assert said in err
    assert "Traceback" not in err


def test_no_locker_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "team.yaml").write_text(DEFINITION.format(extra=""))
    monkeypatch.delenv("AZURE_STORAGE_KEY")
    assert main(["locker", "ls", "--json"]) == 2
    assert data_of(capsys.readouterr().out)["errors"][0]["message"] == "no locker was given"
    code, _, err = run(capsys, "team")
    assert code == 2
    assert "'team': no locker was given" in err
    assert "az deployment sub show --name team-southcentralus --query properties.outputs.lockerAccount.value" in err


# ---------------------------------------------------------------- when it breaks


def test_what_was_done_is_told_when_a_later_one_fails(
    tmp_path: Path, container: azurite.Container, proxy: Proxy, capsys: pytest.CaptureFixture[str]
) -> None:
    project(tmp_path / "one")
    ini = project(tmp_path / "two") / "project.ini"
    ini.write_text(ini.read_text().replace("site", "second"))
    refuse = Answer(403, "AuthorizationPermissionMismatch", "no")
    proxy.decide = lambda request: refuse if request.method == "PUT" and "second" in request.path else None
    code, value = as_json(capsys, "one", "two", "--locker", f"{proxy.url}/{container.name}")
    assert code == 4
    assert [row["result"] for row in value["projects"]] == ["uploaded", "not sent"]
    assert "does not permit this" in value["errors"][0]["message"]


def test_a_server_that_answers_nonsense_is_no_bug_of_ours(
    tmp_path: Path, container: azurite.Container, proxy: Proxy, capsys: pytest.CaptureFixture[str]
) -> None:
    project(tmp_path / "site")
    proxy.decide = on("List Blobs", Answer(200, "", "not a listing"))
    code, _, err = run(capsys, "site", "--locker", f"{proxy.url}/{container.name}")
    assert code == 4
    assert "this is a bug" not in err


# ---------------------------------------------------------------- on a terminal


def test_a_bar_on_a_terminal(tmp_path: Path, container: azurite.Container) -> None:
    project(tmp_path / "site", blobs={"big": bytes(3 * 2**20)})
    outer, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 25, 100, 0, 0))
    process = subprocess.Popen(
        [*COMMAND, "upload", str(tmp_path / "site"), "--locker", container.url],
        stdout=subprocess.PIPE, stderr=inner, env={**os.environ, "TERM": "xterm"}, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    os.close(inner)
    shown = io.BytesIO()
    while True:
        try:
            piece = os.read(outer, 4096)
        except OSError:
            break
        if not piece:
            break
        shown.write(piece)
    out, _ = process.communicate()
    os.close(outer)
    assert process.returncode == 0
    assert out.startswith(b"site 1.0.0: uploaded")
    assert b"site 1.0.0" in shown.getvalue()
    assert b"%" in shown.getvalue()
    assert b"sending" not in shown.getvalue()


def test_ours_and_an_upload_of_the_library_agree(tmp_path: Path, container: azurite.Container) -> None:
    folder = project(tmp_path / "site")
    send(opened(container.server.url, container), folder)
    assert main(["upload", "site", "--locker", container.url]) == 0
