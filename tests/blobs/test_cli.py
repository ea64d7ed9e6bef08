"""`cycleforge blobs`: what a person sees, what a machine reads, and every exit code."""

from __future__ import annotations

import errno
import functools
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from generator.blobs import fetch as fetch_module
from generator.cli import main
from tests.answers import data_of
from tests.blobs.catalogue import BINARY, BINARY_TAR, SOURCE, TAR, archive, catalogue_of, entry
from tests.blobs.server import Server, serving, status, whole

ROOT = Path(__file__).resolve().parents[2]
FILE, OTHER = SOURCE["file"], BINARY["file"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The store, which does not exist yet; two blobs are pinned."""
    store = tmp_path / "store"
    monkeypatch.setenv("CYCLEFORGE_BLOBS", str(store))
    monkeypatch.chdir(tmp_path)
    for name in ("http_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with catalogue_of(monkeypatch, SOURCE, BINARY):
        yield store


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """The network of the command."""
    with serving() as started:
        monkeypatch.setattr(fetch_module, "Limits", started.limits)
        yield started


class Run:
    """One run: exit code, both outputs."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        code = main(["blobs", *arguments])
        out, err = self._capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    def json(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        """The exit code and the result as data; nothing beside it."""
        code, out, err = self(*arguments, "--json")
        assert err == ""
        return code, data_of(out)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(capsys)


# ---------------------------------------------------------------- status


def test_status_before_and_after(run: Run, folder: Path) -> None:
    code, out, err = run("status")
    assert code == 0
    assert out.splitlines() == [
        "FILE                   PROJECT       VERSION  SIZE   STATE",
        "nhc-1.4.3-9c4a38c.tar  slurm_nhc     1.0      6 KiB  missing",
        "tool-1.0.bin           pyxis_enroot  1.0      2 KiB  missing",
        f"in {folder}",
    ]
    assert err == "  hint: cycleforge blobs fetch\n"
    folder.mkdir()
    (folder / FILE).write_bytes(TAR)
    (folder / OTHER).write_bytes(BINARY_TAR[:-1] + b"x")
    code, out, err = run("status")
    assert code == 1
    assert [line.split()[-1] for line in out.splitlines()[1:3]] == ["present", "damaged"]
    assert err.splitlines()[0] == f"cycleforge: {folder / OTHER} does not have the pinned sha256"
    (folder / OTHER).write_bytes(BINARY_TAR)
    code, out, err = run("status")
    assert (code, err) == (0, "")


def test_status_for_machines(run: Run, folder: Path) -> None:
    folder.mkdir()
    (folder / OTHER).write_bytes(b"")
    code, found = run.json("status")
    assert (code, found["ok"], found["store"]) == (1, False, str(folder))
    first, second = found["blobs"]
    assert first == {
        "file": FILE, "project": "slurm_nhc", "version": "1.0", "size_bytes": len(TAR), "sha256": SOURCE["sha256"],
        "state": "missing", "reason": None, "path": str(folder / FILE), "url": SOURCE["url"], "license": "MIT",
        "used_for": "The tests.", "without": "nodes run no tests",
    }  # fmt: skip
    assert (second["state"], second["reason"]) == ("damaged", f"has 0 bytes instead of {len(BINARY_TAR)}")
    assert [row["file"] for row in run.json("status", "slurm_nhc")[1]["blobs"]] == [FILE]


def test_what_only_tests_build_is_there_for_who_names_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    source = entry("osu-1.0.tar", TAR, project="tests", needed="by_tests")
    with catalogue_of(monkeypatch, SOURCE, source):
        assert [row["file"] for row in run.json("status")[1]["blobs"]] == [FILE]
        for name in ("tests", "osu-1.0.tar"):
            assert [row["file"] for row in run.json("status", name)[1]["blobs"]] == ["osu-1.0.tar"]


# ---------------------------------------------------------------- fetch


def test_fetch_all_and_again(run: Run, server: Server, folder: Path) -> None:
    server.answers = [whole(archive()), whole(BINARY_TAR)]
    code, out, err = run("fetch")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        f"{FILE}: fetched, 6 KiB, {folder / FILE}", f"{OTHER}: fetched, 2 KiB, {folder / OTHER}",
    ]  # fmt: skip
    assert run("fetch") == (0, f"{FILE}: present, {folder / FILE}\n{OTHER}: present, {folder / OTHER}\n", "")
    assert len(server.asked) == 2
    assert (folder / FILE).read_bytes() == TAR


@pytest.mark.parametrize("word", [OTHER, "pyxis_enroot"])
def test_fetch_one_by_file_or_project(run: Run, server: Server, folder: Path, word: str) -> None:
    server.answers = [whole(BINARY_TAR)]
    assert run("fetch", word, word)[0] == 0
    assert [path.name for path in folder.iterdir()] == [OTHER]


def test_fetch_with_a_failure(run: Run, server: Server, folder: Path) -> None:
    server.answers = [status(404), whole(BINARY_TAR)]
    code, out, err = run("fetch")
    assert code == 1
    assert out == f"{OTHER}: fetched, 2 KiB, {folder / OTHER}\n"
    assert err.splitlines() == [
        f"{FILE}: failed: the server answered HTTP 404 Not Found: the file is no longer there",
        f"  hint: download {SOURCE['url']} elsewhere, then: cycleforge blobs fetch {FILE} --from FILE",
    ]
    server.answers = [status(500)]
    code, found = run.json("fetch")
    assert (code, found["ok"], found["errors"]) == (1, False, [])
    assert [row["state"] for row in found["blobs"]] == ["failed", "present"]
    assert found["blobs"][0]["reason"] == "the server answered HTTP 500 Internal Server Error (3 tries)"


def test_from_a_folder_for_some_of_the_files(run: Run, tmp_path: Path, folder: Path) -> None:
    (tmp_path / "stick").mkdir()
    code, out, err = run("fetch", "--from", "stick")
    assert (code, out) == (1, "")
    assert err.splitlines() == [f"{FILE}: not taken: stick has no {FILE}", f"{OTHER}: not taken: stick has no {OTHER}"]
    (tmp_path / "stick" / FILE).write_bytes(archive())
    code, out, err = run("fetch", "--from", "stick")
    assert (code, out) == (0, f"{FILE}: fetched, 6 KiB, {folder / FILE}\n")
    assert err == f"{OTHER}: not taken: stick has no {OTHER}\n"
    code, _, err = run("fetch", OTHER, "--from", "stick")
    assert code == 1
    assert f"{OTHER}: failed: stick has no {OTHER}\n  hint: looked for {OTHER}, tool_1.0_amd64.bin, " in err
    assert [row["state"] for row in run.json("fetch", "--from", "stick")[1]["blobs"]] == ["present", "absent"]


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        ((), "the following arguments are required: action", "see `cycleforge blobs --help`"),
        (("get",), "invalid choice: 'get'", "see `cycleforge blobs --help`"),
        (("fetch", "nhc-1.4.3-9c4a38d.tar"), "there is no blob 'nhc-1.4.3-9c4a38d.tar'", f"did you mean '{FILE}'?"),
        (("fetch", "zzz"), "there is no blob 'zzz'", f"known: {FILE}, {OTHER}, slurm_nhc, pyxis_enroot"),
        (("status", "--from", "."), "--from is an option of `blobs fetch`", "see `cycleforge blobs --help`"),
        (("fetch", "--from", "none"), "there is no none", "--from takes a git clone"),
        (("fetch", "--from"), "argument --from: expected one argument", "see `cycleforge blobs --help`"),
        (("fetch", "--fro", "x"), "unknown option '--fro'", "did you mean '--from'?"),
    ],
)
def test_wrong_usage(run: Run, arguments: tuple[str, ...], message: str, hint: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert hint in err


def test_a_store_that_cannot_be_written(
    run: Run, server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    server.answers = [whole(archive())]
    code, out, err = run("fetch")
    assert (code, out) == (5, "")
    assert err.startswith(f"cycleforge: cannot keep blobs in {folder}: the disk is full\n  hint: free some space")
    code, found = run.json("fetch")
    assert (code, found["ok"], found["blobs"]) == (5, False, [])
    assert found["errors"][0]["message"] == f"cannot keep blobs in {folder}: the disk is full"
    assert list(folder.iterdir()) == []


def test_progress_is_for_terminals(server: Server, folder: Path, tmp_path: Path) -> None:
    """Run as a process whose standard error is one; the line is gone in the end."""
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, pytest\n"
        "from generator.blobs import fetch\n"
        "from generator.blobs.download import Limits\n"
        "from generator.cli import main\n"
        "from tests.blobs.catalogue import BINARY, catalogue_of\n"
        "fetch.Limits = lambda: Limits(schemes=('http',), address=lambda _: sys.argv[1])\n"
        "with catalogue_of(pytest.MonkeyPatch(), BINARY):\n"
        "    sys.exit(main(['blobs', 'fetch']))\n"
    )
    server.answers = [whole(BINARY_TAR)]
    ours, theirs = pty.openpty()
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TERM": "xterm"}
    process = subprocess.Popen(
        [sys.executable, str(program), f"{server.url}/x"], cwd=tmp_path, env=environment, stdout=subprocess.PIPE,
        stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    for part in iter(functools.partial(_read, ours), b""):
        shown += part
    out, _ = process.communicate()
    os.close(ours)
    assert (process.returncode, out.decode()) == (0, f"{OTHER}: fetched, 2 KiB, {folder / OTHER}\n")
    text = shown.decode()
    assert OTHER in text
    assert "%" in text
    assert "KiB" in text
    assert text.rindex("\x1b[2K") > text.rindex(OTHER), "the line is empty at the end"
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l"), "the cursor is back"


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # the last holder of the other end is gone
        return b""
