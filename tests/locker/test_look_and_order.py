"""`cycleforge locker`: what differs, what is there, a version back, and old versions away."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from azure.storage.blob import BlobBlock, ContentSettings
from hypothesis import example, given
from hypothesis import strategies as st

from generator.locker.layout import BLOBS, MANIFEST, ROOT, Stored, split, version_prefix, versions_of
from generator.locker.manifests import listed_blobs
from generator.locker.prune import RUNNING, Prune, order, plan_prune, prune
from generator.locker.refusals import Refused
from tests.locker.azurite import KEY, Container
from tests.locker.command import CLOSED, Command, commands
from tests.locker.faults import Counter, Cut, Delay, Request, Rewrite, on, with_folders
from tests.locker.ground import FILES, contents, opened, project, send, stored
from tests.locker.proxy import Proxy

ROOT_FOLDER = Path(__file__).resolve().parents[2]
BLOB = {"tool/bin": b"\x7fELF blob", "plain.txt": b"text\n"}
MANIFEST_OF = "projects/site/1.0.0/manifest.json"


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, container: Container
) -> Iterator[Command]:
    """Signed in, and the locker is named."""
    for command in commands(monkeypatch, capsys, tmp_path):
        command.environment(AZURE_STORAGE_KEY=KEY, CYCLEFORGE_LOCKER=container.url)
        monkeypatch.setenv("CYCLECLOUD_SSH_PUBLIC_KEY", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + 43 * "I" + " a")
        yield command


def site(run: Command, container: Container, version: str = "1.0.0", **blobs: bytes) -> Path:
    """A version of the project `site`, here and in the locker; a blob's name may have __ for a dot."""
    files = {name.replace("__", "."): content for name, content in blobs.items()} or BLOB
    folder = project(run.folder / f"site-{version}", blobs=files, version=version)
    client = container.client()
    for name, content in contents(folder).items():
        client.upload_blob(name, content, overwrite=True)
    return folder


def put_without_md5(container: Container, name: str, content: bytes, claimed: bytes | None = None) -> None:
    """As a program would that sends blocks: nobody computes the MD5 of the whole, so any may be claimed."""
    blob = container.client().get_blob_client(name)
    blob.stage_block("MQ==", content)
    settings = ContentSettings(content_md5=bytearray(claimed)) if claimed else None
    blob.commit_block_list([BlobBlock("MQ==")], content_settings=settings)


# ---------------------------------------------------------------- verify


def test_verify(run: Command, container: Container) -> None:
    folder = project(run.folder / "site", blobs=BLOB)
    assert run("locker", "verify", str(folder)) == (
        1, "site 1.0.0: not in the locker\n  hint: cycleforge upload\n", "",
    )  # fmt: skip
    send(opened(container.server.url, container), folder)
    assert run("locker", "verify", str(folder)) == (0, "site 1.0.0: as here, 6 files\n", "")
    client = container.client()
    client.delete_blob("projects/site/1.0.0/default/cluster-init/files/data")
    client.delete_blob("projects/site/blobs/plain.txt")
    container.put("projects/site/1.0.0/default/cluster-init/files/empty", b"not")
    container.put("projects/site/1.0.0/other/cluster-init/files/x\x7f", b"")
    container.put("projects/site/blobs/of-another-version", b"")
    code, out, _ = run("locker", "verify", str(folder))
    assert (code, out.splitlines()) == (1, [
        "site 1.0.0: differs",
        "  missing: default/cluster-init/files/data",
        "  missing: projects/site/blobs/plain.txt",
        "  differs: default/cluster-init/files/empty",
        "  does not belong there: other/cluster-init/files/x\\x7f",
    ])  # fmt: skip
    code, found = run.json("locker", "verify", str(folder))
    (row,) = found.pop("projects")
    assert (code, found) == (1, {"ok": False})
    assert row == {
        "ok": False, "name": "site", "version": "1.0.0", "files": 6, "read": 0, "is_visible": True,
        "missing": ["projects/site/1.0.0/default/cluster-init/files/data", "projects/site/blobs/plain.txt"],
        "changed": ["projects/site/1.0.0/default/cluster-init/files/empty"],
        "foreign": ["projects/site/1.0.0/other/cluster-init/files/x\x7f"],
        "locker": container.url,
    }  # fmt: skip


