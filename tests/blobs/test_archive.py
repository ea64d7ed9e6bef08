"""Source archives: the same bytes whatever made the archive, and nothing that leads out of its folder."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.blobs import archive as module
from generator.blobs.archive import BadArchive, normalised, packed
from tests.blobs.catalogue import COMMIT, FILES, SOURCE, TAR, archive

MEMBERS = SOURCE["members"]
LIMIT = len(TAR)
NAMES = st.text("abcXYZ019._+-", min_size=1, max_size=12).filter(lambda name: name.strip("."))
COMPRESSIONS: tuple[Callable[[bytes], bytes], ...] = (bytes, gzip.compress, bz2.compress, lzma.compress)


def tar_of(*entries: tuple[tarfile.TarInfo, bytes], format: int = tarfile.PAX_FORMAT) -> bytes:  # noqa: A002
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=format) as tar:
        for member, content in entries:
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def member(
    name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE, link: str = ""
) -> tuple[tarfile.TarInfo, bytes]:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, link
    entry.size = len(content) if kind in (tarfile.REGTYPE, tarfile.AREGTYPE) else 0
    return entry, content


WHOLE = tuple(member(f"top/{name}", content) for name, content in FILES.items())


# ---------------------------------------------------------------- the same bytes


@pytest.mark.parametrize("compress", COMPRESSIONS)
@pytest.mark.parametrize("top", ["", "./", "tool-1.0/", f"tool-{COMMIT}/"])
def test_what_a_forge_gives_becomes_the_pinned_bytes(compress: Callable[[bytes], bytes], top: str) -> None:
    assert normalised(archive(top=top, compress=compress), MEMBERS, LIMIT) == TAR


@given(
    files=st.dictionaries(
        st.builds("/".join, st.lists(NAMES, min_size=1, max_size=3)), st.binary(max_size=1500), min_size=1, max_size=8
    ),
    data=st.data(),
)
@settings(max_examples=60, deadline=None)
def test_only_names_and_contents_count(files: dict[str, bytes], data: st.DataObject) -> None:
    """Order, times, owners, modes, folders, links beside the wanted members, the format of the archive: none counts."""
    # A name cannot be a file and a folder.
    files = {name: text for name, text in files.items() if not any(other.startswith(f"{name}/") for other in files)}
    entries = []
    for name in data.draw(st.permutations(sorted(files))):
        entry, content = member(f"top/{name}", files[name])
        entry.mtime, entry.mode = data.draw(st.integers(0, 2**32)), data.draw(st.integers(0, 0o7777))
        entry.uid, entry.uname = data.draw(st.integers(0, 2**20)), "somebody"
        entries.append((entry, content))
    noise = [
        member("top/link@", kind=tarfile.SYMTYPE, link="../../etc/passwd"),
        member("top/dev@", kind=tarfile.CHRTYPE),
        member("top", kind=tarfile.DIRTYPE),
    ]
    for each in noise:
        entries.insert(data.draw(st.integers(0, len(entries))), each)
    kind = data.draw(st.sampled_from([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT]))
    limit = sum(len(text) for text in files.values())
    result = normalised(tar_of(*entries, format=kind), sorted(files), limit)
    assert result == packed(files)
    with tarfile.open(fileobj=io.BytesIO(result)) as tar:
        found = tar.getmembers()
        assert [each.name for each in found] == sorted(files)
        for one in found:
            stream = tar.extractfile(one)
            assert stream is not None
            assert stream.read() == files[one.name]
            assert one.mode == (0o755 if files[one.name].startswith(b"#!") else 0o644)
            assert (one.mtime, one.uid, one.gid, one.uname, one.gname) == (0, 0, 0, "", "")


def test_the_bytes_are_those_of_gnu_tar(tmp_path: Path) -> None:
    """Anybody can make a blob without us: the command is beside `packed`."""
    for name, content in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o755 if content.startswith(b"#!") else 0o644)
    root = ["--owner=0", "--group=0", "--numeric-owner"]
    command = [
        "tar",
        "--format=ustar",
        "--sort=name",
        "--mtime=@0",
        *root,
        "--blocking-factor=1",
        "-cf",
        "-",
        *sorted(FILES),
    ]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    assert made.stdout == TAR


def test_globs_stop_at_a_slash() -> None:
    files = {"a/x.nhc": b"1", "a/b/x.nhc": b"2", "x.nhc": b"3", "a/x.sh": b"4", "b": b"5"}
    content = tar_of(*(member(f"top/{name}", text) for name, text in files.items()))
    assert normalised(content, ["a/*.nhc"], 100) == packed({"a/x.nhc": b"1"})
    assert normalised(content, ["*", "*/*/x.nhc"], 100) == packed({"x.nhc": b"3", "b": b"5", "a/b/x.nhc": b"2"})


def test_names_with_other_letters_are_left_alone() -> None:
    """Forges hold them; a blob takes none."""
    odd = (member("top/tést", b"x"), member("top/line\nend", b"x"), member("top/back\\slash", b"x"))
    assert normalised(tar_of(*odd, *WHOLE), MEMBERS, LIMIT) == TAR


# ---------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ((member("top/../../etc/cron.d/x", b"x"), *WHOLE), "has a member outside its folder: 'top/../../etc/cron.d/x'"),
        ((member("/etc/passwd", b"x"), *WHOLE), "has a member outside its folder: '/etc/passwd'"),
        ((member("..", b"x"), *WHOLE), "has a member outside its folder"),
        ((*WHOLE[1:], member("top/LICENSE", kind=tarfile.SYMTYPE, link="/etc/shadow")), "no ordinary file at LICENSE"),
        ((*WHOLE[1:], member("top/LICENSE", kind=tarfile.LNKTYPE, link="top/tool")), "no ordinary file at LICENSE"),
        ((*WHOLE[1:], member("top/LICENSE", kind=tarfile.CHRTYPE)), "no ordinary file at LICENSE"),
        ((*WHOLE[1:], member("top/LICENSE", kind=tarfile.BLKTYPE)), "no ordinary file at LICENSE"),
        ((*WHOLE[1:], member("top/LICENSE", kind=tarfile.FIFOTYPE)), "no ordinary file at LICENSE"),
        ((*WHOLE[1:], member("top/LICENSE", kind=tarfile.DIRTYPE)), "has no member LICENSE"),
        ((*WHOLE, member("top/tool", b"#!/bin/sh\nother\n")), "two members named tool"),
        ((*WHOLE, member("top/./tool", b"#!/bin/sh\nother\n")), "two members named tool"),
        (WHOLE[1:], "has no member LICENSE"),
        ((), "has no member LICENSE"),
        ((*WHOLE, member("top/scripts/huge.part", bytes(LIMIT))), f"more than the expected {LIMIT} bytes"),
        ((*WHOLE, member("top/scripts/" + "x" * 120 + ".part", b"x")), "more than 100 bytes"),
    ],
)  # fmt: skip
def test_hostile_and_wrong_archives(entries: tuple[tuple[tarfile.TarInfo, bytes], ...], reason: str) -> None:
    with pytest.raises(BadArchive) as caught:
        normalised(gzip.compress(tar_of(*entries)), MEMBERS, LIMIT)
    assert reason in str(caught.value)


def test_a_size_that_lies(tmp_path: Path) -> None:
    """The header promises a terabyte, the file ends before."""
    entry = tarfile.TarInfo("top/LICENSE")
    entry.size = 2**40
    with pytest.raises(BadArchive, match="cannot be read: unexpected end of data"):
        normalised(entry.tobuf() + bytes(1024), MEMBERS, LIMIT)
    entry.size = 600
    with pytest.raises(BadArchive, match=r"cannot be read|cut off"):
        normalised(entry.tobuf() + bytes(512), MEMBERS, LIMIT)


def test_sparse_members(tmp_path: Path) -> None:
    """A few bytes that become many."""
    (tmp_path / "top").mkdir()
    with (tmp_path / "top/LICENSE").open("wb") as stream:
        stream.truncate(2**20)
    command = ["tar", "--sparse", "-C", str(tmp_path), "-cf", "-", "top"]
    for kind in ("gnu", "pax"):
        made = subprocess.run([*command, f"--format={kind}"], capture_output=True, check=True).stdout
        assert len(made) < 2**15
        with pytest.raises(BadArchive, match="no ordinary file at LICENSE"):
            normalised(made, ["LICENSE"], 2**21)


def test_bombs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PLAIN_BYTES", 2**20)
    for compress in COMPRESSIONS[1:]:
        with pytest.raises(BadArchive, match="unpacks to more than 1048576 bytes"):
            normalised(compress(bytes(2**21)), MEMBERS, LIMIT)
    monkeypatch.setattr(module, "MAX_MEMBERS", 3)
    with pytest.raises(BadArchive, match="more than 3 members"):
        normalised(tar_of(*WHOLE), MEMBERS, LIMIT)
    monkeypatch.setattr(module, "MAX_ARCHIVE_BYTES", 2**10)
    with pytest.raises(BadArchive, match="more than 1024 bytes"):
        normalised(bytes(2**11), MEMBERS, LIMIT)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"<!DOCTYPE html><title>Sign in</title>", "is a web page"),
        (b"\n <html>", "is a web page"),
        (b"no archive at all" * 99, "cannot be read"),
        (b"\x1f\x8bno gzip", "cannot be read"),
        (b"BZhno bzip2", "cannot be read"),
        (b"\xfd7zXZ\x00no xz", "cannot be read"),
        (b"", "cannot be read"),
    ],
)
def test_what_is_no_archive(content: bytes, reason: str) -> None:
    with pytest.raises(BadArchive, match=reason):
        normalised(content, MEMBERS, LIMIT)


@given(cut=st.integers(0, 1000), flip=st.integers(0, 10**6), bit=st.integers(0, 7), is_cut=st.booleans())
@settings(max_examples=150, deadline=None)
def test_damage_is_refused_or_changes_the_bytes(cut: int, flip: int, bit: int, is_cut: bool) -> None:
    """Never another exception: what comes from the network reaches this first."""
    whole = tar_of(*WHOLE)
    damaged = bytearray(whole[: len(whole) * cut // 1000] if is_cut else whole)
    if damaged:
        damaged[flip % len(damaged)] ^= 1 << bit
    try:
        result = normalised(bytes(damaged), MEMBERS, LIMIT)
    except BadArchive:
        return
    # Names, contents and nothing else: what is the same may have been damaged in a time or a mode.
    with tarfile.open(fileobj=io.BytesIO(result)) as tar:
        assert all(not name.startswith(("/", "..")) for name in tar.getnames())
