"""What a host sends as a tar: nothing leaves the folder, with every Python that we allow, and with a real tar."""

from __future__ import annotations

import errno
import io
import json
import os
import platform
import subprocess
from pathlib import Path

import pytest

from generator.cyclecloud import copying
from generator.cyclecloud.unpack import CutOff, Limits, Refused, unpack
from tests.cyclecloud.hostile_tars import END, FILE, HOSTILE, PARTLY, TOP, member, outcome, outcomes

DEBIAN = Path("/usr/bin/python3")
ROOT = Path(__file__).parents[2]


def outside(folder: Path) -> set[str]:
    """What lies beside the folders into which something was unpacked."""
    return {path.name for path in folder.iterdir() if not path.name.isdigit()}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_is_refused(name: str, tmp_path: Path) -> None:
    content, reason = HOSTILE[name]
    (tmp_path / "outer").mkdir()
    victim = tmp_path / "outer" / "victim"
    victim.write_text("mine")
    found = outcome(content, tmp_path / "outer" / "0")
    assert str(found["said"]).startswith(f"refused: {reason}")
    assert found["odd"] == []
    assert victim.read_text() == "mine"
    assert outside(tmp_path / "outer") == {"victim"}
    assert outside(tmp_path) == {"outer"}
    assert not Path("/tmp/outside").exists()


@pytest.mark.parametrize("name", PARTLY)
def test_what_is_no_file_or_folder_is_left_behind_and_named(name: str, tmp_path: Path) -> None:
    content, lines = PARTLY[name]
    found = outcome(content, tmp_path / "0")
    assert found["said"] == lines
    assert found["odd"] == []


def test_every_cut_is_noticed(tmp_path: Path) -> None:
    whole = TOP + member(b"content/a", b"x" * 700) + member(b"content/b", b"y") + END
    for number, length in enumerate(range(0, len(whole), 256)):
        assert outcome(whole[:length], tmp_path / str(number))["said"] == "cut off", length
    assert outcome(whole, tmp_path / "whole")["files"] == ["content/a", "content/b"]