def test_verify_reads_what_nobody_vouches_for(run: Command, container: Container) -> None:
    folder = site(run, container)
    name = "projects/site/blobs/plain.txt"
    put_without_md5(container, name, BLOB["plain.txt"])
    code, found = run.json("locker", "verify", str(folder))
    assert (code, found["projects"][0]["read"]) == (0, 1)
    put_without_md5(container, name, b"tEXt\n")
    code, found = run.json("locker", "verify", str(folder))
    assert (code, found["projects"][0]["changed"]) == (1, [name])


def test_verify_believes_a_checksum_unless_told_to_read(run: Command, container: Container) -> None:
    folder = site(run, container)
    name = "projects/site/1.0.0/default/cluster-init/files/data"
    put_without_md5(container, name, b"DATA\n", hashlib.md5(FILES["files/data"]).digest())
    assert run("locker", "verify", str(folder))[0] == 0
    code, found = run.json("locker", "verify", str(folder), "--content")
    assert (code, found["projects"][0]["changed"], found["projects"][0]["read"]) == (1, [name], 6)


def test_verify_many(run: Command, container: Container) -> None:
    site(run, container)
    code, out, _ = run("locker", "verify", str(run.folder / "site-1.0.0"), "slurm_nhc", "misc_ubuntu")
    assert code == 1
    assert [line.partition(":")[2] for line in out.splitlines()] == [
        " as here, 6 files", " not in the locker", " cycleforge upload", " not in the locker", " cycleforge upload",
    ]  # fmt: skip


# ---------------------------------------------------------------- ls


def test_ls(run: Command, container: Container) -> None:
    assert run("locker", "ls") == (0, f"{container.url} holds no project\n", "")
    site(run, container, "1.10.0")
    site(run, container, "1.9.0")
    container.put("projects/odd/2\x9b31m/x", b"12")
    container.put("projects/README", b"")
    container.put("blobs/site/x", b"")
    code, out, err = run("locker", "ls")
    assert (code, err) == (0, "")
    assert [re.split(r"\s{2,}", line) for line in out.splitlines()] == [
        ["PROJECT", "VERSION", "FILES", "SIZE", "STATE"],
        ["odd", "2\\x9b31m", "1", "2 B", "no manifest"],
        ["site", "1.9.0", "4", "334 B", "visible"],
        ["site", "1.10.0", "4", "335 B", "visible"],
        ["site", "blobs", "2", "14 B"],
    ]
    code, out, _ = run("locker", "ls", "site:1.9.0")
    assert [line.split()[1] for line in out.splitlines()] == sorted(contents(run.folder / "site-1.9.0"))[:4]
    code, found = run.json("locker", "ls", "site:1.10.0", "odd")
    assert [(each["project"], each["version"], each["is_visible"]) for each in found["versions"]] == [
        ("odd", "2\x9b31m", False), ("site", "1.10.0", True),
    ]  # fmt: skip
    assert found["blobs"] == []
    code, found = run.json("locker", "ls", "site")
    assert found["locker"] == container.url
    assert [each["version"] for each in found["versions"]] == ["1.9.0", "1.10.0"]
    assert {each["name"]: each["md5"] for each in found["blobs"][0]["files"]} == {
        f"projects/site/blobs/{name}": hashlib.md5(content).hexdigest() for name, content in BLOB.items()
    }


def test_ls_of_what_is_not_there(run: Command, container: Container) -> None:
    site(run, container)
    for words, missing in (
        (("nope",), "nope"), (("site:2.0.0",), "site:2.0.0"), (("site", "nope", "site:2"), "nope, site:2"),
    ):  # fmt: skip
        code, said = run.refused("locker", "ls", *words)
        assert code == 2
        assert f"has no {missing}\n" in said
    for word in ("../x", "a/b", "site:1/0", ":1.0.0", "site:1.0.0:2", ""):
        code, said = run.refused("locker", "ls", word)
        assert (code, "is no project of a locker" in said) == (2, True)


