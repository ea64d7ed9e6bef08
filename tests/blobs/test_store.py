"""The store: verified at every read, written as a whole, and clear about what is wrong."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from generator.blobs import Store, Unusable, store_of
from generator.errors import CannotRead, CannotWrite
from tests.blobs.catalogue import SOURCE, TAR, blob

BLOB = blob(SOURCE)
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "a/b")


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"CYCLEFORGE_BLOBS": "/b", "XDG_CACHE_HOME": "/c", "HOME": "/h"}, "/b"),
        ({"CYCLEFORGE_BLOBS": "", "XDG_CACHE_HOME": "/c", "HOME": "/h"}, "/c/cycleforge/blobs"),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/h"}, "/h/.cache/cycleforge/blobs"),
        ({"HOME": "/h"}, "/h/.cache/cycleforge/blobs"),
    ],
)
def test_where_it_is(environment: dict[str, str], folder: str) -> None:
    assert store_of(environment).folder == Path(folder)


def test_a_relative_folder_is_below_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert store_of({"CYCLEFORGE_BLOBS": "here"}).folder == tmp_path / "here"


def test_a_user_without_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(CannotRead, match="no home folder") as caught:
        store_of({})
    assert caught.value.hint == "give a folder in CYCLEFORGE_BLOBS"


def test_kept_and_read(store: Store) -> None:
    assert store.look(BLOB).state == "missing"
    path = store.put(BLOB, TAR)
    assert path == store.folder / BLOB.file
    assert path.stat().st_mode & 0o777 == 0o644
    assert store.look(BLOB).state == "present"
    assert store.read(BLOB) == TAR
    assert [each.name for each in store.folder.iterdir()] == [BLOB.file]


def test_another_content_is_never_kept(store: Store) -> None:
    with pytest.raises(ValueError, match="not the pinned content"):
        store.put(BLOB, TAR + b"\0")
    assert store.look(BLOB).state == "missing"


Damage = Callable[[Path], None]


def damage_content(path: Path) -> None:
    path.write_bytes(TAR[:-1] + b"x")


def damage_length(path: Path) -> None:
    path.write_bytes(TAR[:100])


def damage_by_growth(path: Path) -> None:
    with path.open("ab") as stream:
        stream.truncate(2**40)  # sparse; reading it whole would take the machine's memory


def damage_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def damage_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def damage_loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (damage_content, "does not have the pinned sha256"),
        (damage_length, f"has 100 bytes instead of {len(TAR)}"),
        (damage_by_growth, f"has {2**40} bytes instead of {len(TAR)}"),
        (damage_folder, "is not a file"),
        (damage_pipe, "is not a file"),
        (damage_loop, "cannot be read: the path contains a loop of links"),
    ],
)
def test_damage_is_found_at_every_read(store: Store, damage: Damage, reason: str) -> None:
    damage(store.put(BLOB, TAR))
    assert (store.look(BLOB).state, store.look(BLOB).reason) == ("damaged", reason)
    with pytest.raises(Unusable) as caught:
        store.read(BLOB)
    assert caught.value.message == f"{store.path(BLOB)} {reason}"
    assert caught.value.hint == f"cycleforge blobs fetch {BLOB.file}"
    if damage is damage_folder:
        with pytest.raises(CannotWrite, match="a folder has this name"):
            store.put(BLOB, TAR)
        assert [each.name for each in store.folder.iterdir()] == [BLOB.file]
    else:
        store.put(BLOB, TAR)
        assert store.read(BLOB) == TAR


def test_no_permission_to_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.put(BLOB, TAR)

    def refuse(*_: object, **__: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    assert store.look(BLOB).reason == "cannot be read: no permission"


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EROFS, "the file system is read-only"),
        (errno.EACCES, "no permission"),
    ],
)
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_store_that_cannot_be_written(
    store: Store, monkeypatch: pytest.MonkeyPatch, code: int, reason: str, call: str
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    target: object = os if call == "fsync" else Path
    monkeypatch.setattr(target, call, refuse)
    with pytest.raises(CannotWrite) as caught:
        store.put(BLOB, TAR)
    assert caught.value.message == f"cannot keep blobs in {store.folder}: {reason}"
    assert "CYCLEFORGE_BLOBS" in str(caught.value.hint)
    assert list(store.folder.iterdir()) == []


def test_a_file_where_the_folder_belongs(store: Store) -> None:
    store.folder.parent.mkdir()
    store.folder.write_text("a file\n")
    with pytest.raises(CannotWrite, match="a part of the path is a file, not a folder"):
        store.put(BLOB, TAR)
    assert store.look(BLOB).state == "missing"


def test_a_killed_fetch_leaves_nothing_half_and_the_next_one_cleans_up(store: Store, tmp_path: Path) -> None:
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from generator.blobs import Store\n"
        "from tests.blobs.catalogue import SOURCE, TAR, blob\n"
        "os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)\n"
        "Store(Path(sys.argv[1])).put(blob(SOURCE), TAR)\n"
    )
    command = [sys.executable, "-c", program, str(store.folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    (left,) = store.folder.iterdir()
    assert left.name.startswith(".")
    assert store.look(BLOB).state == "missing"
    store.put(BLOB, TAR)
    assert left.exists(), "it may belong to a fetch that runs just now"
    hours_ago = time.time() - 2 * 3600
    os.utime(left, (hours_ago, hours_ago))
    store.put(BLOB, TAR)
    assert [each.name for each in store.folder.iterdir()] == [BLOB.file]
