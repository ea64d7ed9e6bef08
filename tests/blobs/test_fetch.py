"""Blobs from the network, from a clone, from files: whatever comes, only the pinned content is kept."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from generator.blobs import Store, pinned
from generator.blobs.fetch import LocalPath, Network, Outcome, Source, fetch
from generator.errors import CannotRead
from tests.bed.sources import origin_or_skip
from tests.blobs.catalogue import BINARY, BINARY_TAR, COMMIT, FILES, SOURCE, TAR, archive, blob, entry
from tests.blobs.server import Server, serving, status, whole

REPACKED, BARE = blob(SOURCE), blob(BINARY)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as started:
        yield started


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def outcomes(store: Store, source: Source, *, optional: bool = False) -> list[Outcome]:
    return list(fetch([REPACKED, BARE], store, source, optional=optional))


def states(found: list[Outcome]) -> list[str]:
    return [outcome.state for outcome in found]


# ---------------------------------------------------------------- network


def test_all_come_from_the_network_and_then_no_request_more(server: Server, store: Store) -> None:
    server.answers = [whole(archive()), whole(BINARY_TAR)]
    assert states(outcomes(store, Network(server.limits()))) == ["fetched", "fetched"]
    assert (store.read(REPACKED), store.read(BARE)) == (TAR, BINARY_TAR)
    assert [path.rpartition("/")[2] for path in server.asked] == [f"{COMMIT}.tar.gz", "tool_1.0_amd64.bin"]
    assert states(outcomes(store, Network(server.limits()))) == ["present", "present"]
    assert len(server.asked) == 2


def test_a_failure_stops_no_other_and_a_damaged_one_is_replaced(server: Server, store: Store) -> None:
    store.put(BARE, BINARY_TAR)
    store.path(BARE).write_bytes(BINARY_TAR[:-1])
    server.answers = [status(404), whole(BINARY_TAR)]
    first, second = outcomes(store, Network(server.limits()))
    assert (first.state, second.state) == ("failed", "fetched")
    assert first.reason == "the server answered HTTP 404 Not Found: the file is no longer there"
    assert first.hint == f"download {REPACKED.url} elsewhere, then: cycleforge blobs fetch {REPACKED.file} --from FILE"
    assert store.read(BARE) == BINARY_TAR


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (archive({**FILES, "tool": b"#!/bin/bash\necho evil\n"}), f"not those of somebody/tool at {COMMIT[:12]}"),
        (archive({**FILES, "scripts/c.part": b"one more"}), "not those of somebody/tool"),
        (archive({**FILES, "scripts/c.part": bytes(len(TAR))}), "more than the expected"),
        (archive()[:-40], "the archive cannot be read"),
        (b"<html>Please sign in</html>", "the archive is a web page"),
    ],
)  # fmt: skip
def test_another_archive_is_never_kept(server: Server, store: Store, content: bytes, reason: str) -> None:
    server.answers = [whole(content)]
    (outcome,) = fetch([REPACKED], store, Network(server.limits()))
    assert outcome.state == "failed"
    assert outcome.reason is not None
    assert reason in outcome.reason
    assert not store.folder.exists()
    assert len(server.asked) == 1


# ---------------------------------------------------------------- files


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CannotRead, match="there is no") as caught:
        LocalPath(tmp_path / "none")
    assert "git clone" in str(caught.value.hint)


@pytest.mark.parametrize("name", [SOURCE["file"], f"{COMMIT}.tar.gz", f"tool-{COMMIT}.tar.gz"])
@pytest.mark.parametrize("content", [TAR, archive()])
def test_a_folder_of_files(store: Store, tmp_path: Path, name: str, content: bytes) -> None:
    """The blob itself or the archive of the commit, under any of the names that it may have."""
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / name).write_bytes(content)
    (tmp_path / "files/tool_1.0_amd64.bin").write_bytes(BINARY_TAR)
    assert states(outcomes(store, LocalPath(tmp_path / "files"))) == ["fetched", "fetched"]
    assert (store.read(REPACKED), store.read(BARE)) == (TAR, BINARY_TAR)


@pytest.mark.parametrize("content", [TAR, archive()])
def test_one_file_of_any_name(store: Store, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "from-the-usb-stick").write_bytes(content)
    (outcome,) = fetch([REPACKED], store, LocalPath(tmp_path / "from-the-usb-stick"))
    assert outcome.state == "fetched"


@pytest.mark.parametrize(("optional", "state"), [(True, "absent"), (False, "failed")])
def test_what_a_folder_does_not_hold(store: Store, tmp_path: Path, optional: bool, state: str) -> None:
    (tmp_path / "tool-1.0.bin").write_bytes(BINARY_TAR)
    first, second = outcomes(store, LocalPath(tmp_path), optional=optional)
    assert (first.state, second.state) == (state, "fetched")
    assert first.reason == f"{tmp_path} has no {REPACKED.file}"


def test_a_wrong_file_is_a_failure_even_where_none_was_needed(store: Store, tmp_path: Path) -> None:
    (tmp_path / "tool-1.0.bin").write_bytes(b"wrong")
    assert states(outcomes(store, LocalPath(tmp_path), optional=True)) == ["absent", "failed"]


def test_a_file_that_cannot_be_read(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tool-1.0.bin"
    path.write_bytes(BINARY_TAR)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", refuse)
        (outcome,) = fetch([BARE], store, LocalPath(path))
    assert (outcome.state, outcome.reason) == ("failed", f"cannot read {path}: permission denied")
    with path.open("wb") as stream:
        stream.truncate(2**40)
    (outcome,) = fetch([BARE], store, LocalPath(path))
    assert (outcome.state, outcome.reason) == ("failed", f"{path} is too large: {2**40} bytes")


# ---------------------------------------------------------------- a clone


def git(folder: Path, *arguments: str) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    who = ["-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(
        ["git", *who, "-C", str(folder), *arguments], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone whose first commit is the pinned one, with the settings of someone who works on Windows."""
    folder = tmp_path / "clone"
    folder.mkdir()
    git(folder, "init", "--quiet")
    for name, content in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "one")
    (folder / "tool").write_bytes(b"newer\n")
    git(folder, "commit", "--quiet", "-am", "two")
    git(folder, "config", "core.autocrlf", "true")
    return folder


