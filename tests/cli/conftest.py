"""A place of its own for a command that runs in this process, and a definition."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import GOOD, Run


@pytest.fixture
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty working folder; nothing of the caller's environment."""
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "CYCLEFORGE_DEBUG", "CYCLECLOUD_SSH_PUBLIC_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def good(tmp_path: Path) -> Path:
    """A definition without problems."""
    path = tmp_path / "lab.yaml"
    path.write_text(GOOD)
    return path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command."""
    return Run(capsys)
