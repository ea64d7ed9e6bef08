"""Tests make their folders in memory only where that is safe."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.bed import temporary

AVAILABLE = "MemTotal: 16000000 kB\nMemAvailable: 12000000 kB\n"


@pytest.mark.parametrize(
    ("mounts", "meminfo", "fits"),
    [
        ("tmpfs FOLDER tmpfs rw 0 0\n", AVAILABLE, True),
        ("/dev/sda1 FOLDER ext4 rw 0 0\n", AVAILABLE, False),
        ("tmpfs FOLDER tmpfs rw 0 0\n/dev/sda1 FOLDER ext4 rw 0 0\n", AVAILABLE, False),
        ("tmpfs /elsewhere tmpfs rw 0 0\n", AVAILABLE, False),
        ("tmpfs FOLDER tmpfs rw 0 0\n", "MemAvailable: 3000000 kB\n", False),
        ("tmpfs FOLDER tmpfs rw 0 0\n", "unreadable", False),
    ],
)
def test_only_a_roomy_folder_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mounts: str, meminfo: str, *, fits: bool
) -> None:
    monkeypatch.setattr(temporary, "FREE_BYTES", 1)
    (tmp_path / "mounts").write_text(mounts.replace("FOLDER", str(tmp_path)))
    (tmp_path / "meminfo").write_text(meminfo)
    assert temporary.fits(tmp_path, tmp_path) is fits
    monkeypatch.setattr(temporary, "FREE_BYTES", 2**62)
    assert not temporary.fits(tmp_path, tmp_path)


def test_a_folder_that_somebody_has_chosen_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "/somewhere")
    temporary.use_memory()
    assert os.environ["TMPDIR"] == "/somewhere"
