"""The offline checker that is beside the repository, and the real compiler where one is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
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


def findings_below(files: Mapping[str, Path]) -> dict[str, list[str]]:
    """For each name what the checker says of its file and of all below that file's folder, from one run for all.

    The folders are apart from each other. Reading the types of Azure's resources takes longer than most files.
    """
    lines = findings(*files.values())
    # A file that the given ones refer to is named from the working folder where it is below that.
    starts = {name: (f"{file.parent}/", f"{os.path.relpath(file.parent)}/") for name, file in files.items()}
    found = {name: [line for line in lines if line.startswith(starts[name])] for name in files}
    assert sorted(lines) == sorted(line for each in found.values() for line in each)
    return found


def selected(names: Iterable[str], request: pytest.FixtureRequest) -> list[str]:
    """Those with which a test of this run is parametrized: with `-k` one case costs no more than itself."""
    ends = {item.nodeid.partition("[")[2] for item in request.session.items}
    return [name for name in names if f"{name}]" in ends]


def compiler_or_skip(command: str) -> str:
    """The program `bicep`; where there is none, a test of `bicep <command>` is skipped."""
    bicep = shutil.which("bicep")
    if bicep is None:
        pytest.skip(f"no bicep on the PATH: `bicep {command}` was not run")
    return bicep


def compiler_output(command: str, file: Path) -> str:
    """What `bicep <command>` says; skips where no compiler is on the PATH."""
    return _run(command, file).stderr


def compiled(file: Path) -> bytes:
    """The template that `bicep build` makes; skips where no compiler is on the PATH."""
    return _run("build", file).stdout.encode()


def _run(command: str, file: Path) -> subprocess.CompletedProcess[str]:
    arguments = [compiler_or_skip(command), command, str(file)] + (["--stdout"] if command == "build" else [])
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done
