"""Writing a deployment folder: what changes, what stays, what is refused."""

from __future__ import annotations

import errno
import io
import fcntl
import json
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from generator.disk import swap as folder_swap
from generator.files.manifest import MANIFEST, manifest_file
from generator.output import folder as output
from generator.errors import CannotWrite
from generator.files.file import Files, text
from tests.output.folders import assert_whole, files, snapshot


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that version a was written to."""
    path = tmp_path / "out" / "lab"
    output.write(path, files("a"))
    return path


def leftovers(folder: Path) -> list[str]:
    """Names beside the folder."""
    return sorted(entry.name for entry in folder.parent.iterdir() if entry != folder)


def with_manifest(made: Files) -> Files:
    """The files with a manifest of their own."""
    made = {path: file for path, file in made.items() if path != MANIFEST}
    return made | {MANIFEST: manifest_file(made, "1")}


def test_first_build(tmp_path: Path) -> None:
    """Parents are made; everything is added."""
    folder = tmp_path / "a" / "b" / "lab"
    changes = output.write(folder, files("a"))
    assert assert_whole(folder, "a") == "a"
    assert changes.is_new
    assert changes.any
    assert changes.added == tuple(sorted(map(str, files("a"))))
    assert (changes.changed, changes.removed, changes.unchanged, changes.kept, changes.foreign) == ((), (), (), (), ())
    assert leftovers(folder) == []


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    """Someone made it for us."""
    (tmp_path / "lab").mkdir()
    assert output.write(tmp_path / "lab", files("a")).is_new
    assert_whole(tmp_path / "lab", "a")
    assert leftovers(tmp_path / "lab") == []


def test_nothing_changes_nothing_is_touched(folder: Path) -> None:
    """Not even times."""
    before = snapshot(folder)
    changes = output.write(folder, files("a"))
    assert not changes.any
    assert changes.unchanged == tuple(sorted(map(str, files("a"))))
    assert snapshot(folder) == before


def test_second_version(folder: Path) -> None:
    """Added, changed, removed, unchanged; what is unchanged keeps its time and file."""
    before = snapshot(folder)
    changes = output.write(folder, files("b", count=6))
    assert assert_whole(folder, "b") == "b"
    assert changes.added == ("d2/f5.txt", "only-b/file")
    assert changes.removed == ("only-a/file",)
    assert changes.unchanged == ("same.txt",)
    assert "run.sh" in changes.changed
    assert not (folder / "only-a").exists()
    assert snapshot(folder)["same.txt"] == before["same.txt"]
    assert leftovers(folder) == []


def test_check_writes_nothing(folder: Path) -> None:
    """The same answer as a write, before it."""
    before = snapshot(folder)
    expected = output.check(folder, files("b"))
    assert snapshot(folder) == before
    assert output.write(folder, files("b")) == expected
    assert not output.check(folder, files("b")).any
    missing = output.check(folder.parent / "missing", files("a"))
    assert missing.is_new
    assert not (folder.parent / "missing").exists()


def test_modes_do_not_depend_on_the_umask(tmp_path: Path) -> None:
    """0644, 0755 for scripts and folders."""
    previous = os.umask(0o077)
    try:
        output.write(tmp_path / "lab", files("a"))
    finally:
        os.umask(previous)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "lab").rglob("*")}
    assert (modes["run.sh"], modes["same.txt"], modes["d0"]) == (0o755, 0o644, 0o755)
    assert stat.S_IMODE((tmp_path / "lab").stat().st_mode) == 0o755


def test_a_changed_mode_is_put_right(folder: Path) -> None:
    """A script that lost its bit does not run."""
    (folder / "run.sh").chmod(0o600)
    assert output.write(folder, files("a")).changed == ("run.sh",)
    assert stat.S_IMODE((folder / "run.sh").stat().st_mode) == 0o755


def test_the_folder_keeps_its_own_mode(folder: Path) -> None:
    """A user who closed it to others meant it."""
    folder.chmod(0o700)
    output.write(folder, files("b"))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


# ---------------------------------------------------------------- files of the user


def test_added_files_are_carried_over(folder: Path) -> None:
    """Files, links, folders, empty folders; with their mode, time and content."""
    (folder / ".envrc").write_text("export PASSWORD=1\n")
    (folder / ".envrc").chmod(0o600)
    (folder / "d0" / "notes").write_text("mine")
    (folder / "only-a" / "kept").write_text("in a folder that goes otherwise")
    (folder / "keys").mkdir(mode=0o700)
    (folder / "keys" / "id").write_text("key")
    (folder / "empty" / "deeper").mkdir(parents=True)
    (folder / "link").symlink_to("/nowhere/at/all")
    before = snapshot(folder)
    changes = output.write(folder, files("b"))
    after = snapshot(folder)
    assert changes.foreign == (".envrc", "d0/notes", "keys/id", "link", "only-a/kept")
    assert changes.kept == ()
    for path in (".envrc", "d0/notes", "keys/id", "link", "only-a/kept"):
        assert after[path] == before[path]
    assert stat.S_IMODE((folder / "keys").stat().st_mode) == 0o700
    assert (folder / "empty" / "deeper").is_dir()
    assert (folder / "link").readlink() == Path("/nowhere/at/all")
    assert not output.write(folder, files("b")).any


def test_edited_files_are_kept_beside(folder: Path) -> None:
    """Ours is put back; the user's version is not lost, however often."""
    (folder / "same.txt").write_text("edited once")
    first = output.write(folder, files("a"))
    assert first.kept == (("same.txt", "same.txt.orig"),)
    assert first.changed == ("same.txt",)
    (folder / "same.txt").write_text("edited twice")
    second = output.write(folder, files("b"))
    assert second.kept == (("same.txt", "same.txt.orig.2"),)
    assert (folder / "same.txt.orig").read_text() == "edited once"
    assert (folder / "same.txt.orig.2").read_text() == "edited twice"
    assert (folder / "same.txt").read_text() == "the same in every version\n"


