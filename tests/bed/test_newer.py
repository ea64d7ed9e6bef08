"""Which Slurm a bed runs, and what is said where a mirror of Debian does not have it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from generator.files import assets
from tests.bed.slurm import newer

NO_SUITE = "E: The repository 'http://127.0.0.1:18123/debian forky Release' does not have a Release file."
NO_PACKAGE = "E: Unable to locate package slurmdbd"
UNREACHABLE = (
    "E: Failed to fetch http://127.0.0.1:9/debian/dists/forky/InRelease  Could not connect to 127.0.0.1:9 (127.0.0.1). "
    "- connect (111: Connection refused)"
)
"""What apt 2.6.1 says below mmdebstrap 1.3.5, of a mirror that is an empty folder, and of a port that is closed."""
ONE_SKIPPED = """
import pytest
from tests.bed.slurm.newer import ABSENT


@pytest.mark.parametrize("number", range(2))
def test_it(number):
    pytest.skip(f"Slurm 26.05 {ABSENT}: the mirror has none")


def test_other():
    pytest.skip("no root")
"""


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and an mmdebstrap that says what the file has and fails."""
    program = tmp_path / "bin/mmdebstrap"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\ncat {tmp_path}/says >&2; mkdir -p "$(eval echo \\${{$#}})"; exit 25\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(newer, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(newer, "needs", lambda *_: None)
    monkeypatch.setattr(newer, "unpacked_root", newer.unpacked_root.__wrapped__)
    return tmp_path


@pytest.mark.parametrize("says", [NO_SUITE, NO_PACKAGE])
def test_a_release_that_the_mirror_lacks_is_skipped_with_its_reason(mirror: Path, says: str) -> None:
    (mirror / "says").write_text(says)
    with pytest.raises(pytest.skip.Exception, match=r"^Slurm 26\.05 cannot be had: the mirror has no Debian forky"):
        newer.unpacked_root("26.05")
    assert [path.name for path in (mirror / "cache").iterdir()] == ["slurm.lock"]


def test_a_mirror_that_does_not_answer_is_a_failure(mirror: Path) -> None:
    (mirror / "says").write_text(UNREACHABLE)
    with pytest.raises(RuntimeError, match="Could not connect"):
        newer.unpacked_root("26.05")


def test_the_environment_chooses_and_a_test_may_insist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newer, "unpacked_root", Path)
    monkeypatch.setenv(newer.VARIABLE, "26.05")
    assert newer.chosen_slurm() == newer.Slurm((26, 5), Path("26.05"))
    assert newer.chosen_slurm(newer.NEWER) == newer.Slurm((24, 11), Path("24.11"))
    monkeypatch.setenv(newer.VARIABLE, "24.05")
    with pytest.raises(ValueError, match=r"CYCLEFORGE_SLURM=24\.05: the beds know host, 24\.11, 26\.05"):
        newer.chosen_slurm()


def test_the_last_lines_of_a_run_say_once_which_slurm_was_not_tried(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ("tests.bed.summary",)\n')
    (tmp_path / "test_it.py").write_text(ONE_SKIPPED)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], cwd=tmp_path, capture_output=True, text=True,
        check=False, env=os.environ | {"PYTHONPATH": str(assets.root())},
    )  # fmt: skip
    assert done.stdout.splitlines()[-2:] == [
        "not tried: Slurm 26.05 cannot be had: the mirror has none",
        "proofs: 0 passed, 3 skipped, for the reasons above",
    ]
