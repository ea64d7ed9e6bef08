"""`cycleforge locker pull`: a version back, whole or not at all, and a copy as a node makes it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.locker.azurite import Container
from tests.locker.command import BLOBS_OF, CLOSED, Command, in_locker, put_without_md5, site, tree
from tests.locker.faults import Cut, Delay, Request, Rewrite, on, with_folders
from tests.locker.ground import FILES, contents, project
from tests.locker.proxy import Proxy

ROOT_FOLDER = Path(__file__).resolve().parents[2]
MANIFEST_OF = "projects/site/1.0.0/manifest.json"


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, container: Container
) -> Iterator[Command]:
    yield from in_locker(monkeypatch, capsys, tmp_path, container)


def test_what_was_built_comes_back(run: Command, container: Container) -> None:
    files = {**FILES, "files/a b/x": b"x", "tests/t.py": b"#!/usr/bin/python3\n"}
    folder = project(run.folder / "site", files, BLOBS_OF)
    for script in ("scripts/10-a.sh", "tests/t.py"):
        (folder / "specs/default/cluster-init" / script).chmod(0o755)
    assert run("project", "build", str(folder), "--out", "built")[0] == 0
    assert run("upload", str(folder))[0] == 0
    code, out, err = run("locker", "pull", "site:1.0.0")
    assert (code, err) == (0, "")
    assert re.fullmatch(r"pulled/site/1\.0\.0: 6 files, \d+ B, 2 blobs\n", out)
    assert tree(Path("pulled/site/1.0.0")) == tree(Path("built/site"))
    assert tree(Path("pulled/site/blobs")) == {path: (content, 0o644) for path, content in BLOBS_OF.items()}
    code, found = run.json("locker", "pull", "site:1.0.0", "--into", "again")
    assert (code, found["ok"], found["versions"][0]["folder"]) == (0, True, "again/site/1.0.0")
    assert found["versions"][0]["blobs"] == ["again/site/blobs/tool/bin", "again/site/blobs/plain.txt"]
    assert tree(Path("again")) == tree(Path("pulled"))


def test_a_node_gets_everything(run: Command, container: Container) -> None:
    """It reads the manifest, then all below the prefix of its spec, and project blobs by name."""
    folder = site(run, container)
    client = container.client()
    manifest = json.loads(client.download_blob(MANIFEST_OF).readall())
    prefix = f"projects/{manifest['name']}/{manifest['version']}/default/"
    copy = {name.removeprefix(prefix): blob.content for name, blob in container.blobs(prefix).items()}
    specs = folder / "specs/default"
    assert copy == {
        path.relative_to(specs).as_posix(): path.read_bytes() for path in specs.rglob("*") if path.is_file()
    }
    for blob in manifest["blobs"]:
        content = client.download_blob(f"projects/site/blobs/{blob['path']}").readall()
        assert hashlib.md5(content).hexdigest() == blob["checksum"]
        assert content == BLOBS_OF[blob["path"]]


def test_versions_share_their_blobs(run: Command, container: Container) -> None:
    site(run, container)
    site(run, container, "1.1.0")
    assert run("locker", "pull", "site:1.0.0", "site:1.1.0")[0] == 0
    assert set(tree(Path("pulled/site/blobs"))) == set(BLOBS_OF)


def test_nothing_that_is_there_is_overwritten(run: Command, container: Container) -> None:
    site(run, container)
    assert run("locker", "pull", "site:1.0.0")[0] == 0
    before = tree(Path("pulled"))
    code, said = run.refused("locker", "pull", "site:1.0.0")
    assert code == 5
    assert "pulled/site/1.0.0 already exists and is left unchanged" in said
    Path("other/site/1.0.0").mkdir(parents=True)
    assert run.refused("locker", "pull", "site:1.0.0", "--into", "other")[0] == 5
    Path("third/site/blobs").mkdir(parents=True)
    Path("third/site/blobs/plain.txt").write_bytes(b"mine")
    code, said = run.refused("locker", "pull", "site:1.0.0", "--into", "third")
    assert code == 5
    assert "third/site/blobs/plain.txt has different content and is left unchanged" in said
    assert tree(Path("third")) == {"site/blobs/plain.txt": (b"mine", 0o644)}
    assert tree(Path("pulled")) == before
    Path("file").write_text("")
    assert run.refused("locker", "pull", "site:1.0.0", "--into", "file")[0] == 5


def test_pull_of_what_is_not_there(run: Command, container: Container) -> None:
    container.put("projects/site/2.0.0/default/cluster-init/files/x", b"")
    for word, reason in (
        ("site", "is not a project of a locker"),
        ("site:1.0.0", "it is not there"),
        ("site:2.0.0", "its manifest is missing, so its upload has not finished"),
    ):
        code, said = run.refused("locker", "pull", word)
        assert code == 2
        assert reason in said
    assert not Path("pulled").exists()


def renamed(old: str, new: str) -> Rewrite:
    """A listing in which a blob has a name that Azurite would not take from us."""
    return Rewrite(body=lambda listing: listing.replace(old.encode(), new.encode()))


@pytest.mark.parametrize(
    "name", ["../../../escaped", "a/../../b", "./x", "a//b", "a\\..\\b", "x\u202e", "a\u0085b", "C:\\x", "x/", ".."]
)
def test_names_that_are_no_paths(run: Command, container: Container, proxy: Proxy, name: str) -> None:
    site(run, container)
    run.environment(CYCLEFORGE_LOCKER=f"{proxy.url}/{container.name}")
    proxy.decide = on("List Blobs", renamed("default/cluster-init/files/data", name))
    code, said = run.refused("locker", "pull", "site:1.0.0")
    assert code == 1
    assert "which is not a valid file path" in said
    assert said.isascii()
    assert not Path("pulled").exists()


def test_a_file_with_the_name_of_a_folder(run: Command, container: Container) -> None:
    site(run, container)
    container.put("projects/site/1.0.0/default/cluster-init", b"")
    code, said = run.refused("locker", "pull", "site:1.0.0")
    assert code == 1
    assert "below a file that has the name of its folder" in said


def test_folders_of_a_hierarchical_namespace_are_none(run: Command, container: Container, proxy: Proxy) -> None:
    site(run, container)
    run.environment(CYCLEFORGE_LOCKER=f"{proxy.url}/{container.name}")
    proxy.decide = on("List Blobs", with_folders("projects/site/1.0.0/default"))
    assert run("locker", "pull", "site:1.0.0")[0] == 0
    assert "default/cluster-init/files/data" in tree(Path("pulled/site/1.0.0"))


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("1.0.0/default/cluster-init/files/data", b"DATA\n", "does not have the content that its manifest lists"),
        ("blobs/plain.txt", b"TEXT\n", "does not have the content that its manifest lists"),
        ("1.0.0/manifest.json", b"[]", "the manifest of site cannot be read"),
        ("1.0.0/manifest.json", b'{"blobs": [{"path": "plain.txt", "checksum": "xyz"}]}', "has no checksum"),
        ("1.0.0/manifest.json", b'{"blobs": [{"path": "gone", "checksum": "00"}]}', "the locker lacks blobs/gone"),
        ("1.0.0/manifest.json", b'{"blobs": [{"path": "../1.0.0/manifest.json", "checksum": "00"}]}', "lacks blobs/.."),
        ("1.0.0/manifest.json", b'{"blobs": ' + b"[" * 200000, "the manifest of site cannot be read"),
    ],
)  # fmt: skip
def test_what_is_damaged_leaves_nothing(
    run: Command, container: Container, name: str, content: bytes, reason: str
) -> None:
    folder = site(run, container)
    name = f"projects/site/{name}"
    before = contents(folder)[name]
    put_without_md5(container, name, content, hashlib.md5(before).digest() if "manifest" not in name else None)
    code, said = run.refused("locker", "pull", "site:1.0.0")
    assert code == 1
    assert reason in said
    assert tree(Path("pulled")) == {}


@pytest.mark.parametrize("fault", [Cut("answer"), Cut("before")])
def test_a_download_that_breaks_leaves_nothing(run: Command, container: Container, proxy: Proxy, fault: Cut) -> None:
    site(run, container)
    run.environment(CYCLEFORGE_LOCKER=f"{proxy.url}/{container.name}")
    proxy.decide = lambda request: fault if request.blob.endswith("files/data") else None
    code, said = run.refused("locker", "pull", "site:1.0.0")
    assert code == 4
    assert "cannot be reached" in said
    assert tree(Path("pulled")) == {}
    proxy.decide = on("Get Blob", fault, 2)
    code, _, said = run("locker", "pull", "site:1.0.0")
    assert (code, said) == (0, "")


def process(*words: str) -> subprocess.Popen[str]:
    """The command as a process of its own."""
    code = "import sys; from generator.cli import process; process()"
    return subprocess.Popen(
        [sys.executable, "-c", code, *words], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT_FOLDER), "IDENTITY_ENDPOINT": CLOSED},
    )  # fmt: skip


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_pull_that_is_ended_leaves_no_version(
    run: Command, container: Container, proxy: Proxy, how: signal.Signals
) -> None:
    site(run, container)
    run.environment(CYCLEFORGE_LOCKER=f"{proxy.url}/{container.name}")
    waits = threading.Event()

    def hold(request: Request) -> Delay | None:
        if not request.blob.endswith("files/data"):
            return None
        waits.set()
        return Delay(30)

    proxy.decide = hold
    pulling = process("locker", "pull", "site:1.0.0")
    assert waits.wait(20)
    pulling.send_signal(how)
    _, said = pulling.communicate()
    assert pulling.returncode == {signal.SIGKILL: -9, signal.SIGINT: 130}[how]
    if how == signal.SIGINT:
        assert said.strip().startswith("interrupted")
        assert "Traceback" not in said
        assert tree(Path("pulled")) == {}
    assert not Path("pulled/site/1.0.0").exists()
    proxy.forget()
    assert run("locker", "pull", "site:1.0.0")[0] == 0