@pytest.mark.parametrize("is_bare", [False, True])
def test_the_pinned_commit_of_a_clone(store: Store, clone: Path, tmp_path: Path, is_bare: bool) -> None:
    pinned_one = blob(entry(SOURCE["file"], TAR, commit=git(clone, "rev-parse", "HEAD~1")))
    path = clone
    if is_bare:
        path = tmp_path / "bare"
        git(tmp_path, "clone", "--quiet", "--bare", str(clone), str(path))
    (outcome,) = fetch([pinned_one], store, LocalPath(path))
    assert outcome.state == "fetched", outcome.reason
    assert store.read(pinned_one) == TAR


def test_clones_that_do_not_give_it(store: Store, clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = outcomes(store, LocalPath(clone))
    assert first.reason == f"{clone} does not hold the commit {COMMIT}"
    assert first.hint == "`git fetch` in a clone of somebody/tool, or a clone that is not shallow"
    assert second.reason == first.reason
    other = blob(entry(SOURCE["file"], TAR, commit=git(clone, "rev-parse", "HEAD")))
    (outcome,) = fetch([other], store, LocalPath(clone))
    assert outcome.reason is not None
    assert outcome.reason.startswith("its files are not those of somebody/tool at")
    tree = git(clone, "rev-parse", "HEAD^{tree}")
    shutil.rmtree(clone / ".git/objects" / tree[:2])
    (outcome,) = fetch([other], store, LocalPath(clone))
    assert outcome.reason is not None
    assert outcome.reason.startswith("git archive failed: ")
    monkeypatch.setenv("PATH", str(store.folder))
    assert outcomes(store, LocalPath(clone))[0].reason == "git is not installed"
    assert not store.folder.exists()


@pytest.mark.parametrize("file", list(pinned()))
def test_the_real_sources_give_the_pinned_bytes(store: Store, file: str) -> None:
    real = pinned()[file]
    (outcome,) = fetch([real], store, LocalPath(origin_or_skip(file)))
    assert outcome.state == "fetched", outcome.reason
    assert hashlib.sha256(store.path(real).read_bytes()).hexdigest() == real.sha256
