"""One file as a whole or not at all."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from generator.disk import file
from generator.disk.reasons import reason, refusing
from generator.errors import CannotWrite

ROOT = Path(__file__).resolve().parents[2]


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_file_keeps_its_mode_and_a_new_one_follows_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "x"
    before = os.umask(0o027)
    try:
        file.write(path, b"a")
        assert mode(path) == 0o640
        path.chmod(0o600)
        file.write(path, b"b")
        assert (path.read_bytes(), mode(path)) == (b"b", 0o600)
        file.write(path, b"c", mode=0o755)
        assert mode(path) == 0o755
    finally:
        os.umask(before)


def test_a_link_is_replaced_and_its_target_stays(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("kept")
    (tmp_path / "x").symlink_to("target")
    file.write(tmp_path / "x", b"new")
    assert not (tmp_path / "x").is_symlink()
    assert (tmp_path / "target").read_text() == "kept"


def test_a_taken_name_is_refused_where_nothing_may_be_replaced(tmp_path: Path) -> None:
    file.write(tmp_path / "x", b"first", replace=False)
    with pytest.raises(FileExistsError):
        file.write(tmp_path / "x", b"second", replace=False)
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("x", b"first")]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failure_leaves_the_old_file_and_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(tmp_path / ".x.tmp-00000000"))

    monkeypatch.setattr(os, call, full)
    with pytest.raises(OSError, match="No space left") as caught:
        file.write(path, b"new")
    assert caught.value.filename == str(path)
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("x", b"old")]


def test_what_a_kill_left_is_swept_when_it_is_old(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from generator.disk import file\n"
        "os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)\n"
        "file.write(Path(sys.argv[1]), b'new')\n"
    )
    path = tmp_path / "x"
    path.write_bytes(b"old")
    (tmp_path / ".x.tmp-of-mine").touch()
    done = subprocess.run([sys.executable, "-c", program, str(path)], cwd=ROOT, check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert path.read_bytes() == b"old"
    (left,) = tmp_path.glob(".x.tmp-????????")
    file.write(path, b"newer")
    assert left.exists(), "it may belong to a run that goes on"
    hours_ago = time.time() - 2 * 3600
    os.utime(left, (hours_ago, hours_ago))
    file.write(path, b"newest")
    assert sorted(each.name for each in tmp_path.iterdir()) == [".x.tmp-of-mine", "x"]


def test_a_created_file_has_exactly_its_mode(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        with file.created(tmp_path / "x", 0o755) as stream:
            stream.write(b"x")
    finally:
        os.umask(before)
    assert mode(tmp_path / "x") == 0o755
    with pytest.raises(FileExistsError), file.created(tmp_path / "x", 0o644):
        pass


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.ENOSPC, "x"), "cannot write /a/b: the disk is full; what was there is unchanged"),
        (OSError(errno.EIO, "Bad Thing", "/a/b"), "cannot write /a/b: bad thing; what was there is unchanged"),
        (OSError(errno.EACCES, "x", b"/a/c"), "cannot write /a/b: no permission (/a/c); what was there is unchanged"),
        (OSError("?"), "cannot write /a/b: oserror; what was there is unchanged"),
    ],
)
def test_the_reason_in_words(error: OSError, message: str) -> None:
    with pytest.raises(CannotWrite) as caught, refusing("cannot write /a/b", "go elsewhere"):
        raise error
    assert (caught.value.message, caught.value.hint) == (message, "go elsewhere")
    assert reason(error) in message
