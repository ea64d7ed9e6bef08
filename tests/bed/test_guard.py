"""The guard against hanging, the signals of a background job, and the last line, in runs of pytest of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from generator.files import assets

HANGING = """
import os, signal, subprocess, threading, time
import pytest
from pathlib import Path

FOLDER = Path(__file__).parent


@pytest.fixture
def slow_to_end():
    yield
    threading.Event().wait()


@pytest.mark.guard(0.5)
def test_a_child_that_never_ends():
    subprocess.run(["sh", "-c", "echo $$ >child; sleep 3600 & wait"], cwd=FOLDER, stdout=subprocess.PIPE)


@pytest.mark.guard(0.5)
def test_a_failure_whose_tear_down_never_ends(slow_to_end):
    assert not "fails by itself"


@pytest.mark.guard(0.5)
def test_a_lock_that_nobody_opens():
    try:
        threading.Lock().acquire() and threading.Event().wait()
    except Exception:
        pass


@pytest.mark.skip(reason="no such machine")
def test_skipped():
    pass


def test_a_program_gets_ctrl_c():
    process = subprocess.Popen(["sleep", "3600"])
    process.send_signal(signal.SIGINT)
    assert process.wait() == -signal.SIGINT
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "conftest.py").write_text((assets.root() / "tests/conftest.py").read_text())
    (tmp_path / "test_it.py").write_text(HANGING)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -ra -p no:cacheprovider\n")
    return tmp_path


def run(folder: Path, *arguments: str) -> str:
    """Output of a run as a script's background job has it: Ctrl-C is ignored."""
    done = subprocess.run(
        ["sh", "-c", 'trap "" INT QUIT; exec "$@"', "sh", sys.executable, "-m", "pytest", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(assets.root()), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("workers", ["-p no:xdist", "-n 1"])
def test_what_hangs_fails_and_the_run_goes_on(folder: Path, workers: str) -> None:
    said = run(folder, *workers.split())
    assert said.splitlines()[-1] == "proofs: 1 passed, 3 failed, 1 error, 1 skipped, for the reasons above"
    assert "no such machine" in said
    assert "3 failed, 1 passed, 1 skipped, 1 error" in said
    assert said.count("not done after 0.5 s: the guard") >= 3
    child = int((folder / "child").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(child, signal.SIG_DFL)


def test_a_run_that_is_not_marked_has_the_usual_guard(folder: Path) -> None:
    (folder / "test_it.py").write_text(
        "import signal\n\ndef test_it():\n    assert signal.getitimer(signal.ITIMER_REAL)[0] < 0\n"
    )
    said = run(folder)
    assert "assert 8" in said or "assert 9" in said, said