def test_an_edited_file_that_no_longer_belongs_is_kept(folder: Path) -> None:
    """It is removed under its name."""
    (folder / "only-a" / "file").write_text("edited")
    changes = output.write(folder, files("b"))
    assert changes.removed == ("only-a/file",)
    assert changes.kept == (("only-a/file", "only-a/file.orig"),)
    assert (folder / "only-a" / "file.orig").read_text() == "edited"


def test_an_edit_that_equals_the_new_content_is_no_edit(folder: Path) -> None:
    """Nothing to keep."""
    (folder / "run.sh").write_bytes(files("b")[PurePosixPath("run.sh")].content)
    assert output.write(folder, files("b")).kept == ()


def test_deleted_files_come_back(folder: Path) -> None:
    """And count as added."""
    (folder / "same.txt").unlink()
    assert output.write(folder, files("a")).added == ("same.txt",)
    assert_whole(folder, "a")


def test_users_files_in_our_way(folder: Path) -> None:
    """A file with the name of a new file or folder, a folder with the name of a new file, a link for a folder."""
    (folder / "only-b").write_text("a file where a folder comes")
    (folder / "new.txt").mkdir()
    (folder / "new.txt" / "inside").write_text("a folder where a file comes")
    (folder / "other.txt").write_text("not ours")
    new = with_manifest(files("b") | {PurePosixPath("new.txt"): text("new"), PurePosixPath("other.txt"): text("new")})
    changes = output.write(folder, new)
    assert dict(changes.kept) == {
        "only-b": "only-b.orig",
        "new.txt/inside": "new.txt.orig/inside",
        "other.txt": "other.txt.orig",
    }
    assert (folder / "only-b.orig").read_text() == "a file where a folder comes"
    assert (folder / "new.txt.orig" / "inside").read_text() == "a folder where a file comes"
    assert (folder / "other.txt.orig").read_text() == "not ours"
    assert (folder / "new.txt").read_text() == "new\n"


