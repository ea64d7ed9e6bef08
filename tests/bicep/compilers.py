"""The offline checker that is beside the repository, and the real compiler where one is installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from generator.files import assets

CHECKER = assets.root().parent / "shared" / "tools" / "bicepcheck" / "bicepcheck"
MODULES = sorted((assets.folder("bicep_templates") / "modules").glob("*.bicep"))


def findings(*files: Path) -> list[str]:
    """What the checker says about these files and their modules, one finding a line; skips where it is absent."""
    if not CHECKER.is_file():
        pytest.skip(f"no Bicep checker at {CHECKER.relative_to(assets.root().parent)} beside the repository")
    command = [sys.executable, str(CHECKER), "--types-as-errors", *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert done.returncode in (0, 1), done.stderr
    assert lines or done.returncode == 0, done.stderr
    return lines


def compiler_output(command: str, file: Path) -> str:
    """What `bicep <command>` says; skips where no compiler is on the PATH."""
    return _run(command, file).stderr


def compiled(file: Path) -> bytes:
    """The template that `bicep build` makes; skips where no compiler is on the PATH."""
    return _run("build", file).stdout.encode()


def _run(command: str, file: Path) -> subprocess.CompletedProcess[str]:
    bicep = shutil.which("bicep")
    if bicep is None:
        pytest.skip(f"no bicep on the PATH: `bicep {command}` was not run")
    arguments = [bicep, command, str(file)] + (["--stdout"] if command == "build" else [])
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done
