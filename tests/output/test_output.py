"""Writing a deployment folder: what changes, what stays, what is refused."""

from __future__ import annotations

import errno
import fcntl
import io
import json
import os
import shutil
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from msgspec.structs import replace

from generator.disk import swap as folder_swap
from generator.errors import CannotWrite, ProblemsFound
from generator.files.file import MANIFEST, Files, manifest_file, text
from generator.output import folder as output
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
    assert (changes.changed, changes.removed, changes.unchanged, changes.edited, changes.foreign) == (
        (),
        (),
        (),
        (),
        (),
    )
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
    assert changes.edited == ()
    for path in (".envrc", "d0/notes", "keys/id", "link", "only-a/kept"):
        assert after[path] == before[path]
    assert stat.S_IMODE((folder / "keys").stat().st_mode) == 0o700
    assert (folder / "empty" / "deeper").is_dir()
    assert (folder / "link").readlink() == Path("/nowhere/at/all")
    assert not output.write(folder, files("b")).any


def test_edited_files_stop_a_build_and_are_all_named(folder: Path) -> None:
    """Those that would change, and those that would go; nothing is written before they are replaced by force."""
    (folder / "same.txt").write_text("edited")
    (folder / "only-a" / "file").write_text("edited")
    (folder / "notes").write_text("not built, so not edited")
    before = snapshot(folder)
    assert output.check(folder, files("b")).edited == ("only-a/file", "same.txt")
    with pytest.raises(ProblemsFound, match=r"was edited after it was built: only-a/file, same\.txt$") as caught:
        output.write(folder, files("b"))
    assert "`cycleforge build --force`" in str(caught.value.hint)
    assert snapshot(folder) == before
    assert leftovers(folder) == []
    assert output.write(folder, files("b"), force=True).edited == ("only-a/file", "same.txt")
    assert (folder / "notes").read_text() == "not built, so not edited"
    (folder / "notes").unlink()
    assert_whole(folder, "b")


def test_an_edit_that_equals_the_new_content_is_no_edit(folder: Path) -> None:
    (folder / "run.sh").write_bytes(files("b")[PurePosixPath("run.sh")].content)
    assert output.write(folder, files("b")).edited == ()


def test_deleted_files_come_back(folder: Path) -> None:
    """And count as added."""
    (folder / "same.txt").unlink()
    assert output.write(folder, files("a")).added == ("same.txt",)
    assert_whole(folder, "a")


def a_file(place: Path) -> None:
    place.write_text("mine")


def a_folder(place: Path) -> None:
    place.mkdir()
    (place / "inside").write_text("mine")


def a_link(place: Path) -> None:
    place.symlink_to(place.parent.parent)


@pytest.mark.parametrize("name", ["new", "new.txt", "same.txt", "d1"])
@pytest.mark.parametrize("put", [a_file, a_folder, a_link])
def test_what_a_user_has_in_our_way_is_refused_and_stays(folder: Path, name: str, put: Callable[[Path], None]) -> None:
    """By force, too: a file, a folder or a link where a file or a folder of ours comes, or was."""
    place = folder / name
    if place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
    put(place)
    new = with_manifest(files("b") | {PurePosixPath("new.txt"): text("new"), PurePosixPath("new/inside"): text("new")})
    if put is a_file and name == "same.txt":
        assert output.check(folder, new).edited == ("same.txt",)  # it cannot be told from an edit
        return
    if put is a_folder and name == "d1":
        assert output.check(folder, new).foreign == ("d1/inside",)
        return
    before = snapshot(folder)
    for attempt in (output.check, output.write, partial(output.write, force=True)):
        with pytest.raises(CannotWrite, match=rf"files of yours where CycleForge writes its own: {name}") as caught:
            attempt(folder, new)
        assert caught.value.hint == "give them other names, then build again"
    assert snapshot(folder) == before
    assert leftovers(folder) == []


def test_links_are_not_followed(folder: Path, tmp_path: Path) -> None:
    """What a link of the user leads to is neither read nor written."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f1.txt").write_text("precious")
    (folder / "results").symlink_to(outside)
    assert output.write(folder, files("b")).foreign == ("results",)
    assert (folder / "results").is_symlink()
    assert [(entry.name, entry.read_text()) for entry in outside.iterdir()] == [("f1.txt", "precious")]


@pytest.mark.parametrize("name", ["late.txt", "same.txt", "run.sh"])
def test_a_folder_that_changes_while_it_is_built_stays_as_it_is(
    folder: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that comes or is edited between our look and the swap would be lost with the old folder."""
    fill = output._carried_folder
    (folder / "notes").write_text("mine")

    def late(*arguments: Any) -> None:
        (folder / name).write_text("just in time")
        fill(*arguments)

    monkeypatch.setattr(output, "_carried_folder", late)
    with pytest.raises(CannotWrite, match="changed while it was built"):
        output.write(folder, files("b"))
    assert (folder / name).read_text() == "just in time"
    assert (folder / "only-a" / "file").read_text() == "a\n"
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
@pytest.mark.parametrize("call", ["write", "mkdir", "rename", "link"])
def test_errors_of_the_system_leave_the_old_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch, code: int, words: str, call: str
) -> None:
    """Wherever the disk is full: while files are written or swapped."""
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
        monkeypatch.setattr(Path, "rename", fail)
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
    """Killed between the two renames."""
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


def test_the_first_rename_is_undone_if_the_second_fails(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output.write(folder, files("b"))
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