def test_links_are_not_followed(folder: Path, tmp_path: Path) -> None:
    """A folder or file of ours that someone replaced by a link: what it points to is not touched."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f1.txt").write_text("precious")
    for path in (folder / "d1").iterdir():
        path.unlink()
    (folder / "d1").rmdir()
    (folder / "d1").symlink_to(outside)
    (folder / "same.txt").unlink()
    (folder / "same.txt").symlink_to(outside / "f1.txt")
    changes = output.write(folder, files("b"))
    assert (outside / "f1.txt").read_text() == "precious"
    assert [entry.name for entry in outside.iterdir()] == ["f1.txt"]
    assert not (folder / "d1").is_symlink()
    assert not (folder / "same.txt").is_symlink()
    assert (folder / "d1.orig").is_symlink()
    assert dict(changes.kept)["d1"] == "d1.orig"


def test_a_file_that_appears_while_we_write_is_brought_along(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between our look at the folder and the swap."""
    swap = folder_swap.swap

    def late(new: Path, old: Path) -> Path | None:
        (old / "late.txt").write_text("just in time")
        return swap(new, old)

    monkeypatch.setattr(folder_swap, "swap", late)
    output.write(folder, files("b"))
    assert (folder / "late.txt").read_text() == "just in time"
    assert leftovers(folder) == []


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    "manifest",
    [None, "", "{", "[]", '{"generator": "other", "files": {}}', '{"generator": "cycleforge"}', "[" * 5000],
)
def test_a_folder_of_somebody_else_is_refused(tmp_path: Path, manifest: str | None) -> None:
    """No manifest, a broken one, or one of another program."""
    folder = tmp_path / "lab"
    folder.mkdir()
    (folder / "thesis.tex").write_text("years of work")
    if manifest is not None:
        (folder / "manifest.json").write_text(manifest)
    before = snapshot(folder)
    for attempt in (output.write, output.check):
        with pytest.raises(CannotWrite, match=r"was not made by CycleForge.*thesis\.tex") as caught:
            attempt(folder, files("a"))
        assert caught.value.hint == "choose another --out, or move that folder away"
    assert snapshot(folder) == before
    assert leftovers(folder) == []


@pytest.mark.parametrize("kind", ["file", "link", "dangling link"])
def test_what_is_no_folder_is_refused(tmp_path: Path, kind: str) -> None:
    """And stays."""
    target = tmp_path / "target"
    if kind == "link":
        target.mkdir()
    path = tmp_path / "lab"
    if kind == "file":
        path.write_text("text")
    else:
        path.symlink_to(target)
    with pytest.raises(CannotWrite, match=r"is a (file|link), not a folder"):
        output.write(path, files("a"))
    assert os.path.lexists(path)
    assert not target.exists() or list(target.iterdir()) == []


def test_a_parent_that_is_a_file(tmp_path: Path) -> None:
    """A sentence, no traceback."""
    (tmp_path / "out").write_text("")
    with pytest.raises(CannotWrite, match="cannot write"):
        output.write(tmp_path / "out" / "lab", files("a"))


@contextmanager
def as_nobody() -> Iterator[None]:
    """Without the rights of root, which ignores modes."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_no_permission(tmp_path: Path) -> None:
    """Neither in the parent nor for the folder."""
    folder = tmp_path / "closed" / "lab"
    output.write(folder, files("a"))
    for path in (tmp_path.parent.parent, tmp_path.parent, tmp_path):
        path.chmod(0o755)
    folder.parent.chmod(0o555)
    before = snapshot(folder)
    try:
        with as_nobody(), pytest.raises(CannotWrite, match="no permission"):
            output.write(folder, files("b"))
    finally:
        folder.parent.chmod(0o755)
    assert snapshot(folder) == before


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EROFS, "the file system is read-only"),
        (errno.EIO, "input/output error"),
    ],
)
@pytest.mark.parametrize("call", ["write", "fsync", "mkdir", "rename", "link"])
def test_errors_of_the_system_leave_the_old_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch, code: int, words: str, call: str
) -> None:
    """Wherever the disk is full: while files are written, brought to disk, or swapped."""
    before = snapshot(folder)
    calls = 0

    def fail(*_: object, **__: object) -> None:
        nonlocal calls
        calls += 1
        raise OSError(code, os.strerror(code), "somewhere")

    class Failing(io.FileIO):
        def write(self, *_: object) -> int:
            fail()
            return 0

    if call == "rename":
        monkeypatch.setattr(folder_swap, "_exchange", fail)
    elif call == "write":
        monkeypatch.setattr(os, "fdopen", lambda handle, *_: Failing(handle, "w"))
    else:
        monkeypatch.setattr(os, call, fail)
    if call == "link":
        output.write(folder, files("b"))  # a copy serves as well
        assert_whole(folder, "b")
    else:
        with pytest.raises(CannotWrite, match=words):
            output.write(folder, files("b"))
        assert snapshot(folder) == before
    assert calls
    assert leftovers(folder) == []


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "."])
def test_paths_that_leave_the_folder_are_a_bug(tmp_path: Path, path: str) -> None:
    """Not the user's mistake."""
    with pytest.raises(ValueError, match="not a path of a deployment folder"):
        output.write(tmp_path / "lab", files("a") | {PurePosixPath(path): text("x")})