def test_debians_own_python_does_the_same(tmp_path: Path) -> None:
    release = platform.freedesktop_os_release() if Path("/etc/os-release").exists() else {}
    if (release.get("ID"), release.get("VERSION_ID")) != ("debian", "12"):
        pytest.skip("Debian 12's own Python 3.11.2 is not on this machine")
    for each in ("there", "here"):
        (tmp_path / each).mkdir()
    line = [str(DEBIAN), "-B", "-m", "tests.cyclecloud.hostile_tars", str(tmp_path / "there")]
    environment = {"PATH": os.defpath, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["python"].startswith("3.11.2"), "not the Python of Debian 12"
    assert said["outcomes"] == outcomes(tmp_path / "here")
    assert len(said["outcomes"]) == len(HOSTILE) + len(PARTLY)


# ------------------------------------------------------------ a real tar


def sent(path: Path) -> bytes:
    """What the command of `give` sends."""
    done = subprocess.run(["sh", "-c", copying.give(str(path))], capture_output=True, check=True)
    return done.stdout


def test_all_that_a_run_may_leave_comes_back(tmp_path: Path) -> None:
    there = tmp_path / "there"
    (there / "empty").mkdir(parents=True)
    deep = there / Path(*("long-name-of-a-folder" for _ in range(12)))
    deep.mkdir(parents=True)
    (deep / ("f" * 250)).write_text("deep")
    (there / "twice").write_bytes(os.urandom(100_000))
    (there / "again").hardlink_to(there / "twice")
    (there / "run.sh").write_text("#!/bin/sh\n")
    (there / "run.sh").chmod(0o4755)
    (there / "ünï: (1)").write_text("")
    os.utime(there / "run.sh", (1_000_000_000, 1_000_000_000))
    target = tmp_path / "target"
    target.mkdir()
    assert copying.read(io.BytesIO(sent(there)), target) == []
    names = sorted(str(path.relative_to(there)) for path in there.rglob("*"))
    assert sorted(str(path.relative_to(target / "content")) for path in (target / "content").rglob("*")) == names
    assert (target / "content" / "again").read_bytes() == (there / "twice").read_bytes()
    got = (target / "content" / "run.sh").stat()
    assert (got.st_mode & 0o7000, bool(got.st_mode & 0o100), got.st_mtime) == (0, True, 1_000_000_000)


def back(there: Path, target: Path) -> list[str]:
    """What a real tar sends of it, unpacked."""
    target.mkdir()
    return copying.read(io.BytesIO(sent(there)), target)


@pytest.mark.parametrize("time_s", [-5, -(2**40), 2**40])
def test_a_file_of_an_odd_time_comes_back(time_s: int, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    (there / "old").write_text("x")
    os.utime(there / "old", (time_s, time_s))
    assert back(there, tmp_path / "target") == []
    assert (tmp_path / "target/content/old").stat().st_mtime == min(max(time_s, 0), 2**32)


def test_long_names_do_not_count_as_files(tmp_path: Path) -> None:
    deep = tmp_path / "there" / ("a" * 120)
    deep.mkdir(parents=True)
    for number in range(50):
        (deep / f"{number}").write_text("")
        (deep / f"link-{number}").symlink_to("b" * 150)
    content = sent(tmp_path / "there")
    for most in (101, 102):
        (folder := tmp_path / str(most)).mkdir()
        if most == 101:
            with pytest.raises(Refused, match="more than 101 files"):
                unpack(io.BytesIO(content), folder, "content", Limits(members=most))
        else:
            (line,) = unpack(io.BytesIO(content), folder, "content", Limits(members=most))
            assert line.startswith("left behind (a link): ")
    assert len(list((tmp_path / "102/content" / deep.name).iterdir())) == 50


def test_what_lies_too_deep_or_has_a_long_path_is_left_behind_and_named(tmp_path: Path) -> None:
    there = tmp_path / "there"
    (there / Path(*"d" * 40)).mkdir(parents=True)
    (there / Path(*"d" * 31) / "file").write_text("too deep")
    (there / Path(*"d" * 30) / "file").write_text("x")
    long = Path(*("l" * 240 for _ in range(9)))
    (there / long).mkdir(parents=True)
    (there / long / "file").write_text("x")
    (there / "after").write_text("good")
    left = back(there, tmp_path / "target")
    assert sorted(line.partition(":")[0] for line in left) == [
        "left behind (a path of more than 2048 bytes)", "left behind (more than 32 folders in each other)",
    ]  # fmt: skip
    assert "/".join("d" * 32) in next(line for line in left if "folders" in line)
    content = tmp_path / "target/content"
    assert (content / "after").read_text() == "good"
    assert sorted(path.name for path in content.rglob("file")) == ["file"]
    assert (content / Path(*"d" * 30) / "file").read_text() == "x"


def test_names_that_differ_in_case_where_the_file_system_takes_them_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As macOS and Windows: what is there in another case is there."""
    there = tmp_path / "there"
    for name in ("a", "A", "sub/x", "SUB/y"):
        (there / name).parent.mkdir(parents=True, exist_ok=True)
        (there / name).write_text(name)
    content = sent(there)
    (tmp_path / "target").mkdir()
    mkdir, opened = Path.mkdir, os.open

    def refuse(path: Path) -> None:
        if path.name.lower() in {each.name.lower() for each in path.parent.iterdir()}:
            raise FileExistsError(errno.EEXIST, "File exists", str(path))

    def make(self: Path, mode: int) -> None:
        refuse(self)
        mkdir(self, mode)

    def create(path: Path, flags: int, mode: int) -> int:
        refuse(path)
        return opened(path, flags, mode)

    with monkeypatch.context() as patch:
        patch.setattr("generator.cyclecloud.unpack.Path.mkdir", make)
        patch.setattr("generator.cyclecloud.unpack.os.open", create)
        left = copying.read(io.BytesIO(content), tmp_path / "target")
    got = sorted(str(path.relative_to(tmp_path / "target/content")) for path in (tmp_path / "target").rglob("*/*"))
    kept = {name for name in ("a", "A", "sub", "sub/x", "SUB", "SUB/y") if name in got}
    assert kept == set(got)
    assert len(got) == 3
    assert {line.partition(":")[0] for line in left} == {
        "left behind (this file system takes its name for that of another file)",
        "left behind (its folder was left behind)",
    }
    named = ", ".join(line.partition(": ")[2] for line in left).split(", ")
    assert sorted([*named, *got]) == ["A", "SUB", "SUB/y", "a", "sub", "sub/x"]


def test_a_path_that_is_too_long_here_is_left_behind(tmp_path: Path) -> None:
    there = tmp_path / "there"
    long = Path(*("l" * 200 for _ in range(9)))
    (there / long).mkdir(parents=True)
    (there / "after").write_text("good")
    target = tmp_path
    while len(str(target)) < 2500:
        target /= "t" * 200
    target.mkdir(parents=True)
    (line, _) = copying.read(io.BytesIO(sent(there)), target)
    assert line.startswith("left behind (its path is too long for this machine): lll")
    assert (target / "content/after").read_text() == "good"


def test_a_real_tar_with_links_and_pipes(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    (there / "passwd").symlink_to("/etc/passwd")
    (there / "up").symlink_to("../" * 40 + "long" * 40)
    os.mkfifo(there / "pipe")
    (there / "good").write_text("x")
    target = tmp_path / "target"
    target.mkdir()
    left = copying.read(io.BytesIO(sent(there)), target)
    assert {line.partition(":")[0] for line in left} == {"left behind (a link)", "left behind (a pipe)"}
    assert [path.name for path in (target / "content").iterdir()] == ["good"]


@pytest.mark.parametrize("form", ["gnu", "ustar", "pax", "v7", "oldgnu"])
def test_every_format_of_a_real_tar_is_read_or_refused(form: str, tmp_path: Path) -> None:
    (tmp_path / "content").mkdir()
    (tmp_path / "content" / "a").write_text("x")
    line = ["tar", "-c", f"--format={form}", "-f", "-", "-C", str(tmp_path), "content"]
    done = subprocess.run(line, capture_output=True, check=True)
    (tmp_path / "target").mkdir()
    if form in ("pax", "v7"):
        with pytest.raises(Refused):
            unpack(io.BytesIO(done.stdout), tmp_path / "target", "content")
    else:
        assert unpack(io.BytesIO(done.stdout), tmp_path / "target", "content") == []
        assert (tmp_path / "target" / "content" / "a").read_text() == "x"


def test_a_size_that_gnu_tar_writes_as_a_binary_number(tmp_path: Path) -> None:
    archive = TOP + member(b"content/huge", size=b"\x80" + (9 * 1024**3).to_bytes(11, "big"))
    (tmp_path / "0").mkdir()
    with pytest.raises(CutOff):
        unpack(io.BytesIO(archive), tmp_path / "0", "content")
    assert list((tmp_path / "0" / "content").iterdir()) == [], "it is too large to be taken"


def test_an_empty_archive_is_what_a_tar_leaves_that_failed(tmp_path: Path) -> None:
    with pytest.raises(CutOff):
        unpack(io.BytesIO(END), tmp_path, "content")


# ------------------------------------------------------------ its place


def arrived(folder: Path, content: bytes) -> Path:
    folder.mkdir()
    copying.read(io.BytesIO(content), folder)
    return folder


def test_a_link_in_the_target_is_never_written_through(tmp_path: Path) -> None:
    content = TOP + FILE + member(b"content/sub", kind=b"5") + member(b"content/sub/evil", b"x") + END
    outer, local = tmp_path / "outer", tmp_path / "local"
    outer.mkdir()
    local.mkdir()
    (local / "sub").symlink_to(outer)
    with pytest.raises(OSError, match="a link or file is where a folder has to go"):
        copying.place(arrived(tmp_path / "new", content), local)
    assert list(outer.iterdir()) == []
    assert [path.name for path in local.iterdir()] == ["sub"], "half of it was placed"


def test_a_link_in_the_place_of_a_file_is_replaced(tmp_path: Path) -> None:
    outer, local = tmp_path / "outer", tmp_path / "local"
    outer.write_text("mine")
    local.mkdir()
    (local / "good").symlink_to(outer)
    copying.place(arrived(tmp_path / "new", TOP + FILE + END), local)
    assert outer.read_text() == "mine"
    assert (local / "good").read_text() == "x"


def test_a_target_that_its_owner_made_a_link(tmp_path: Path) -> None:
    (tmp_path / "big-disk").mkdir()
    (tmp_path / "local").symlink_to(tmp_path / "big-disk")
    copying.place(arrived(tmp_path / "new", TOP + FILE + END), tmp_path / "local")
    assert (tmp_path / "big-disk" / "good").read_text() == "x"