# ---------------------------------------------------------------- pull


def tree(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Relative path → content and mode."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): (path.read_bytes(), path.stat().st_mode & 0o777) for path in files}


def test_what_was_built_comes_back(run: Command, container: Container) -> None:
    files = {**FILES, "files/a b/x": b"x", "tests/t.py": b"#!/usr/bin/python3\n"}
    folder = project(run.folder / "site", files, BLOB)
    for script in ("scripts/10-a.sh", "tests/t.py"):
        (folder / "specs/default/cluster-init" / script).chmod(0o755)
    assert run("project", "build", str(folder), "--out", "built")[0] == 0
    assert run("upload", str(folder))[0] == 0
    code, out, err = run("locker", "pull", "site:1.0.0")
    assert (code, err) == (0, "")
    assert re.fullmatch(r"pulled/site/1\.0\.0: 6 files, \d+ B, 2 blobs\n", out)
    assert tree(Path("pulled/site/1.0.0")) == tree(Path("built/site"))
    assert tree(Path("pulled/site/blobs")) == {path: (content, 0o644) for path, content in BLOB.items()}
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
        assert content == BLOB[blob["path"]]


def test_versions_share_their_blobs(run: Command, container: Container) -> None:
    site(run, container)
    site(run, container, "1.1.0")
    assert run("locker", "pull", "site:1.0.0", "site:1.1.0")[0] == 0
    assert set(tree(Path("pulled/site/blobs"))) == set(BLOB)


def test_nothing_that_is_there_is_overwritten(run: Command, container: Container) -> None:
    site(run, container)
    assert run("locker", "pull", "site:1.0.0")[0] == 0
    before = tree(Path("pulled"))
    code, said = run.refused("locker", "pull", "site:1.0.0")
    assert code == 5
    assert "pulled/site/1.0.0 exists and is left alone" in said
    Path("other/site/1.0.0").mkdir(parents=True)
    assert run.refused("locker", "pull", "site:1.0.0", "--into", "other")[0] == 5
    Path("third/site/blobs").mkdir(parents=True)
    Path("third/site/blobs/plain.txt").write_bytes(b"mine")
    code, said = run.refused("locker", "pull", "site:1.0.0", "--into", "third")
    assert code == 5
    assert "third/site/blobs/plain.txt has another content and is left alone" in said
    assert tree(Path("third")) == {"site/blobs/plain.txt": (b"mine", 0o644)}
    assert tree(Path("pulled")) == before
    Path("file").write_text("")
    assert run.refused("locker", "pull", "site:1.0.0", "--into", "file")[0] == 5


def test_pull_of_what_is_not_there(run: Command, container: Container) -> None:
    container.put("projects/site/2.0.0/default/cluster-init/files/x", b"")
    for word, reason in (
        ("site", "is no project of a locker"),
        ("site:1.0.0", "it is not there"),
        ("site:2.0.0", "its manifest is missing, so its upload has not ended"),
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
    assert "which is no path of a file" in said
    assert said.isascii()
    assert not Path("pulled").exists()


def test_a_file_with_the_name_of_a_folder(run: Command, container: Container) -> None:
    site(run, container)
    container.put("projects/site/1.0.0/default/cluster-init", b"")
    code, said = run.refused("locker", "pull", "site:1.0.0")
    assert code == 1
    assert "below a file of the same name as its folder" in said


def test_folders_of_a_hierarchical_namespace_are_none(run: Command, container: Container, proxy: Proxy) -> None:
    site(run, container)
    run.environment(CYCLEFORGE_LOCKER=f"{proxy.url}/{container.name}")
    proxy.decide = on("List Blobs", with_folders("projects/site/1.0.0/default"))
    assert run("locker", "pull", "site:1.0.0")[0] == 0
    assert "default/cluster-init/files/data" in tree(Path("pulled/site/1.0.0"))


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("1.0.0/default/cluster-init/files/data", b"DATA\n", "does not have the content that the locker says"),
        ("blobs/plain.txt", b"TEXT\n", "does not have the content that the locker says"),
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
    _, said = pulling.communicate(timeout=20)
    assert pulling.returncode == {signal.SIGKILL: -9, signal.SIGINT: 130}[how]
    if how == signal.SIGINT:
        assert said.strip().startswith("interrupted")
        assert "Traceback" not in said
        assert tree(Path("pulled")) == {}
    assert not Path("pulled/site/1.0.0").exists()
    proxy.forget()
    assert run("locker", "pull", "site:1.0.0")[0] == 0


# ---------------------------------------------------------------- prune


def define(run: Command, name: str, *projects: str, extra: str = "") -> None:
    """A definition in `cluster_defs/`; `projects` are entries of its own."""
    folder = run.folder / "here/cluster_defs"
    folder.mkdir(exist_ok=True)
    text = (ROOT_FOLDER / "cluster_defs/minimal.yaml").read_text().replace("max_nodes: 2", f"max_nodes: 2{extra}")
    entries = "".join(f"  - {entry}\n" for entry in projects)
    (folder / f"{name}.yaml").write_text(f"{text}\nprojects:\n{entries}" if entries else text)


def manifests(container: Container) -> set[str]:
    """Project and version of those that nodes see."""
    return {name.split("/")[1] + " " + name.split("/")[2] for name in container.names() if name.endswith(MANIFEST)}


@pytest.fixture
def filled(run: Command, container: Container) -> Container:
    """Versions of `site`, of which definitions use two, and of another project."""
    site(run, container, "1.0.0", shared__bin=b"s", first__bin=b"1")
    site(run, container, "1.1.0", shared__bin=b"s", second__bin=b"2")
    site(run, container, "1.9.0", shared__bin=b"s")
    site(run, container, "1.10.0", new__bin=b"n")
    for version in ("0.1.0", "0.2.0"):
        container.put(f"projects/foreign/{version}/manifest.json", b"{}")
    container.put("projects/foreign/blobs/x", b"")
    define(run, "one", "{name: site, version: 1.1.0}", extra=", extra_projects: [site]")
    define(run, "two")
    return container


def test_prune(run: Command, filled: Container, proxy: Proxy) -> None:
    run.environment(CYCLEFORGE_LOCKER=f"{proxy.url}/{filled.name}")
    before = stored(filled)
    code, out, _ = run("locker", "prune", "--dry-run")
    assert (code, out.splitlines()) == (0, [
        "remove  site 1.0.0, 336 B",
        "remove  site 1.9.0, 223 B",
        "remove  projects/site/blobs/first.bin, 1 B",
        "keep    foreign 0.1.0: of a project that no definition here names",
        "keep    foreign 0.2.0: of a project that no definition here names",
        "keep    site 1.1.0: used by a definition here",
        "keep    site 1.10.0: one of the newest, --keep",
    ])  # fmt: skip
    code, out, err = run("locker", "prune")
    assert code == 2
    assert "nobody can be asked here" in err
    assert "--yes removes without asking" in err
    assert stored(filled) == before
    assert proxy.done("Delete Blob") == []

    seen: list[set[str]] = []

    def whole(_: Request) -> None:
        now = filled.names()
        for version in ("1.0.0", "1.1.0", "1.9.0", "1.10.0"):
            if f"projects/site/{version}/manifest.json" in now:
                missing = {each for each in contents(run.folder / f"site-{version}") if each not in now}
                assert not missing, f"{version} is visible without {missing}"
        seen.append(now)

    proxy.observe = whole
    code, found = run.json("locker", "prune", "--yes")
    assert (code, found["ok"], found["dry_run"], found["locker"]) == (0, True, False, f"{proxy.url}/{filled.name}")
    assert [(each["project"], each["version"]) for each in found["removed"]] == [("site", "1.0.0"), ("site", "1.9.0")]
    assert found["blobs"] == ["projects/site/blobs/first.bin"]
    assert len(seen) > 8
    gone = {name for name in before if "/1.0.0/" in name or "/1.9.0/" in name or name.endswith("first.bin")}
    assert stored(filled) == {name: content for name, content in before.items() if name not in gone}
    assert run("locker", "prune", "--yes") == (0, "nothing to remove\n", "")


def test_how_many_stay_anyway(run: Command, filled: Container) -> None:
    def going(*words: str) -> list[str]:
        code, found = run.json("locker", "prune", "--dry-run", *words)
        assert code == 0
        return [each["version"] for each in found["would_remove"]]

    assert going("--keep", "0") == ["1.0.0", "1.9.0", "1.10.0"]
    assert going("--keep", "2") == ["1.0.0"]
    assert going("--keep", "9") == []
    assert going("two") == []
    assert going("one", "--keep", "0") == ["1.0.0", "1.9.0", "1.10.0"]
    code, said = run.refused("locker", "prune", "--keep", "-1")
    assert (code, "--keep counts versions" in said) == (2, True)


def test_a_version_that_is_only_named_is_used(run: Command, filled: Container) -> None:
    define(run, "three", "{name: site, version: 1.0.0}")
    out = run("locker", "prune", "--dry-run")[1]
    assert "keep    site 1.0.0: used by a definition here" in out


def test_a_definition_with_errors_prunes_nothing(run: Command, filled: Container) -> None:
    before = filled.names()
    (run.folder / "here/cluster_defs/bad.yaml").write_text("name: x\n")
    code, out, err = run("locker", "prune", "--yes")
    assert (code, out) == (1, "")
    assert "has errors, so nothing was done" in err
    assert filled.names() == before


@pytest.mark.parametrize(("answer", "is_done"), [("yes", True), ("n", False), ("", False)])
def test_a_person_is_asked(
    run: Command, filled: Container, answer: str, is_done: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = filled.names()
    terminal, other = pty.openpty()
    try:
        with os.fdopen(os.dup(other), encoding="utf-8") as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            os.write(terminal, f"{answer}\n".encode())
            code, out, err = run("locker", "prune")
    finally:
        os.close(terminal)
        os.close(other)
    assert err.startswith(f"Remove 2 versions and 1 blobs from {filled.url}? [y/N] ")
    assert (code, filled.names() != before) == ((0, True) if is_done else (1, False))
    assert ("removed, " in out) == is_done
    assert ("nothing was removed" in err) == (not is_done)


LATER = datetime.now(UTC) + 2 * RUNNING
USED = {("site", "1.1.0")}


def plan(container: Container, now: datetime | None = None, keep: int = 1) -> Prune:
    return plan_prune(opened(container.server.url, container), {"site"}, USED, keep, now)


def test_what_is_not_finished(filled: Container) -> None:
    filled.put("projects/site/2.0.0/default/cluster-init/files/x", b"")
    young = plan(filled)
    assert [version.version for version in young.versions] == ["1.0.0", "1.9.0"]
    assert young.blobs == {}, "what the upload under way will list is not known"
    assert {each.version: why for each, why in young.kept}["2.0.0"].startswith("without a manifest and younger")
    old = plan(filled, LATER)
    assert [version.version for version in old.versions] == ["1.0.0", "1.9.0", "2.0.0"]
    assert set(old.blobs) == {"projects/site/blobs/first.bin"}


def test_blobs_stay_while_a_manifest_cannot_be_read(filled: Container) -> None:
    filled.put("projects/site/1.1.0/manifest.json", b"{")
    assert plan(filled).blobs == {}


@pytest.mark.parametrize("number", [1, 2, 3, 4, 7, 10])
def test_the_next_prune_completes_one_that_was_interrupted(
    run: Command, filled: Container, proxy: Proxy, number: int
) -> None:
    wanted = {name for name in filled.names() if not re.search(r"/1\.[09]\.0/|first\.bin", name)}
    first = plan(filled)
    count = Counter()
    deleted = len(first.versions) + len(first.blobs) + 3 * len(first.versions)

    def after(request: Request) -> Cut | None:
        return Cut("before") if request.operation == "Delete Blob" and count.next() >= number else None

    proxy.decide = after
    with suppress(Refused):
        prune(opened(proxy.url, filled), first)
    assert len(filled.names() - wanted) == deleted - (number - 1)
    # A day later: until then it might be an upload that goes on.
    prune(opened(filled.server.url, filled), plan(filled, LATER))
    assert filled.names() == wanted


def test_somebody_writes_a_version_that_is_about_to_go(filled: Container) -> None:
    first = plan(filled)
    filled.put("projects/site/1.0.0/manifest.json", b"{}")
    with pytest.raises(Refused, match="written by somebody else"):
        prune(opened(filled.server.url, filled), first)
    assert "projects/site/1.0.0/default/cluster-init/files/data" in filled.names()
    assert "projects/site/blobs/first.bin" in filled.names()


# ---------------------------------------------------------------- order, names

ASCENDING = [
    "alpha", "rc", "0", "0.1", "0.1.0", "0.9", "1.0.0-alpha", "1.0.0-rc1", "1.0.0-rc2", "1.0.0-rc10", "1.0.0",
    "1.0.0.1", "1.0.1", "1.9.0", "1.10.0", "2", "2.0", "10", "2026.01.01", "2026.11.21",
]  # fmt: skip


def test_versions_in_order() -> None:
    assert sorted(sorted(ASCENDING), key=order) == ASCENDING


NAMES = st.text(st.characters(codec="utf-8"), max_size=20)


@given(st.lists(NAMES, max_size=8))
@example(["²", "1", "٣", "1²"])
@example(["1" * 1000])
def test_any_versions_have_an_order(versions: list[str]) -> None:
    keys = [order(version) for version in versions]
    assert sorted(keys) == sorted(keys, reverse=True)[::-1]


@given(st.tuples(*[st.integers(0, 2000)] * 3), st.tuples(*[st.integers(0, 2000)] * 3), st.sampled_from(".-_"))
def test_numbers_sort_as_numbers(one: tuple[int, int, int], other: tuple[int, int, int], between: str) -> None:
    first, second = (order(between.join(map(str, each))) for each in (one, other))
    assert (first < second) == (one < other)
    assert order(between.join(map(str, one)) + "-rc1") < first


@given(st.lists(st.one_of(
    NAMES,
    st.tuples(st.just("projects"), *[st.sampled_from(["a", "b", BLOBS, "", "1.0", MANIFEST])] * 3).map("/".join),
)))  # fmt: skip
def test_every_file_belongs_to_one_version_or_to_none(names: list[str]) -> None:
    known = Stored(1, None, "", datetime.now(UTC))
    listing = dict.fromkeys(names, known)
    found = versions_of(listing)
    assert len({(each.project, each.version) for each in found}) == len(found)
    files = [name for each in found for name in each.files]
    assert len(files) == len(set(files))
    for each in found:
        assert each.version != BLOBS
        assert all(name.startswith(version_prefix(each.project, each.version)) for name in each.files)
        assert each.is_complete == (each.manifest in listing)
        assert each.size_bytes == len(each.files)
    for name in set(names) - set(files):
        place = split(name)
        assert place is None or place[1] == BLOBS
        assert place is not None or not re.match(r"projects/[^/]+/[^/]+/[^/]", name)
    for name in names:
        if (place := split(name)) is not None:
            assert name == f"{ROOT}{place[0]}/{place[1]}/{place[2]}" or "//" in name or "/." in name


@given(st.binary(max_size=60) | st.recursive(
    st.none() | st.integers() | st.text(max_size=3), lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["blobs", "path", "checksum"]), inner, max_size=3), max_leaves=9,
).map(lambda value: json.dumps(value).encode()))  # fmt: skip
def test_any_manifest_can_be_looked_at(content: bytes) -> None:
    found = listed_blobs(content)
    assert found is None or all(isinstance(each, str) for pair in found.items() for each in pair)