def test_a_manifest_is_required(tmp_path: Path) -> None:
    """Without it, the next build would refuse the folder."""
    made = files("a")
    del made[MANIFEST]
    with pytest.raises(ValueError, match=r"needs manifest\.json"):
        output.write(tmp_path / "lab", made)


def test_paths_in_a_manifest_delete_nothing(folder: Path, tmp_path: Path) -> None:
    """It is a file that anybody may edit."""
    (tmp_path / "precious").write_text("x")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"] |= {"../../precious": "0" * 64, str(tmp_path / "precious"): "0" * 64}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    output.write(folder, files("b"))
    assert (tmp_path / "precious").read_text() == "x"


def test_the_manifest_lists_all_other_files() -> None:
    """Sorted, with their sha256; the same for the same files."""
    made = files("a")
    content = json.loads(made[MANIFEST].content)
    assert content["generator"] == "cycleforge"
    assert list(content["files"]) == sorted(str(path) for path in made if path != MANIFEST)
    assert manifest_file(dict(reversed(made.items())), "a") == made[MANIFEST]


# ---------------------------------------------------------------- leftovers, locks, other systems


@pytest.mark.parametrize("name", [".lab.tmp-0123abcd", ".lab.old-0123abcd"])
def test_leftovers_are_cleaned(folder: Path, name: str) -> None:
    """Those of this folder only; also when nothing changes, and when they are closed to us."""
    left = folder.parent / name
    (left / "deep").mkdir(parents=True)
    (left / "deep" / "file").write_text("x")
    (left / "deep").chmod(0o500)
    others = [".lab2.tmp-0123abcd", ".lab.tmp-xyz", ".lab.tmp-0123abcd5", "lab.tmp-0123abcd"]
    for other in others:
        (folder.parent / other).mkdir()
    output.write(folder, files("a"))
    assert leftovers(folder) == sorted(others)


def test_a_folder_that_was_renamed_away_is_put_back(folder: Path) -> None:
    """A system without exchange, killed between its two renames."""
    folder.rename(folder.parent / ".lab.old-0123abcd")
    output.write(folder.parent / "lab", files("a"))
    assert_whole(folder, "a")
    assert leftovers(folder) == []


def test_without_locks_only_old_leftovers_go(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A young one may belong to a build that runs."""
    monkeypatch.setattr(folder_swap, "_acquire", lambda *_: False)
    young, old = folder.parent / ".lab.tmp-00000001", folder.parent / ".lab.tmp-00000002"
    young.mkdir()
    old.mkdir()
    os.utime(old, (0, 0))
    output.write(folder, files("b"))
    assert leftovers(folder) == [young.name]


def test_without_exchange_the_folder_is_still_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two renames, and the first one is undone if the second fails."""
    monkeypatch.setattr(folder_swap, "_exchange", lambda *_: False)
    output.write(folder, files("b"))
    assert_whole(folder, "b")
    rename = Path.rename

    def fail(self: Path, target: Path) -> Path:
        if ".tmp-" in self.name:
            raise OSError(errno.EIO, "input/output error")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(CannotWrite):
        output.write(folder, files("c"))
    assert_whole(folder, "b")
    assert leftovers(folder) == []


def test_exchange_works_here(tmp_path: Path) -> None:
    """On Linux it must, or the tests above prove less than they say."""
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    assert folder_swap._exchange(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "a" / "b").exists()


def test_a_build_waits_for_another_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And gives up with a sentence."""
    handle = os.open(folder.parent, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    monkeypatch.setattr(folder_swap, "LOCK_SECONDS", 0.1)
    with pytest.raises(CannotWrite, match="another build has been writing"):
        output.write(folder, files("b"))
    monkeypatch.setattr(folder_swap, "LOCK_SECONDS", 10.0)
    release = threading.Timer(0.2, os.close, [handle])
    release.start()
    output.write(folder, files("b"))
    release.join()
    assert_whole(folder, "b")


def test_relative_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the command line gives them."""
    monkeypatch.chdir(tmp_path)
    for path in (Path("lab"), Path("output/lab"), Path("./x/../y")):
        output.write(path, files("a"))
        assert_whole(path, "a")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    output.write(Path(), files("a"))
    assert_whole(tmp_path / "here", "a")


def test_executable_and_content_both_count(folder: Path) -> None:
    """A file that becomes executable has changed."""
    made = files("a")
    made[PurePosixPath("same.txt")] = replace(made[PurePosixPath("same.txt")], executable=True)
    assert output.write(folder, made).changed == ("same.txt",)
